//! Forwards a request: rewrites its head, chooses an upstream, sends it, and cleans up the response.

mod attempt;
mod fields;
mod head;
mod provenance;
mod request_id;
mod service;
mod trailers;

pub(crate) use fields::sanitize_response;
pub(crate) use provenance::Provenance;
pub(crate) use request_id::{REQUEST_ID, RequestIds};
pub(crate) use service::{PoolRequest, RequestFuture, WorkerFlow, attach_facts, flow_layer, known_identity};
pub(crate) use trailers::{TrailerGuard, sanitize_trailers};
