//! Histograms of two scrapes: what came between them, and its quantiles.

/// A histogram as a scrape has it: the counts up to each bound, with all that are below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram {
    /// By bound, in order; the last one is infinite if the server keeps to the format.
    buckets: Vec<(f64, f64)>,
    pub(super) sum: f64,
    pub(super) count: f64,
}

/// More buckets than any histogram has that we want.
const BUCKETS_MAX: usize = 128;

// === impl Histogram ===

impl Histogram {
    /// Adds the count up to a bound. Counts of several series with the same bound add up.
    pub(super) fn add_bucket(&mut self, bound: f64, count: f64) {
        let at = self.buckets.partition_point(|(other, _)| *other < bound);
        match self.buckets.get_mut(at) {
            // Equal as texts of the same server are.
            Some((other, sum)) if other.total_cmp(&bound).is_eq() => *sum += count,
            _ if self.buckets.len() < BUCKETS_MAX && !bound.is_nan() => self.buckets.insert(at, (bound, count)),
            _ => {}
        }
    }

    /// What came between an earlier scrape and this one; all of it if the server has started anew in between.
    pub(super) fn since(&self, before: &Self) -> Self {
        let is_same_shape = self.buckets.len() == before.buckets.len();
        let pairs = || self.buckets.iter().zip(&before.buckets);
        if self.count < before.count || !is_same_shape || pairs().any(|(now, before)| now.1 < before.1) {
            return self.clone();
        }
        Self {
            buckets: pairs().map(|(now, before)| (now.0, now.1 - before.1)).collect(),
            sum: self.sum - before.sum,
            count: self.count - before.count,
        }
    }

    /// The mean of all observations.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// Which value a part of all observations is at most, as `histogram_quantile` of Prometheus estimates it: evenly
    /// spread inside a bucket, and the largest finite bound for what is beyond it.
    pub(super) fn quantile(&self, part: f64) -> Option<f64> {
        let all = self.buckets.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
        let rank = part.clamp(0.0, 1.0) * all;
        let at = self.buckets.iter().position(|(_, count)| *count >= rank)?;
        let (upper, count) = self.buckets[at];
        let (lower, below) = at.checked_sub(1).map_or((0.0, 0.0), |below| self.buckets[below]);
        if upper.is_infinite() {
            return Some(lower);
        }
        if upper <= 0.0 || count <= below {
            return Some(upper.max(0.0));
        }
        Some(lower + (upper - lower) * ((rank - below) / (count - below)).clamp(0.0, 1.0))
    }

    /// Between which bounds all observations are: the lower bound of the lowest bucket that has any, and the upper bound
    /// of the highest.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        let mut below = 0.0;
        let mut lower = 0.0;
        let mut range = None;
        for (bound, count) in &self.buckets {
            if *count > below {
                // Nothing is known above the largest finite bound.
                let upper = if bound.is_infinite() { lower } else { *bound };
                let min = range.map_or(if *bound <= 0.0 { 0.0 } else { lower }, |(min, _)| min);
                range = Some((min, upper));
            }
            below = *count;
            lower = *bound;
        }
        range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(f64, f64)]) -> Histogram {
        let mut histogram = Histogram::default();
        buckets.iter().for_each(|(bound, count)| histogram.add_bucket(*bound, *count));
        histogram.count = buckets.last().map_or(0.0, |(_, count)| *count);
        histogram
    }

    const INF: f64 = f64::INFINITY;

    #[track_caller]
    fn assert_near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{found:?} is not {expected}");
    }

    #[test]
    fn quantiles_are_those_of_prometheus() {
        let waits = histogram(&[(0.0, 0.0), (0.1, 50.0), (0.2, 90.0), (1.0, 99.0), (INF, 100.0)]);
        assert_near(waits.quantile(0.5), 0.1);
        assert_near(waits.quantile(0.25), 0.05);
        assert_near(waits.quantile(0.7), 0.15);
        assert_near(waits.quantile(0.99), 1.0);
        // Nobody knows how long the longest waited.
        assert_near(waits.quantile(1.0), 1.0);
        assert_near(histogram(&[(0.0, 10.0), (0.1, 10.0), (INF, 10.0)]).quantile(0.99), 0.0);
        assert_eq!(histogram(&[(0.1, 0.0), (INF, 0.0)]).quantile(0.5), None);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn between_two_scrapes() {
        let before = histogram(&[(0.1, 50.0), (1.0, 60.0), (INF, 60.0)]);
        let now = histogram(&[(0.1, 50.0), (1.0, 70.0), (INF, 70.0)]);
        let between = now.since(&before);
        assert_near(between.quantile(0.5), 0.55);
        assert_eq!(between.count.to_bits(), 10.0_f64.to_bits());
        assert_eq!(between.range(), Some((0.1, 1.0)));
        // The server has started anew: all that it counts came since then.
        assert_eq!(before.since(&now), before);
        let other_bounds = histogram(&[(0.5, 100.0), (INF, 100.0)]);
        assert_eq!(other_bounds.since(&now), other_bounds);
    }

    #[test]
    fn the_range_is_that_of_the_buckets_with_observations() {
        assert_eq!(histogram(&[(0.0, 5.0), (0.1, 5.0), (INF, 5.0)]).range(), Some((0.0, 0.0)));
        assert_eq!(histogram(&[(0.0, 0.0), (0.1, 5.0), (0.2, 5.0), (0.3, 6.0), (INF, 6.0)]).range(), Some((0.0, 0.3)));
        assert_eq!(histogram(&[(0.5, 0.0), (1.0, 0.0), (INF, 6.0)]).range(), Some((1.0, 1.0)));
        assert_eq!(histogram(&[(0.5, 0.0), (INF, 0.0)]).range(), None);
    }

    #[test]
    fn buckets_of_several_series_add_up_in_any_order() {
        let mut sum = Histogram::default();
        for (bound, count) in [(INF, 2.0), (0.1, 1.0), (0.1, 1.0), (INF, 2.0), (f64::NAN, 9.0)] {
            sum.add_bucket(bound, count);
        }
        assert_eq!(sum.buckets, [(0.1, 2.0), (INF, 4.0)]);
    }
}
