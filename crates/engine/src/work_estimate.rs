//! How much work a request is expected to be (WE-1).

use crate::SeatSeconds;
use crate::time::Nanos;

/// The seats that a request takes, and for how long it keeps some after its handler has returned.
///
/// Not `#[non_exhaustive]`: it is what Kubernetes estimates; literals can end with `..WorkEstimate::ONE_SEAT`.
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

    /// No seat at all, for requests that only wait at the server, such as long polls.
    pub const NO_SEAT: Self = Self::seats(0);

    /// So many seats while the handler runs, and no lingering.
    pub const fn seats(initial_seats: u32) -> Self {
        Self { initial_seats, final_seats: 0, additional_latency: 0 }
    }

    /// The seats that are set aside in both phases.
    pub fn max_seats(self) -> u32 {
        self.initial_seats.max(self.final_seats)
    }

    /// Whether the request takes no seat in either phase.
    #[inline]
    pub fn is_seatless(self) -> bool {
        self.max_seats() == 0
    }

    /// The work of lingering (FQ-6).
    #[inline]
    pub(crate) fn final_work(self) -> SeatSeconds {
        if self.final_seats == 0 {
            return SeatSeconds::ZERO;
        }
        SeatSeconds::of(f64::from(self.final_seats), self.additional_latency)
    }

    /// A request that would linger on more seats than the level has lingers longer on those it has (FQ-23, step 2).
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "FQ-3 asks for binary64")]
    pub(crate) fn narrowed(self, limit: i64) -> Self {
        match u32::try_from(limit) {
            Ok(final_seats) if self.final_seats > final_seats => {
                let additional_latency = self.final_work().span_per_seat(limit as f64);
                Self { final_seats, additional_latency, ..self }
            }
            _ => self,
        }
    }

    /// The same on that many seats at most, while it runs and while it lingers.
    pub(crate) fn fitted(self, widest: i64) -> Self {
        let most = u32::try_from(widest).unwrap_or(u32::MAX);
        Self { initial_seats: self.initial_seats.min(most), ..self.narrowed(widest) }
    }
}

impl Default for WorkEstimate {
    fn default() -> Self {
        Self::ONE_SEAT
    }
}
