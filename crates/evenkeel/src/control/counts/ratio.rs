//! Ratio histograms: how long a ratio had which value (OB-5).
//!
//! A value that is held for `k` nanoseconds counts as `k` observations. A change of the numerator costs one product: the
//! bounds of the buckets are turned into whole numerators when the denominator changes, time is added to a bucket when
//! the ratio leaves it, and what a request changes lies together at the beginning.

use evenkeel_engine::time::Instant;

use super::histogram::Shown;

/// How long a ratio had which value.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct RatioHistogram<const N: usize> {
    /// The changes of the numerator since the denominator changed, each times the moment at which it came. So the
    /// integral is what the numerator makes of the time from zero to now, less this.
    moments: i128,
    numerator: i64,
    /// The numerators of the present bucket are above this one, ...
    above: i64,
    /// ... and not above this one.
    up_to: i64,
    /// Up to when time is accounted for.
    now: Instant,
    /// Since when the ratio has been in the present bucket.
    since: Instant,
    bucket: usize,
    /// Nanoseconds in each bucket, and above all.
    spans: [u64; N],
    span_above: u64,
    /// For each bucket the largest numerator that belongs to it.
    limits: [i64; N],
    bounds: &'static [f64; N],
    /// The integral of the ratio up to the last change of the denominator.
    sum: f64,
    denominator: i64,
}

// === impl RatioHistogram ===

impl<const N: usize> RatioHistogram<N> {
    /// Nothing of one, from now on (OB-6).
    pub(crate) fn new(bounds: &'static [f64; N], now: Instant) -> Self {
        let mut ratio = Self {
            moments: 0,
            numerator: 0,
            above: 0,
            up_to: 0,
            now,
            since: now,
            bucket: 0,
            spans: [0; N],
            span_above: 0,
            limits: [0; N],
            bounds,
            sum: 0.0,
            denominator: 0,
        };
        ratio.set_denominator(now, 1);
        ratio
    }

    /// The numerator changes.
    #[inline]
    pub(crate) fn set(&mut self, now: Instant, numerator: i64) {
        if numerator != self.numerator {
            self.account(now);
            self.correct(numerator);
        }
    }

    /// The numerator is this, and has been since time was last accounted for.
    #[inline]
    pub(crate) fn correct(&mut self, numerator: i64) {
        let change = numerator.wrapping_sub(self.numerator);
        self.moments += i128::from(change) * i128::from(self.now.as_nanos());
        self.numerator = numerator;
        if numerator <= self.above || numerator > self.up_to {
            self.change_bucket();
        }
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
        self.moments = self.moment();
        self.denominator = denominator;
        for (limit, bound) in self.limits.iter_mut().zip(self.bounds) {
            let is_within = |numerator: i64| numerator as f64 / denominator as f64 <= *bound;
            // The product may be off by one where the quotient is what counts.
            let near = (*bound * denominator as f64) as i64;
            *limit = (near - 1..=near + 1).rfind(|numerator| is_within(*numerator)).unwrap_or(near);
        }
        self.change_bucket();
    }

    /// Accounts for the time that has passed. A time before the last one counts as no time.
    #[inline]
    pub(crate) fn account(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// The histogram up to when time is accounted for.
    pub(crate) fn show(&self) -> Shown {
        let mut shown = *self;
        shown.end_span();
        let finite = shown.bounds.iter().copied().zip(shown.spans);
        Shown {
            sum: shown.sum(),
            count: shown.spans.iter().sum::<u64>() + shown.span_above,
            buckets: finite.chain([(f64::INFINITY, shown.span_above)]).collect(),
        }
    }

    /// Nanoseconds in each bucket, of which the last is above all bounds; the integral of the ratio; and the denominator.
    pub(crate) fn spans<const M: usize>(&self) -> ([u64; M], f64, i64) {
        let mut shown = *self;
        shown.end_span();
        let mut spans = [0; M];
        let all = shown.spans.into_iter().chain([shown.span_above]);
        spans.iter_mut().zip(all).for_each(|(span, shown)| *span = shown);
        (spans, shown.sum(), shown.denominator)
    }

    #[expect(clippy::cast_precision_loss, reason = "a metric is a binary64")]
    fn sum(&self) -> f64 {
        let integral = self.moment() - self.moments;
        if integral == 0 { self.sum } else { self.sum + integral as f64 / self.denominator as f64 }
    }

    /// What the numerator makes of the time from zero to now.
    fn moment(&self) -> i128 {
        i128::from(self.numerator) * i128::from(self.now.as_nanos())
    }

    /// Adds the time since the ratio came into the present bucket.
    #[inline]
    fn end_span(&mut self) {
        let span = u64::try_from(self.now - self.since).unwrap_or(0);
        self.since = self.now;
        *self.spans.get_mut(self.bucket).unwrap_or(&mut self.span_above) += span;
    }

    /// The ratio leaves its bucket, or the buckets have changed.
    #[inline]
    fn change_bucket(&mut self) {
        self.end_span();
        while self.bucket < N && self.numerator > self.limits[self.bucket] {
            self.bucket += 1;
        }
        while self.bucket > 0 && self.numerator <= self.limits[self.bucket - 1] {
            self.bucket -= 1;
        }
        self.above = if self.bucket == 0 { i64::MIN } else { self.limits[self.bucket - 1] };
        self.up_to = self.limits.get(self.bucket).copied().unwrap_or(i64::MAX);
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
