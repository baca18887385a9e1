//! Passing a request on: what becomes of its head, which upstream gets it, and what becomes of the answer.

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
pub(crate) use service::{RequestFuture, WorkerFlow};
pub(crate) use trailers::{TrailerGuard, sanitize_trailers};
