//! `Effects` of an event on a queue set, and the outcomes of an arrival and of a finish.

use super::{Phase, RequestId};
use crate::WorkEstimate;
use crate::time::Instant;

/// Receives the effects of an event, while it is being handled. A closure that takes a request and its payload receives the
/// starts only; the payloads of requests that are rejected later, or whose time is over, are dropped.
pub trait Effects<T> {
    /// A request starts: one that has been waiting, or the one that has just arrived.
    fn started(&mut self, id: RequestId, payload: &mut T);

    /// The request that is next needs more seats than are free, and all others wait for it (FQ-23).
    fn blocked(&mut self, payload: &T) {
        let _ = payload;
    }

    /// The progress meter was wound back (FQ-13); `clean` tells whether nothing went below zero by it.
    fn epoch_advanced(&mut self, clean: bool) {
        let _ = clean;
    }

    /// A waiting request is rejected, since the level is full and a request of a flow with less took its place (PF-7). The
    /// reason is [`Rejection::QueueFull`].
    fn displaced(&mut self, ended: Ended<T>) {
        drop(ended);
    }

    /// The time of a request is over, and it is gone: it has waited for its whole limit, or has stopped lingering. Only a
    /// [`Level`](crate::level::Level), which has timers, calls this.
    fn timed_out(&mut self, ended: Ended<T>) {
        drop(ended);
    }
}

/// A request that is gone, as it was last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended<T> {
    /// The request.
    pub id: RequestId,
    /// What it was doing.
    pub phase: Phase,
    /// How many seats it took, and for how long it lingered.
    pub work: WorkEstimate,
    /// When it arrived.
    pub arrived: Instant,
    /// When it started, if it has.
    pub started: Option<Instant>,
    /// What the caller kept with it.
    pub payload: T,
}

impl<T, F: FnMut(RequestId, &mut T)> Effects<T> for F {
    fn started(&mut self, id: RequestId, payload: &mut T) {
        self(id, payload);
    }
}

/// Ignores all effects.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEffects;

impl<T> Effects<T> for NoEffects {
    fn started(&mut self, _id: RequestId, _payload: &mut T) {}
}

/// How an arrival ends.
///
/// Not `#[non_exhaustive]`: a caller has to handle every outcome.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival<T> {
    /// The request runs.
    Started {
        /// The request.
        id: RequestId,
        /// The queue that it came through, if there are queues.
        queue: Option<usize>,
    },
    /// The request waits.
    Waiting {
        /// The request.
        id: RequestId,
        /// The queue that it waits in.
        queue: usize,
    },
    /// The request is rejected.
    Rejected {
        /// Why.
        reason: Rejection,
        /// The queue that was full, if there are queues.
        queue: Option<usize>,
        /// What the caller wanted to keep with the request.
        payload: T,
    },
}

/// Why a request is rejected (OB-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rejection {
    /// The request's queue is full, or its level is full and its flow has the most in it.
    QueueFull,
    /// No seat is free, and there are no queues.
    ConcurrencyLimit,
    /// The request has waited as long as it may. In Kubernetes also: its client has disconnected.
    TimeOut,
    /// The client has disconnected. A queue set never gives this reason; callers that cancel requests do.
    Cancelled,
    /// The flow of the request is over its rate, and the request would have to wait for too long (RL-2). A queue set never gives this reason.
    RateLimit,
    /// The level has as many long-running requests as it may have. A queue set never gives this reason; a caller that knows which requests
    /// are long-running does.
    TooManyLongRunning,
}

/// How a finish ends.
///
/// Not `#[non_exhaustive]`: a caller has to handle every outcome.
#[derive(Debug, PartialEq, Eq)]
pub enum Finish<T> {
    /// The seats are free again.
    Released(T),
    /// The request lingers: [`release`](super::QueueSet::release) it then.
    Lingering {
        /// When the seats are to be free.
        until: Instant,
    },
}

// === impl Rejection ===

impl Rejection {
    /// The reason as metrics name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::TimeOut => "time-out",
            Self::Cancelled => "cancelled",
            Self::RateLimit => "rate-limit",
            Self::TooManyLongRunning => "too-many-long-running",
        }
    }
}
