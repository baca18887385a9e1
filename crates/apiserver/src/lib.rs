//! The REST API of `flowcontrol.apiserver.k8s.io` over a store, in all four versions, as a kube-apiserver answers it.

// What the routes do not use yet is not dead; the attribute goes when they do.
#![allow(dead_code, unused_imports)]

mod answer;
mod discovery;
mod document;
mod failure;
mod gzip;
mod negotiate;
mod openapi;
mod output;
mod warning;

pub use failure::{Cause, Details, Failure};
