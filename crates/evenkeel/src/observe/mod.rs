//! What operators see: metrics, the status of every level, debug dumps.

pub mod debug;
pub(crate) mod explain;
pub(crate) mod flows;
pub(crate) mod metrics;
pub(crate) mod status;
