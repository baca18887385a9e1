//! One queue: its waiting requests, and its share of the virtual time (FQ-8).

use super::line::Line;
use super::virtual_time::{Meter, Reading};
use crate::SeatSeconds;

/// A queue.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    /// Its number among the queues, or [`DETACHED`].
    pub(super) index: u32,
    /// How many of its requests wait.
    pub(super) waiting: u32,
    /// How many of its requests are executing.
    pub(super) executing: u32,
    /// How many of its requests are lingering.
    pub(super) lingering: u32,
    /// The seats of its executing and lingering requests.
    pub(super) seats_in_use: i64,
    /// The largest seats of its waiting requests, added up.
    pub(super) seats_waiting: i64,
    /// The seats that its waiting requests take at first, added up.
    pub(super) initial_seats_waiting: i64,
    pub(super) reading: Reading,
    pub(super) line: Line,
}

/// The number of a queue that is no longer among the queues but still has lingering requests.
pub(super) const DETACHED: u32 = u32::MAX;

// === impl Queue ===

impl Queue {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            waiting: 0,
            executing: 0,
            lingering: 0,
            seats_in_use: 0,
            seats_waiting: 0,
            initial_seats_waiting: 0,
            reading: Reading::default(),
            line: Line::new(),
        }
    }

    /// Whether the queue takes part in the progress: requests that only linger do not count (FQ-8).
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.executing > 0 || self.waiting > 0
    }

    /// A request is about to come into the queue (FQ-19).
    #[inline]
    pub(super) fn wake(&mut self, meter: &mut Meter) {
        if !self.is_active() {
            self.reading.wake(meter);
        }
    }

    /// When the oldest request would finish (FQ-23).
    #[inline]
    pub(super) fn finish(&self) -> Option<SeatSeconds> {
        self.reading.finish(self.line.front())
    }

    /// See [`Reading::forget_old_claims`].
    #[inline]
    pub(super) fn forget_old_claims(&mut self) -> bool {
        self.reading.forget_old_claims(self.line.front())
    }
}
