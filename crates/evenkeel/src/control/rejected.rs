//! Why a request was turned away, and when to try again.

use std::time::Duration;

use evenkeel_engine::Schema;
use evenkeel_engine::queue_set::Rejection;

/// A request that was not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("too many requests ({}), try again in {} s", reason.as_str(), retry_after.as_secs())]
#[non_exhaustive]
pub struct Rejected {
    /// Why.
    pub reason: Rejection,
    /// How long to wait before the next try.
    pub retry_after: Duration,
    /// The name of the flow schema that the request belonged to.
    pub flow_schema: Box<str>,
    /// The name of its priority level.
    pub priority_level: Box<str>,
    /// The identity of the flow schema that the request belonged to; empty for a built-in one.
    pub flow_schema_uid: Box<str>,
    /// The identity of its priority level; empty for a built-in one.
    pub priority_level_uid: Box<str>,
}

// === impl Rejected ===

impl Rejected {
    pub(crate) fn new(reason: Rejection, retry_after: Duration, schema: &Schema) -> Self {
        Self {
            reason,
            retry_after,
            flow_schema: schema.name.clone(),
            priority_level: schema.level.name.clone(),
            flow_schema_uid: schema.uid.clone(),
            priority_level_uid: schema.level.uid.clone(),
        }
    }
}
