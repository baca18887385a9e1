//! Outcomes of requests, and the trait that receives them.

use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::Nanos;

use crate::LevelNumber;

/// A request that has ended. `T` is what the caller keeps with each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome<T> {
    /// The caller's token.
    pub token: T,
    /// The level that it was in.
    pub level: LevelNumber,
    /// When it arrived.
    pub arrived: Nanos,
    /// When it ended: the client has its response.
    pub ended: Nanos,
    /// How it ended.
    pub end: End,
}

/// How a request ended.
///
/// Not `#[non_exhaustive]`: a caller has to handle every outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The service has responded.
    Completed {
        /// When the engine started it.
        started: Nanos,
        /// The seats that it held.
        seats: u32,
        /// How long it holds them after its end.
        lingers: Nanos,
        /// Whether the service failed to do its work.
        has_failed: bool,
    },
    /// The engine rejected it.
    Rejected {
        /// Why.
        reason: Rejection,
        /// The `Retry-After` of the response.
        retry_after: Nanos,
    },
    /// It has reached its longest wait.
    TimedOut {
        /// The `Retry-After` of the response.
        retry_after: Nanos,
    },
}

/// A change of a request that runs.
///
/// Not `#[non_exhaustive]`: callers make it, and have to know every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunningChange {
    /// It holds so many seats from now on.
    Seats(u32),
    /// Its flow is charged that much more seat-time, or less.
    Charge(Nanos),
}

/// Receives the outcomes of requests, in the order in which they happen. A closure receives the ends only.
pub trait Outcomes<T> {
    /// A request did not start when it arrived, and waits.
    fn waits(&mut self, now: Nanos, token: &mut T) {
        let _ = (now, token);
    }

    /// A request starts, on so many seats.
    fn started(&mut self, now: Nanos, token: &mut T, seats: u32) {
        let _ = (now, token, seats);
    }

    /// The service time of a request that has just started: the one it arrived with, unless the caller knows better by now.
    fn service(&mut self, token: &mut T, service: Nanos) -> Nanos {
        let _ = token;
        service
    }

    /// How long a request takes elsewhere that has just started, likewise.
    fn delay(&mut self, token: &mut T, delay: Nanos) -> Nanos {
        let _ = token;
        delay
    }

    /// What changes about a request right before it ends, beyond what follows from its cost. A charge that comes last is one event with the end.
    fn last_changes(&mut self, token: &mut T) -> Vec<RunningChange> {
        let _ = token;
        Vec::new()
    }

    /// A request has ended.
    fn ended(&mut self, outcome: Outcome<T>);
}

impl<T, F: FnMut(Outcome<T>)> Outcomes<T> for F {
    fn ended(&mut self, outcome: Outcome<T>) {
        self(outcome);
    }
}

// === impl Outcome ===

impl<T> Outcome<T> {
    /// How long it waited for a seat, or until it was rejected.
    pub fn wait(&self) -> Nanos {
        match self.end {
            End::Completed { started, .. } => started - self.arrived,
            End::Rejected { .. } | End::TimedOut { .. } => self.ended - self.arrived,
        }
    }
}
