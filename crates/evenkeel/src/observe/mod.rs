//! The views for operators: metrics, the status of every level, explanations, debug dumps.

pub mod debug;
pub(crate) mod explain;
pub(crate) mod flows;
pub(crate) mod metrics;
pub(crate) mod status;
