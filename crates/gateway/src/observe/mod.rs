//! The views for operators: the admin endpoint, metrics, the log, the access log, spans, and readiness.

pub mod access_log;
pub mod admin;
mod batch;
pub mod dashboard;
mod ended;
pub mod frame;
pub mod log;
pub mod metrics;
mod moment;
mod readiness;
mod sampling;
mod service_flow;
pub mod spans;
pub mod visible;

pub(crate) use ended::Ended;
pub use readiness::{Phase, Readiness};
pub use service_flow::ServiceFlow;
