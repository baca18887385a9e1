//! What operators see: the admin endpoint, metrics, the log, and readiness.

pub mod admin;
pub mod frame;
pub mod log;
pub mod metrics;
mod readiness;

pub use readiness::{Phase, Readiness};
