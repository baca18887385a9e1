//! What operators see: the admin endpoint, metrics, the log, the access log, spans, and readiness.

pub mod access_log;
pub mod admin;
mod batch;
pub mod dashboard;
pub mod frame;
pub mod log;
pub mod metrics;
mod moment;
mod readiness;
mod sampling;
pub mod spans;

pub use readiness::{Phase, Readiness};
