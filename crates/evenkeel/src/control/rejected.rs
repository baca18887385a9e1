//! Why a request was rejected, and when to try again.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::drain::Advice;
use evenkeel_engine::queue_set::Rejection;

use crate::control::class::Class;
use crate::control::snapshot::Destination;

/// A request that was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("too many requests ({}), try again in {} s", reason.as_str(), retry_after.as_secs())]
#[non_exhaustive]
pub struct Rejected {
    /// Why it was rejected.
    pub reason: Rejection,
    /// How long to wait before the next try: whole seconds. Clients that are rejected together get different times.
    pub retry_after: Duration,
    /// How long the request would have waited, by what waits in its level and how fast that drains. `None` for a
    /// [Kubernetes API](Preset::Kubernetes), where it is not measured, and where nobody knows: for
    /// [long-running requests](Rejection::TooManyLongRunning), and in a level that has no seats.
    pub expected_wait: Option<Duration>,
    /// The name of the flow schema that the request belonged to.
    pub flow_schema: Box<str>,
    /// The name of its priority level.
    pub priority_level: Box<str>,
    /// The UID of the flow schema that the request belonged to; empty for a built-in one.
    pub flow_schema_uid: Box<str>,
    /// The UID of its priority level; empty for a built-in one.
    pub priority_level_uid: Box<str>,
    /// The seats that it was estimated to take.
    pub seats: u32,
    /// The queue that it waited in or that was full, counted from 0; `None` if there was none.
    pub queue: Option<u32>,
    /// Its flow schema and its priority level.
    pub class: Class,
    /// What kind of service rejects it: the responses have different headers.
    pub(crate) preset: Preset,
}

// === impl Rejected ===

impl Rejected {
    pub(crate) fn new(
        reason: Rejection,
        advice: Advice,
        seats: u32,
        queue: Option<u32>,
        destination: &Arc<Destination>,
    ) -> Self {
        let schema = destination.schema();
        let Advice { retry_after, expected_wait } = advice;
        Self {
            reason,
            retry_after,
            expected_wait,
            flow_schema: schema.name.clone(),
            priority_level: schema.level.name.clone(),
            flow_schema_uid: schema.uid.clone(),
            priority_level_uid: schema.level.uid.clone(),
            seats,
            queue,
            class: Class(Arc::clone(destination)),
            preset: destination.preset(),
        }
    }
}
