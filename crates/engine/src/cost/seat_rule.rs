//! `SeatRule`: how many seats a cost is (CO-3).

/// How many seats a request takes by what it costs.
///
/// ```
/// use evenkeel_engine::cost::SeatRule;
///
/// let rule = SeatRule::new(200.0, 10);
/// assert_eq!([0.0, 1.0, 200.0, 412.0, 1e9].map(|cost| rule.seats(cost)), [1, 1, 1, 3, 10]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeatRule {
    cost_per_seat: f64,
    seats_max: u32,
}

// === impl SeatRule ===

impl SeatRule {
    /// One seat for each so much of the cost, and so many at most. Both are above zero.
    ///
    /// # Panics
    ///
    /// If one of them is not.
    pub fn new(cost_per_seat: f64, seats_max: u32) -> Self {
        assert!(cost_per_seat > 0.0 && seats_max > 0, "a seat is some cost, and a request has a seat");
        Self { cost_per_seat, seats_max }
    }

    /// The seats of a request that costs so much: rounded up, at least one.
    #[inline]
    pub fn seats(&self, cost: f64) -> u32 {
        let seats = cost / self.cost_per_seat;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast stays within bounds")]
        let whole = seats as u32;
        // Rounded up without a call.
        whole.saturating_add(u32::from(f64::from(whole) < seats)).clamp(1, self.seats_max)
    }

    /// What a request costs at most that takes so many seats.
    #[inline]
    pub fn cost_of(&self, seats: u32) -> f64 {
        if seats >= self.seats_max { f64::INFINITY } else { f64::from(seats) * self.cost_per_seat }
    }

    /// How much of the cost is one seat.
    pub fn cost_per_seat(&self) -> f64 {
        self.cost_per_seat
    }

    /// The most seats that a request takes.
    pub fn seats_max(&self) -> u32 {
        self.seats_max
    }
}
