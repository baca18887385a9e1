//! Why a request was rejected, and when to try again.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_api::annotations::Rate;
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
    /// The seats that it was estimated to take.
    pub seats: u32,
    /// The queue that it waited in or that was full, counted from 0; `None` if there was none.
    pub queue: Option<u32>,
    /// The place that it would have had among the requests that wait in its level, from 1; `None` if it was not rejected when it arrived.
    pub position: Option<u32>,
    /// Its flow schema and its priority level.
    pub class: Class,
    /// The rate that its flow is over, if it was rejected for that.
    pub rate: Option<Rate>,
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
        let Advice { retry_after, expected_wait } = advice;
        let class = Class(Arc::clone(destination));
        Self { reason, retry_after, expected_wait, seats, queue, position: None, class, rate: None }
    }

    /// The name of the flow schema that the request belonged to.
    pub fn flow_schema(&self) -> &str {
        self.class.flow_schema()
    }

    /// The UID of that flow schema; empty for a built-in one.
    pub fn flow_schema_uid(&self) -> &str {
        self.class.flow_schema_uid()
    }

    /// The name of the priority level that has rejected the request.
    pub fn priority_level(&self) -> &str {
        self.class.priority_level()
    }

    /// The UID of that priority level; empty for a built-in one.
    pub fn priority_level_uid(&self) -> &str {
        self.class.priority_level_uid()
    }

    /// What kind of service rejects it: the responses have different headers.
    pub(crate) fn preset(&self) -> Preset {
        self.class.0.preset()
    }
}
