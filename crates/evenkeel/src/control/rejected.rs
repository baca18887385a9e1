//! Why a request was rejected, and when to try again.

use std::time::Duration;

use evenkeel_engine::queue_set::Rejection;

use crate::control::snapshot::Destination;

/// A request that was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("too many requests ({}), try again in {} s", reason.as_str(), retry_after.as_secs())]
#[non_exhaustive]
pub struct Rejected {
    /// Why it was rejected.
    pub reason: Rejection,
    /// How long to wait before the next try.
    pub retry_after: Duration,
    /// The name of the flow schema that the request belonged to.
    pub flow_schema: Box<str>,
    /// The name of its priority level.
    pub priority_level: Box<str>,
    /// The UID of the flow schema that the request belonged to; empty for a built-in one.
    pub flow_schema_uid: Box<str>,
    /// The UID of its priority level; empty for a built-in one.
    pub priority_level_uid: Box<str>,
    /// Whether the response has headers with the two UIDs.
    pub(crate) has_uid_headers: bool,
}

// === impl Rejected ===

impl Rejected {
    pub(crate) fn new(reason: Rejection, retry_after: Duration, destination: &Destination) -> Self {
        let schema = destination.schema();
        Self {
            reason,
            retry_after,
            flow_schema: schema.name.clone(),
            priority_level: schema.level.name.clone(),
            flow_schema_uid: schema.uid.clone(),
            priority_level_uid: schema.level.uid.clone(),
            has_uid_headers: destination.uid_headers.is_some(),
        }
    }
}
