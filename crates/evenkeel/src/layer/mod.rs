//! The `tower` layer: identifies callers, digests requests, decides how long a request keeps its seats, and makes the responses
//! of the layer itself.

pub(crate) mod admitted;
pub(crate) mod body;
pub(crate) mod boxed;
mod cost;
pub(crate) mod deadline;
pub(crate) mod digest;
#[cfg(feature = "axum")]
pub(crate) mod extract;
pub(crate) mod flow_layer;
pub(crate) mod future;
pub mod grpc;
pub(crate) mod head;
pub mod identify;
pub(crate) mod occupancy;
pub(crate) mod refusal;
pub(crate) mod response;
pub(crate) mod revoked;
pub(crate) mod rules;
pub(crate) mod service;
