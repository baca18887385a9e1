//! One queue: its waiting requests, and what it has been charged (FQ-8).

use super::line::Line;
use crate::SeatSeconds;

/// A queue of a queue set.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    /// Its number among the queues, or [`DETACHED`].
    pub(super) index: u32,
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
    /// The progress at which its oldest request would start if all queues were served at once.
    pub(super) next_r: SeatSeconds,
    pub(super) line: Line,
}

/// The number of a queue that is no longer among the queues but still has lingering requests.
pub(super) const DETACHED: u32 = u32::MAX;

// === impl Queue ===

impl Queue {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            executing: 0,
            lingering: 0,
            seats_in_use: 0,
            seats_waiting: 0,
            initial_seats_waiting: 0,
            next_r: SeatSeconds::ZERO,
            line: Line::new(),
        }
    }

    /// Whether the queue takes part in the progress: requests that only linger do not count (FQ-8).
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.executing > 0 || !self.line.is_empty()
    }

    /// When the oldest request would finish (FQ-23).
    #[inline]
    pub(super) fn finish(&self) -> Option<SeatSeconds> {
        self.line.front().map(|head| self.next_r + head.total_work)
    }

    /// A queue has no claim on progress from before its oldest request arrived (FQ-20). Tells whether it had one.
    #[inline]
    pub(super) fn forget_old_claims(&mut self) -> bool {
        if let Some(head) = self.line.front()
            && self.next_r < head.arrival_r
        {
            self.next_r = head.arrival_r;
            return true;
        }
        false
    }
}
