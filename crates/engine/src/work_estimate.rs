//! How much work a request is expected to be (WE-1).

use crate::time::Nanos;

/// The seats that a request takes, and for how long it keeps some after its handler has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkEstimate {
    /// Seats while the handler runs.
    pub initial_seats: u32,
    /// Seats while the request lingers, to pay for what it causes elsewhere.
    pub final_seats: u32,
    /// How long the request lingers.
    pub additional_latency: Nanos,
}

// === impl WorkEstimate ===

impl WorkEstimate {
    /// An ordinary request: one seat, and no lingering.
    pub const ONE_SEAT: Self = Self::seats(1);

    /// That many seats while the handler runs, and no lingering.
    pub const fn seats(initial_seats: u32) -> Self {
        Self { initial_seats, final_seats: 0, additional_latency: 0 }
    }

    /// The seats that are set aside in both phases.
    pub fn max_seats(self) -> u32 {
        self.initial_seats.max(self.final_seats)
    }
}

impl Default for WorkEstimate {
    fn default() -> Self {
        Self::ONE_SEAT
    }
}
