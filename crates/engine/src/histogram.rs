//! `Histogram`: how long things took, in little memory whatever their number.

use crate::time::Nanos;

/// Counts durations in buckets, of which each is less than 1 % of its value wide. The shortest are a microsecond wide.
///
/// ```
/// use evenkeel_engine::Histogram;
///
/// let mut waits = Histogram::default();
/// (1..=1000).for_each(|ms| waits.record(ms * 1_000_000));
/// let p99 = waits.percentile(0.99);
/// assert!((985_000_000..=995_000_000).contains(&p99));
/// assert_eq!((waits.count(), waits.max()), (1000, 1_000_000_000));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Grows up to the longest duration that there was.
    counts: Vec<u64>,
    zeros: u64,
    count: u64,
    max: Nanos,
    sum: i128,
}

/// Nanoseconds are counted in units of 1,024.
const UNIT_BITS: u32 = 10;
/// Each power of two has so many buckets, as a power of two.
const PART_BITS: u32 = 7;

// === impl Histogram ===

impl Histogram {
    /// Counts a duration. One below zero is taken for none.
    #[inline]
    pub fn record(&mut self, duration: Nanos) {
        self.count += 1;
        if duration <= 0 {
            self.zeros += 1;
            return;
        }
        self.max = self.max.max(duration);
        self.sum += i128::from(duration);
        let bucket = bucket_of(duration);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
    }

    /// Counts all that the other has counted.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.zeros += other.zeros;
        self.count += other.count;
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest; zero if there is none.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The average; zero if there is none.
    pub fn mean(&self) -> Nanos {
        Nanos::try_from(self.sum / i128::from(self.count.max(1))).unwrap_or(Nanos::MAX)
    }

    /// The duration that this part of them does not exceed, from 0 to 1; within 0.5 %. Zero if there is none.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank")]
    pub fn percentile(&self, part: f64) -> Nanos {
        let rank = ((self.count as f64 * part).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = self.zeros;
        if seen >= rank {
            return 0;
        }
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_of(bucket).min(self.max);
            }
        }
        self.max
    }
}

#[inline]
fn bucket_of(duration: Nanos) -> usize {
    let units = duration.unsigned_abs() >> UNIT_BITS;
    // Below the first power of two that has all its buckets, each unit is a bucket.
    let shift = (u64::BITS - units.leading_zeros()).saturating_sub(PART_BITS + 1);
    let part = usize::try_from(units >> shift).unwrap_or(usize::MAX);
    ((shift as usize) << PART_BITS) + part
}

fn middle_of(bucket: usize) -> Nanos {
    let shift = (bucket >> PART_BITS).saturating_sub(1);
    let part = bucket - (shift << PART_BITS);
    let low = (part as u128) << shift << UNIT_BITS;
    let width = 1_u128 << shift << UNIT_BITS;
    Nanos::try_from(low + width / 2).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bucket_is_near_its_values(duration in 1..Nanos::MAX) {
            let middle = middle_of(bucket_of(duration));
            let error = (i128::from(middle) - i128::from(duration)).abs();
            prop_assert!(error <= i128::from(duration) / 200 + 512, "{duration} {middle}");
        }

        #[test]
        fn buckets_are_in_order(one in 1..Nanos::MAX, other in 1..Nanos::MAX) {
            prop_assert_eq!(bucket_of(one) <= bucket_of(other), one <= other || bucket_of(one) == bucket_of(other));
        }
    }

    #[test]
    fn percentiles_of_few() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.percentile(0.5), histogram.mean(), histogram.max()), (0, 0, 0));
        for duration in [0, -5, 0, 7_000_000] {
            histogram.record(duration);
        }
        assert_eq!([0.5, 0.75].map(|part| histogram.percentile(part)), [0, 0]);
        assert!((6_970_000..=7_000_000).contains(&histogram.percentile(0.76)));
        let mut both = histogram.clone();
        both.merge(&histogram);
        assert_eq!((both.count(), both.max(), both.mean()), (8, 7_000_000, 1_750_000));
    }
}
