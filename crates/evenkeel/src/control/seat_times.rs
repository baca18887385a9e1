//! `SeatTimes`: when a request arrived at its level, got its seats and gave them back.

use std::sync::OnceLock;
use std::time::Duration;

use evenkeel_engine::time::Instant;

use crate::control::events::CostKind;

/// When a request arrived at its level, got its seats and gave them back: the very times that its level decided with.
///
/// An access log that has these times shows what the flow control did. A log that reads a clock itself does not: its thread may
/// be interrupted between the reading and the decision, and other requests may be decided about in between.
///
/// Give it to a [`FlowRequest`](crate::request::FlowRequest::seat_times), or put an [`Arc`](std::sync::Arc) of it into the
/// extensions of a
/// request that goes through a [`FlowLayer`](crate::FlowLayer), and look at it when the request has ended. Times are those of
/// the flow control's clock, which began at [`FlowControl::clock_start`](crate::FlowControl::clock_start).
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use evenkeel::clock::ManualClock;
/// use evenkeel::request::{FlowRequest, SeatTimes};
/// use evenkeel::{Attributes, FlowControl, RequestInfo, User};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = ManualClock::new();
/// let flow = FlowControl::builder().manual_clock(clock.clone()).build();
/// let (user, info, times) = (User::default(), RequestInfo::default(), Arc::<SeatTimes>::default());
/// clock.advance(Duration::from_secs(5));
/// let request = FlowRequest::new(Attributes { user: &user, request: &info }).seat_times(&times);
/// let permit = flow.admit_request(request).await.unwrap();
/// clock.advance(Duration::from_secs(2));
/// drop(permit);
/// let seconds = Duration::from_secs;
/// assert_eq!((times.arrived(), times.started(), times.ended()), (Some(seconds(5)), Some(seconds(5)), Some(seconds(7))));
/// # }
/// ```
#[derive(Debug, Default)]
pub struct SeatTimes {
    arrived: OnceLock<Duration>,
    started: OnceLock<Duration>,
    ended: OnceLock<Duration>,
    cost: OnceLock<(RequestCost, CostKind)>,
}

/// What a request cost, in the unit that the annotation `evenkeel.dev/cost` of its flow schema says.
///
/// Not `#[non_exhaustive]`: it is a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestCost {
    /// What it was expected to cost; 0 if nothing was known.
    pub expected: f64,
    /// What it cost.
    pub actual: f64,
}

// === impl SeatTimes ===

impl SeatTimes {
    /// When the request arrived at its level; `None` if it has not, or is not limited.
    pub fn arrived(&self) -> Option<Duration> {
        self.arrived.get().copied()
    }

    /// When it got its seats; `None` if it got none, or has not ended yet.
    pub fn started(&self) -> Option<Duration> {
        self.started.get().copied()
    }

    /// When it gave its seats back, was rejected, or left its queue.
    pub fn ended(&self) -> Option<Duration> {
        self.ended.get().copied()
    }

    /// What it cost, if that counts for its flow schema and it has ended.
    pub fn cost(&self) -> Option<RequestCost> {
        self.cost.get().map(|(cost, _)| *cost)
    }

    /// The unit of that cost.
    pub fn cost_kind(&self) -> Option<CostKind> {
        self.cost.get().map(|(_, kind)| *kind)
    }

    pub(crate) fn note_cost(&self, cost: RequestCost, kind: CostKind) {
        let _ = self.cost.set((cost, kind));
    }

    pub(crate) fn note_arrival(&self, now: Instant) {
        // Each time is noted once; the first one counts.
        let _ = self.arrived.set(since_start(now));
    }

    /// The request has ended, and had started then if it had.
    pub(crate) fn note_end(&self, started: Option<Instant>, now: Instant) {
        if let Some(started) = started {
            let _ = self.started.set(since_start(started));
        }
        let _ = self.ended.set(since_start(now));
    }
}

fn since_start(instant: Instant) -> Duration {
    Duration::from_nanos(u64::try_from(instant.as_nanos()).unwrap_or(0))
}
