//! What operators see: metrics, the status of every level, debug dumps, events for `tracing`.

pub mod debug;
pub(crate) mod events;
pub(crate) mod explain;
#[cfg(feature = "check")]
mod findings;
pub(crate) mod flows;
pub(crate) mod metrics;
pub(crate) mod status;
pub(crate) mod trace;
