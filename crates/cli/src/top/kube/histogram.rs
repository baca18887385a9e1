//! Histograms of two scrapes, and the observations between them.

/// A histogram as a scrape has it: the counts up to each bound, with all that are below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram {
    /// By bound, in order; the last one is infinite if the server keeps to the format.
    buckets: Vec<(f64, f64)>,
    pub(super) sum: f64,
    pub(super) count: f64,
}

/// The most buckets of a histogram: more than any has that is wanted.
const BUCKETS_MAX: usize = 128;

// === impl Histogram ===

impl Histogram {
    /// Adds the count up to a bound. Counts of several series with the same bound add up.
    pub(super) fn add_bucket(&mut self, bound: f64, count: f64) {
        if bound.is_nan() {
            return;
        }
        let at = self.buckets.partition_point(|(other, _)| *other < bound);
        let has_room = self.buckets.len() < BUCKETS_MAX;
        match self.buckets.get_mut(at) {
            // Equal as texts of the same server are.
            Some((other, sum)) if other.total_cmp(&bound).is_eq() => *sum += count,
            _ if has_room => self.buckets.insert(at, (bound, count)),
            _ => {}
        }
    }

    /// Adds the observations of another histogram with the same bounds.
    pub(super) fn add(&mut self, other: &Self) {
        for (bound, count) in &other.buckets {
            self.add_bucket(*bound, *count);
        }
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The observations between an earlier scrape and this one; all of them if the server has started anew in between.
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

    /// The finite bounds, and how many observations are in each bucket, with those above all bounds at the end.
    pub(super) fn buckets(&self) -> (Vec<f64>, Vec<u64>) {
        let bounds: Vec<f64> = self.buckets.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite()).collect();
        let mut below = 0.0;
        let mut counts: Vec<u64> = Vec::with_capacity(self.buckets.len());
        for (_, up_to) in &self.buckets {
            counts.push(count(up_to - below));
            below = up_to.max(below);
        }
        counts.resize(bounds.len() + 1, 0);
        (bounds, counts)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates, also at zero")]
fn count(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(f64, f64)]) -> Histogram {
        let mut histogram = Histogram::default();
        for (bound, count) in buckets {
            histogram.add_bucket(*bound, *count);
        }
        histogram.count = buckets.last().map_or(0.0, |(_, count)| *count);
        histogram
    }

    const INF: f64 = f64::INFINITY;

    #[test]
    fn between_two_scrapes() {
        let before = histogram(&[(0.1, 50.0), (1.0, 60.0), (INF, 60.0)]);
        let now = histogram(&[(0.1, 50.0), (1.0, 70.0), (INF, 73.0)]);
        assert_eq!(now.since(&before).buckets(), (vec![0.1, 1.0], vec![0, 10, 3]));
        // The server has started anew: all that it counts came since then.
        assert_eq!(before.since(&now), before);
        let other_bounds = histogram(&[(0.5, 100.0), (INF, 100.0)]);
        assert_eq!(other_bounds.since(&now), other_bounds);
    }

    #[test]
    fn buckets_are_as_the_server_has_them() {
        assert_eq!(Histogram::default().buckets(), (vec![], vec![0]));
        // Neither an infinite bucket nor the order of counts is to be relied upon.
        assert_eq!(histogram(&[(0.1, 5.0), (0.2, 4.0), (0.3, 6.0)]).buckets(), (vec![0.1, 0.2, 0.3], vec![5, 0, 1, 0]));
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
