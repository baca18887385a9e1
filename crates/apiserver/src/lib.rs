//! The REST API of `flowcontrol.apiserver.k8s.io` over a store, in all four versions, as a kube-apiserver answers it.

mod failure;

pub use failure::{Cause, Details, Failure};
