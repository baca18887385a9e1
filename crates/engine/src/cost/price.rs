//! `SeatTimePrice`: how much seat-time a unit of cost stands for in the account of a flow (CO-1).

/// What a unit of cost is in seat-time, on average: the rate at which costs are charged to flows.
///
/// Flows take turns by the seat-time that they have used. Where an operator says what requests cost, they take turns by that: each is charged
/// its cost at one price for all, and the price is such that all of them together are charged the seat-time that they have used. So
/// flows of other schemas in the same level, which are charged by the time, are neither better nor worse off.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SeatTimePrice {
    seat_time: f64,
    cost: f64,
    seen: u32,
}

/// After so many requests, the newest one has the weight [`WEIGHT`].
const SETTLED: u32 = 256;
const WEIGHT: f64 = 1.0 / 256.0;

// === impl SeatTimePrice ===

impl SeatTimePrice {
    /// A request held its seats for so many seat-nanoseconds, and cost so much.
    pub fn learn(&mut self, seat_time: f64, cost: f64) {
        self.seen = self.seen.saturating_add(1).min(SETTLED);
        let weight = if self.seen < SETTLED { 1.0 / f64::from(self.seen) } else { WEIGHT };
        self.seat_time += (seat_time.max(0.0) - self.seat_time) * weight;
        self.cost += (cost - self.cost) * weight;
    }

    /// The seat-nanoseconds of a unit of cost; `None` as long as nothing is known.
    #[inline]
    pub fn per_unit(&self) -> Option<f64> {
        (self.cost > 0.0).then(|| self.seat_time / self.cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn co_1_all_together_pay_what_they_used() {
        let mut price = SeatTimePrice::default();
        assert_eq!(price.per_unit(), None);
        price.learn(100.0, 0.0);
        assert_eq!(price.per_unit(), None);
        for _ in 0..10_000 {
            price.learn(100.0, 1.0);
            price.learn(100.0, 39.0);
        }
        let per_unit = price.per_unit().unwrap();
        assert!((per_unit - 5.0).abs() < 0.05, "{per_unit}");
    }
}
