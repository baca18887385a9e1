//! `Tally`: the counts of each flow while a workload runs.

use evenkeel_engine::time::Nanos;

use crate::Histogram;
use crate::outcome::{End, Outcome};
use crate::series::{REASONS, reason_index};

/// The outcomes of the requests of a flow, or of several flows together.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Tally {
    /// Requests that arrived, those that were tried again counted each time.
    pub requests: u64,
    /// The requests among them that had been rejected before.
    pub retries: u64,
    /// Requests that the service has done.
    pub completed: u64,
    /// Requests that the service failed to do.
    pub failed: u64,
    /// Requests that reached their longest wait.
    pub timed_out: u64,
    /// Rejected requests, by the place of their reason in [`REASONS`].
    pub rejected: [u64; REASONS.len()],
    /// How long completed requests waited.
    pub wait: Histogram,
    /// How long completed requests took, the wait included.
    pub total: Histogram,
    /// The seat-nanoseconds that were used.
    pub seat_time: i128,
    /// What the requests cost that the service has done, in the units of their flow schemas.
    pub cost: i128,
}

/// The tally of one flow, and its present state.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlowTally {
    pub(crate) counted: Tally,
    seats: i64,
    waiting: u64,
    as_of: Nanos,
    /// The seat-time since the second began.
    second: i128,
    /// Whether requests have waited all the time since the second began.
    was_backlogged: bool,
    /// Seconds in which requests waited all the time, and the seat-time that was used in them.
    pub(crate) backlogged: Backlogged,
}

/// Seat-time of a flow in seconds when it was short of seats.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backlogged {
    pub(crate) seconds: u64,
    pub(crate) seat_time: i128,
}

// === impl Tally ===

impl Tally {
    /// Adds what the other has counted.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.completed += other.completed;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.rejected.iter_mut().zip(other.rejected).for_each(|(count, more)| *count += more);
        self.wait.merge(&other.wait);
        self.total.merge(&other.total);
        self.seat_time += other.seat_time;
        self.cost += other.cost;
    }

    /// A request has ended.
    pub fn count<T>(&mut self, outcome: &Outcome<T>) {
        match outcome.end {
            End::Completed { has_failed: true, .. } => self.failed += 1,
            End::Completed { .. } => {
                self.completed += 1;
                self.wait.record(outcome.wait());
                self.total.record(outcome.ended - outcome.arrived);
            }
            End::Rejected { reason, .. } => self.rejected[reason_index(reason)] += 1,
            End::TimedOut { .. } => self.timed_out += 1,
        }
    }
}

// === impl FlowTally ===

impl FlowTally {
    pub(crate) fn waits(&mut self) {
        self.waiting += 1;
    }

    pub(crate) fn waits_no_longer(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.was_backlogged &= self.waiting > 0;
    }

    #[inline]
    pub(crate) fn takes(&mut self, now: Nanos, seats: i64) {
        self.advance(now);
        self.seats += seats;
    }

    /// A second has passed: the seat-time that was used in it, if requests waited all the time.
    pub(crate) fn end_second(&mut self, now: Nanos) -> Option<i128> {
        self.advance(now);
        let used = std::mem::take(&mut self.second);
        let was_backlogged = std::mem::replace(&mut self.was_backlogged, self.waiting > 0);
        if !was_backlogged {
            return None;
        }
        self.backlogged.seconds += 1;
        self.backlogged.seat_time += used;
        Some(used)
    }

    /// Starts counting.
    pub(crate) fn reset(&mut self, now: Nanos) {
        self.advance(now);
        self.counted = Tally::default();
        self.backlogged = Backlogged::default();
        (self.second, self.was_backlogged) = (0, self.waiting > 0);
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        let used = i128::from(self.seats) * i128::from(now - self.as_of);
        self.second += used;
        self.counted.seat_time += used;
        self.as_of = now;
    }
}
