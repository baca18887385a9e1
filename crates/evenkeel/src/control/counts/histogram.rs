//! A histogram with fixed buckets and plain integers: its owner has a lock around it.

/// The upper bounds of a histogram's buckets. A value that equals a bound is below it.
#[derive(Debug)]
pub(crate) struct Bounds<const N: usize> {
    /// The bounds, in the unit in which values are observed.
    pub(crate) values: [i64; N],
    /// How many of these make one of the unit that is shown.
    pub(crate) per_unit: f64,
}

/// Observations in buckets. Sums are integers, so that nothing is lost however long the server runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Histogram<const N: usize> {
    counts: [u64; N],
    above: u64,
    sum: i128,
}

/// A histogram as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    pub(crate) sum: f64,
    pub(crate) count: u64,
    /// Upper bounds and how many are between a bound and the one before.
    pub(crate) buckets: Vec<(f64, u64)>,
}

// === impl Histogram ===

impl<const N: usize> Histogram<N> {
    pub(crate) const fn new() -> Self {
        Self { counts: [0; N], above: 0, sum: 0 }
    }

    #[inline]
    pub(crate) fn observe(&mut self, bounds: &Bounds<N>, value: i64) {
        // Most values are in one of the first buckets, which a search from the middle would find later.
        match bounds.values.iter().position(|bound| value <= *bound) {
            Some(bucket) => self.counts[bucket] += 1,
            None => self.above += 1,
        }
        self.sum += i128::from(value);
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.above
    }

    /// Adds what was observed to other counts, of which the last is for values above all bounds.
    pub(crate) fn add_to<const M: usize>(&self, counts: &mut [u64; M], sum: &mut i128) {
        let observed = self.counts.iter().copied().chain([self.above]);
        counts.iter_mut().zip(observed).for_each(|(count, more)| *count += more);
        *sum += self.sum;
    }

    #[expect(clippy::cast_precision_loss, reason = "a metric is a binary64")]
    pub(crate) fn show(&self, bounds: &Bounds<N>) -> Shown {
        let finite = bounds.values.iter().zip(&self.counts);
        let finite = finite.map(|(bound, count)| (*bound as f64 / bounds.per_unit, *count));
        Shown {
            sum: self.sum as f64 / bounds.per_unit,
            count: self.count(),
            buckets: finite.chain([(f64::INFINITY, self.above)]).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_is_below_it() {
        let bounds = Bounds { values: [0, 5_000_000], per_unit: 1e9 };
        let mut histogram = Histogram::new();
        for value in [0, 1, 5_000_000, 5_000_001] {
            histogram.observe(&bounds, value);
        }
        let buckets = vec![(0.0, 1), (0.005, 2), (f64::INFINITY, 1)];
        assert_eq!(histogram.show(&bounds), Shown { sum: 0.010_000_002, count: 4, buckets });
    }
}
