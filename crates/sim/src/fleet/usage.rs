//! The seats that an instance uses over time, or all of them together.

use evenkeel_engine::time::Nanos;

/// Seats in use since counting began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SeatUsage {
    seats: i64,
    most: i64,
    seat_time: i128,
    from: Nanos,
    as_of: Nanos,
}

// === impl SeatUsage ===

impl SeatUsage {
    /// So many seats are in use from now on.
    pub(super) fn set(&mut self, now: Nanos, seats: i64) {
        self.advance(now);
        self.seats = seats;
        self.most = self.most.max(seats);
    }

    pub(super) fn seats(&self) -> i64 {
        self.seats
    }

    /// Counting begins.
    pub(super) fn reset(&mut self, now: Nanos) {
        *self = Self { seats: self.seats, most: self.seats, seat_time: 0, from: now, as_of: now };
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        self.seat_time += i128::from(self.seats) * i128::from(now - self.as_of);
        self.as_of = now;
    }

    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    pub(super) fn mean(&self) -> f64 {
        let span = self.as_of - self.from;
        if span > 0 { self.seat_time as f64 / span as f64 } else { 0.0 }
    }

    pub(super) fn most(&self) -> i64 {
        self.most
    }
}
