//! The REST API of `flowcontrol.apiserver.k8s.io` over a store, in all four versions, as a kube-apiserver answers it.

mod failure;

pub mod managed_fields;
pub mod patch;

pub use failure::{Cause, Details, Failure};
