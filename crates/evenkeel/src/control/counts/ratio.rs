//! Ratio histograms: how long a ratio had which value (OB-5).
//!
//! A value that is held for `k` nanoseconds counts as `k` observations. A change of the numerator costs one sum where the
//! numerator is small: time is added to the numerator that the ratio had. Buckets and integral follow from these times when the
//! histogram is read. For larger numerators, the bounds of the buckets are turned into whole numerators when the denominator
//! changes, and a change costs one product. The fields that a request changes are together at the beginning.

use evenkeel_engine::time::{Instant, Nanos};

use super::histogram::Shown;

/// How long a ratio had which value.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct RatioHistogram<const N: usize> {
    numerator: i64,
    /// The time up to which time is accounted for.
    now: Instant,
    /// Since when the numerator is what it is.
    since: Instant,
    /// Nanoseconds for which each small numerator was held since the denominator changed.
    small: [u64; SMALL],
    /// The same for larger ones: the sum of the numerators, each times its nanoseconds.
    integral: i128,
    /// The bucket of the last large numerator. Those of the bucket are above this one, ...
    above: i64,
    /// ... and not above this one.
    up_to: i64,
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

/// Numerators below this are small.
const SMALL: usize = 32;

// === impl RatioHistogram ===

impl<const N: usize> RatioHistogram<N> {
    /// A ratio of 0 to 1, from now on (OB-6).
    pub(crate) fn new(bounds: &'static [f64; N], now: Instant) -> Self {
        let mut ratio = Self {
            numerator: 0,
            now,
            since: now,
            small: [0; SMALL],
            integral: 0,
            above: 0,
            up_to: 0,
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
        self.end_span();
        self.numerator = numerator;
        if small(numerator).is_none() && (numerator <= self.above || numerator > self.up_to) {
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
        self.settle();
        self.sum = self.sum();
        self.integral = 0;
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
        shown.settle();
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
        shown.settle();
        let mut spans = [0; M];
        let all = shown.spans.into_iter().chain([shown.span_above]);
        spans.iter_mut().zip(all).for_each(|(span, shown)| *span = shown);
        (spans, shown.sum(), shown.denominator)
    }

    /// The integral of the ratio, once everything is [settled](Self::settle).
    #[expect(clippy::cast_precision_loss, reason = "a metric is a binary64")]
    fn sum(&self) -> f64 {
        if self.integral == 0 { self.sum } else { self.sum + self.integral as f64 / self.denominator as f64 }
    }

    /// Adds the time since the numerator is what it is.
    #[inline]
    fn end_span(&mut self) {
        let span = self.now - self.since;
        self.since = self.now;
        let nanos = u64::try_from(span).unwrap_or(0);
        match small(self.numerator).and_then(|index| self.small.get_mut(index)) {
            Some(small) => *small += nanos,
            None => self.add_to_bucket(nanos, span),
        }
    }

    #[inline]
    fn add_to_bucket(&mut self, nanos: u64, span: Nanos) {
        *self.spans.get_mut(self.bucket).unwrap_or(&mut self.span_above) += nanos;
        self.integral += i128::from(self.numerator) * i128::from(span);
    }

    /// Adds all time to the buckets and the integral.
    fn settle(&mut self) {
        self.end_span();
        let numerator = self.numerator;
        for (small, span) in (0..).zip(std::mem::replace(&mut self.small, [0; SMALL])) {
            if span > 0 {
                self.numerator = small;
                self.change_bucket();
                self.add_to_bucket(span, Nanos::try_from(span).unwrap_or(Nanos::MAX));
            }
        }
        self.numerator = numerator;
        self.change_bucket();
    }

    /// Finds the bucket of the numerator.
    fn change_bucket(&mut self) {
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

/// The place of a small numerator.
#[inline]
fn small(numerator: i64) -> Option<usize> {
    usize::try_from(numerator).ok().filter(|index| *index < SMALL)
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
