//! The seats of a level: how many there are, how many are taken, and whether a request may take more (FQ-21).
//!
//! Who of those that wait is next is decided elsewhere, by a [`Discipline`](super::Discipline).

use super::Mode;
use crate::WorkEstimate;

/// The seats of a queue set.
#[derive(Debug, Default)]
pub(super) struct Seats {
    pub(super) limit: i64,
    /// Seats of executing and lingering requests.
    pub(super) in_use: i64,
    /// How many requests are executing; lingering ones are not.
    pub(super) executing: usize,
}

// === impl Seats ===

impl Seats {
    /// Whether that many seats can be taken now. A request that is too wide for the level runs when nothing else does.
    #[inline]
    pub(super) fn accommodate(&self, mode: Mode, seats: u32) -> bool {
        let seats = i64::from(seats);
        match mode {
            Mode::Exempt => true,
            _ if seats > self.limit => self.executing == 0,
            _ => self.in_use + seats <= self.limit,
        }
    }

    /// Whether no seat is free.
    #[inline]
    pub(super) fn are_taken(&self) -> bool {
        self.in_use >= self.limit
    }

    /// A request starts.
    #[inline]
    pub(super) fn take(&mut self, work: WorkEstimate) {
        self.executing += 1;
        self.in_use += i64::from(work.max_seats());
    }
}
