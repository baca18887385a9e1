//! `FirstTokens`: how long clients waited for the first tokens of their streams, for a metric (LM-8).

use std::iter::once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A histogram that threads share.
#[derive(Debug, Default)]
pub(super) struct FirstTokens {
    /// How many waits there were up to each bound and above the one before, and last those above all.
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
}

/// The waits for the first tokens of one model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FirstTokenSeries {
    pub(crate) model: Box<str>,
    pub(crate) sum_seconds: f64,
    pub(crate) count: u64,
    /// Upper bounds in seconds, and how many are between a bound and the one before.
    pub(crate) buckets: Vec<(f64, u64)>,
}

/// In seconds. A wait may be that for a seat too, which is two minutes at most by default.
const BOUNDS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0];

// === impl FirstTokens ===

impl FirstTokens {
    pub(super) fn observe(&self, wait: Duration) {
        let seconds = wait.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Adds all that another one has observed.
    pub(super) fn add(&self, other: &Self) {
        let pairs = self.counts.iter().zip(&other.counts).chain(once((&self.sum_us, &other.sum_us)));
        for (sum, more) in pairs {
            sum.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The series of this model; `None` if nothing was observed.
    pub(super) fn series(&self, model: &str) -> Option<FirstTokenSeries> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = BOUNDS.into_iter().chain(once(f64::INFINITY)).zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        #[expect(clippy::cast_precision_loss, reason = "exact for centuries")]
        let sum_seconds = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        (count > 0).then(|| FirstTokenSeries { model: model.into(), sum_seconds, count, buckets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_their_length() {
        let waits = FirstTokens::default();
        assert_eq!(waits.series("m"), None);
        for wait_ms in [0, 50, 51, 120_000, 500_000] {
            waits.observe(Duration::from_millis(wait_ms));
        }
        let all = FirstTokens::default();
        all.add(&waits);
        all.add(&waits);
        let series = all.series("m").unwrap();
        assert_eq!((series.count, &*series.model), (10, "m"));
        assert!((series.sum_seconds - 2.0 * 620.101).abs() < 1e-9, "{series:?}");
        assert_eq!(series.buckets.len(), BOUNDS.len() + 1);
        let counts: Vec<(f64, u64)> = series.buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counts, [(0.05, 4), (0.1, 2), (120.0, 2), (f64::INFINITY, 2)]);
    }
}
