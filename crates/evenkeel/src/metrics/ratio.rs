//! Ratio histograms: how long a ratio had which value (OB-5).
//!
//! A value that is held for `k` nanoseconds counts as `k` observations. A change costs a few additions: the bounds of
//! the buckets are turned into whole numerators when the denominator changes, and a numerator that moves by a little
//! moves by one bucket at most, so there is neither a division nor a search.

use evenkeel_engine::time::Instant;

use super::histogram::Shown;

/// How long a ratio had which value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RatioHistogram<const N: usize> {
    bounds: &'static [f64; N],
    /// For each bucket the largest numerator that belongs to it.
    limits: [i64; N],
    /// Nanoseconds in each bucket.
    spans: [u64; N],
    above: u64,
    /// The integral of the ratio up to the last change of the denominator.
    sum: f64,
    /// The integral of the numerator since then.
    integral: i128,
    numerator: i64,
    denominator: i64,
    bucket: usize,
    /// Up to when time is accounted for.
    since: Instant,
}

// === impl RatioHistogram ===

impl<const N: usize> RatioHistogram<N> {
    /// Nothing of one, from now on (OB-6).
    pub(crate) fn new(bounds: &'static [f64; N], now: Instant) -> Self {
        let mut ratio = Self {
            bounds,
            limits: [0; N],
            spans: [0; N],
            above: 0,
            sum: 0.0,
            integral: 0,
            numerator: 0,
            denominator: 0,
            bucket: 0,
            since: now,
        };
        ratio.set_denominator(now, 1);
        ratio
    }

    /// The numerator changes.
    #[inline]
    pub(crate) fn set(&mut self, now: Instant, numerator: i64) {
        if numerator != self.numerator {
            self.account(now);
            self.numerator = numerator;
            self.find_bucket();
        }
    }

    /// The numerator is this, and has been since time was last accounted for.
    pub(crate) fn correct(&mut self, numerator: i64) {
        self.numerator = numerator;
        self.find_bucket();
    }

    /// The denominator changes. Below one it is one.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "both are small numbers of seats")]
    pub(crate) fn set_denominator(&mut self, now: Instant, denominator: i64) {
        let denominator = denominator.max(1);
        if denominator == self.denominator {
            return;
        }
        self.account(now);
        self.sum = self.sum();
        self.integral = 0;
        self.denominator = denominator;
        for (limit, bound) in self.limits.iter_mut().zip(self.bounds) {
            let is_within = |numerator: i64| numerator as f64 / denominator as f64 <= *bound;
            // The product may be off by one where the quotient is what counts.
            let near = (*bound * denominator as f64) as i64;
            *limit = (near - 1..=near + 1).rfind(|numerator| is_within(*numerator)).unwrap_or(near);
        }
        self.find_bucket();
    }

    /// Accounts for the time that has passed. A time before the last one counts as no time.
    #[inline]
    pub(crate) fn account(&mut self, now: Instant) {
        let Ok(elapsed) = u64::try_from(now - self.since) else { return };
        self.since = now;
        match self.spans.get_mut(self.bucket) {
            Some(span) => *span += elapsed,
            None => self.above += elapsed,
        }
        self.integral += i128::from(self.numerator) * i128::from(elapsed);
    }

    /// The histogram up to when time is accounted for.
    pub(crate) fn show(&self) -> Shown {
        let finite = self.bounds.iter().copied().zip(self.spans);
        Shown {
            sum: self.sum(),
            count: self.spans.iter().sum::<u64>() + self.above,
            buckets: finite.chain([(f64::INFINITY, self.above)]).collect(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a metric is a binary64")]
    fn sum(&self) -> f64 {
        if self.integral == 0 { self.sum } else { self.sum + self.integral as f64 / self.denominator as f64 }
    }

    #[inline]
    fn find_bucket(&mut self) {
        while self.bucket < N && self.numerator > self.limits[self.bucket] {
            self.bucket += 1;
        }
        while self.bucket > 0 && self.numerator <= self.limits[self.bucket - 1] {
            self.bucket -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    static BOUNDS: [f64; 10] = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];

    #[derive(Debug, Clone)]
    enum Change {
        Numerator(i64),
        Denominator(i64),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![(0_i64..700).prop_map(Change::Numerator), (-1_i64..600).prop_map(Change::Denominator)]
    }

    proptest! {
        /// OB-5, word for word: every span is added to the bucket of its ratio.
        #[test]
        fn ob_5_the_histogram_is_what_a_slow_integrator_finds(
            changes in proptest::collection::vec((0_i64..5_000_000_000, change()), 0..60),
        ) {
            let mut ratio = RatioHistogram::new(&BOUNDS, Instant::from_nanos(7));
            let (mut now, mut numerator, mut denominator) = (7_i64, 0_i64, 1_i64);
            let (mut spans, mut above, mut sum) = ([0_u64; 10], 0_u64, 0.0_f64);
            for (elapsed, change) in changes {
                now += elapsed;
                #[expect(clippy::cast_precision_loss, reason = "a slow integrator")]
                let value = numerator as f64 / denominator as f64;
                match BOUNDS.iter().position(|bound| value <= *bound) {
                    Some(bucket) => spans[bucket] += elapsed.unsigned_abs(),
                    None => above += elapsed.unsigned_abs(),
                }
                #[expect(clippy::cast_precision_loss, reason = "a slow integrator")]
                { sum += value * elapsed as f64; }
                match change {
                    Change::Numerator(new) => { numerator = new; ratio.set(Instant::from_nanos(now), new); }
                    Change::Denominator(new) => {
                        denominator = new.max(1);
                        ratio.set_denominator(Instant::from_nanos(now), new);
                    }
                }
            }
            ratio.account(Instant::from_nanos(now));
            let shown = ratio.show();
            let counts: Vec<u64> = shown.buckets.iter().map(|(_, count)| *count).collect();
            prop_assert_eq!(&counts[..10], &spans[..]);
            prop_assert_eq!(counts[10], above);
            prop_assert_eq!(shown.count, (now - 7).unsigned_abs());
            prop_assert!((shown.sum - sum).abs() <= sum.abs() * 1e-12, "{} is not {sum}", shown.sum);
        }
    }

    #[test]
    fn a_clock_that_goes_back_loses_nothing() {
        let mut ratio = RatioHistogram::new(&BOUNDS, Instant::from_nanos(10));
        ratio.set(Instant::from_nanos(5), 1);
        ratio.account(Instant::from_nanos(12));
        let shown = ratio.show();
        assert_eq!((shown.count, shown.sum), (2, 2.0));
    }
}
