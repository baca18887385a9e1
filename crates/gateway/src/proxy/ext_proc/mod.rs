//! Decides about the requests of an Envoy: the service of its external processing filter (`envoy.service.ext_proc.v3`).
//!
//! Envoy opens a stream for each request and waits for the response to its head. The response is held back until the request has a seat,
//! and the seat is taken until Envoy ends the stream, which it does when the request is over.
//!
//! A stream runs on a worker, under the same identity, rules, flow control, log and spans as a request that the gateway forwards.

#[cfg(feature = "fuzzing")]
mod any_stream;
mod flow;
mod grpc;
mod head;
mod messages;
mod observe;
mod process;
mod reply;
mod serve;
mod short_waits;
mod subject;

#[cfg(feature = "fuzzing")]
pub(crate) use any_stream::any_stream;
pub(crate) use flow::HeldFlow;
pub(crate) use serve::serve;
