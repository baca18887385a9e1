//! `Pace`: how fast an upstream responds beside the others. Failures count as slow, so that one that fails at once does not
//! attract requests.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How fast an upstream responds, shared by all workers. Updates that get in each other's way lose one of them, which does no
/// harm.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The mean of the logarithms of latencies in nanoseconds, so that few slow requests among many do not decide; the bits of a
    /// number, zero while nothing is known.
    mean_ln: AtomicU64,
    /// How many latencies there were.
    samples: AtomicU64,
    /// The handicap: the upstream counts as if it had so many more requests.
    handicap: AtomicU32,
}

/// A pace at the last look.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PaceSeen {
    samples: u64,
}

/// The weight of a new latency.
const WEIGHT: f64 = 1.0 / 32.0;
/// Fewer latencies say nothing.
const SAMPLES_MIN: u64 = 8;
/// Shorter latencies count as this: smaller differences do not matter.
const LEAST: Duration = Duration::from_millis(2);
/// A failure counts as a response after this time. It weighs so little that the errors in a row for which an upstream is ejected
/// still find their way to it.
const FAILURE: Duration = Duration::from_secs(10);
const FAILURE_WEIGHT: f64 = 1.0 / 64.0;
/// Up to so many times the fastest is as good.
const AS_GOOD: f64 = 2.0;
const HANDICAP_MAX: f64 = 10_000.0;
/// How soon the pace of an upstream that gets no requests is forgotten, in looks.
const FORGOTTEN: f64 = 1.0 / 300.0;

// === impl Pace ===

impl Pace {
    /// A response has begun after this time.
    #[expect(clippy::cast_precision_loss, reason = "a rough weight")]
    pub(crate) fn note(&self, latency: Duration) {
        let ln = (latency.max(LEAST).as_secs_f64() * 1e9).ln();
        // The first ones count alike: one of them alone is an accident.
        let weight = WEIGHT.max(1.0 / (self.samples() as f64 + 1.0));
        self.add(ln, self.mean().unwrap_or(ln), weight);
    }

    fn add(&self, ln: f64, mean: f64, weight: f64) {
        self.set_mean(mean + (ln - mean) * weight);
        self.samples.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has failed, or its response says so.
    pub(crate) fn note_failure(&self) {
        // An upstream that has only failed is left to the judge, who needs to see more of its responses.
        if let Some(mean) = self.mean() {
            self.add((FAILURE.as_secs_f64() * 1e9).ln(), mean, FAILURE_WEIGHT);
        }
    }

    /// Forgets everything: it comes back after it was out.
    pub(super) fn reset(&self) {
        self.mean_ln.store(0, Ordering::Relaxed);
        self.samples.store(0, Ordering::Relaxed);
        self.handicap.store(0, Ordering::Relaxed);
    }

    /// The handicap: the upstream counts as if it had so many more requests.
    pub(crate) fn handicap(&self) -> u64 {
        u64::from(self.handicap.load(Ordering::Relaxed))
    }

    fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    fn mean(&self) -> Option<f64> {
        Some(self.mean_ln.load(Ordering::Relaxed)).filter(|bits| *bits != 0).map(f64::from_bits)
    }

    fn set_mean(&self, mean: f64) {
        // Zero would mean that nothing is known.
        self.mean_ln.store(mean.max(f64::MIN_POSITIVE).to_bits(), Ordering::Relaxed);
    }
}

/// Compares the upstreams that are in service, each with how it was at the last look, and gives those that are much slower than
/// the fastest a handicap. Returns how long the fastest usually takes.
pub(super) fn compare(paces: &mut [(&Pace, &mut PaceSeen)]) -> Option<Duration> {
    let best = paces.iter().filter_map(|(pace, _)| pace.mean()).min_by(f64::total_cmp)?;
    for (pace, seen) in paces {
        let Some(mut mean) = pace.mean() else { continue };
        let samples = pace.samples();
        if std::mem::replace(&mut seen.samples, samples) == samples {
            // The upstream may have become faster, which cannot be seen while it gets no requests.
            mean += (best - mean) * FORGOTTEN;
            pace.set_mean(mean);
        }
        let handicap = if samples < SAMPLES_MIN { 0 } else { handicap(mean - best) };
        pace.handicap.store(handicap, Ordering::Relaxed);
    }
    Some(Duration::from_secs_f64((best.exp() * 1e-9).min(FAILURE.as_secs_f64())))
}

/// The handicap of an upstream that is slower by this, as a logarithm.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within bounds")]
fn handicap(slower_ln: f64) -> u32 {
    ((slower_ln.exp() / AS_GOOD).powi(3) - 1.0).clamp(0.0, HANDICAP_MAX).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn handicaps(paces: &[Pace]) -> Vec<u64> {
        let mut seen = vec![PaceSeen::default(); paces.len()];
        compare(&mut paces.iter().zip(&mut seen).collect::<Vec<_>>());
        paces.iter().map(Pace::handicap).collect()
    }

    fn pace(latencies: impl IntoIterator<Item = Duration>) -> Pace {
        let pace = Pace::default();
        latencies.into_iter().for_each(|latency| pace.note(latency));
        pace
    }

    #[test]
    fn one_that_is_much_slower_has_a_handicap_and_small_differences_have_none() {
        let paces = [pace([5 * MS; 8]), pace([8 * MS; 8]), pace([50 * MS; 8]), pace([50 * MS; 7]), Pace::default()];
        assert_eq!(handicaps(&paces), [0, 0, 124, 0, 0]);
        assert_eq!(handicaps(&[pace([MS / 100; 8]), pace([2 * MS; 8])]), [0, 0]);
        assert_eq!(handicaps(&[Pace::default(), Pace::default()]), [0, 0]);
        let one_slow_of_many = pace(std::iter::repeat_n(MS, 50).chain([1000 * MS]));
        assert_eq!(handicaps(&[pace([MS; 8]), one_slow_of_many]), [0, 0]);
    }

    #[test]
    fn failures_are_slow_and_do_not_matter_if_all_fail() {
        let failing = |count| {
            let pace = pace([MS; 8]);
            (0..count).for_each(|_| pace.note_failure());
            pace
        };
        assert_eq!(handicaps(&[failing(0), failing(5)]), [0, 0]);
        let only_failing = Pace::default();
        (0..30).for_each(|_| only_failing.note_failure());
        assert_eq!(handicaps(&[failing(0), only_failing]), [0, 0]);
        let half = handicaps(&[failing(0), failing(30)])[1];
        assert!(half > 1000, "{half}");
        assert_eq!(handicaps(&[failing(30), failing(30)]), [0, 0]);
        let paces = [failing(0), failing(30)];
        handicaps(&paces);
        paces[1].reset();
        assert_eq!(paces[1].handicap(), 0);
    }

    #[test]
    fn one_that_gets_no_requests_is_tried_again_after_a_while() {
        let (fast, slow) = (pace([5 * MS; 8]), pace([50 * MS; 8]));
        let mut seen = [PaceSeen::default(); 2];
        let mut looks = 0;
        while looks == 0 || slow.handicap() > 0 {
            let [of_fast, of_slow] = &mut seen;
            fast.note(5 * MS);
            assert_eq!(compare(&mut [(&fast, of_fast), (&slow, of_slow)]).map(|usual| usual.as_millis()), Some(5));
            looks += 1;
        }
        assert!((100..1000).contains(&looks), "{looks}");
    }
}
