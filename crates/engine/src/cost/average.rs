//! `Average`: the mean cost of the latest requests of a class (CO-3).

/// An average in which the newest request has a weight of 1/8. The first eight requests all have the same weight.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Average {
    mean: f64,
    seen: u64,
}

/// After so many requests, the weight of the newest one is [`WEIGHT`].
const SETTLED: u64 = 8;
const WEIGHT: f64 = 0.125;
/// One request moves an average by at most this factor.
const FACTOR_MAX: f64 = 4.0;

// === impl Average ===

impl Average {
    #[inline]
    pub(super) fn learn(&mut self, cost: f64) {
        self.seen = self.seen.saturating_add(1);
        // A division takes as long as all the rest.
        #[expect(clippy::cast_precision_loss, reason = "less than 8")]
        let weight = if self.seen < SETTLED { 1.0 / self.seen as f64 } else { WEIGHT };
        let moved = self.mean + (cost - self.mean) * weight;
        // Any cost is more than four times nothing, so the bound does not hold for a mean of zero: the second request of a class
        // whose first one was free sets the mean.
        self.mean = if self.mean > 0.0 { moved.clamp(self.mean / FACTOR_MAX, self.mean * FACTOR_MAX) } else { moved };
    }

    #[inline]
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    #[inline]
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn co_3_the_first_eight_count_alike_and_later_ones_an_eighth() {
        let mut average = Average::default();
        for cost in 1..=8 {
            average.learn(f64::from(cost));
        }
        assert!((average.mean() - 4.5).abs() < 1e-12);
        average.learn(12.5);
        assert!((average.mean() - 5.5).abs() < 1e-12);
        assert_eq!(average.seen(), 9);
    }

    #[test]
    fn co_3_one_request_moves_it_at_most_fourfold() {
        let mut average = Average::default();
        average.learn(1.0);
        average.learn(1e12);
        assert!((average.mean() - 4.0).abs() < 1e-12);
        average.learn(0.0);
        assert!(average.mean() >= 1.0);
    }

    #[test]
    fn a_class_that_was_free_can_become_dear() {
        let mut average = Average::default();
        average.learn(0.0);
        average.learn(10.0);
        assert!((average.mean() - 5.0).abs() < 1e-12);
    }
}
