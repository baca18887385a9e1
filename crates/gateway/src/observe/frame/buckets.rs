//! Numbers of a frame, from the buckets of histograms.

use super::{Percentiles, Utilisation};

/// The median and the 99th percentile of values that were counted in buckets. `counts` has one bucket for each upper bound, and
/// one for the values above all. `None` if nothing was counted.
pub fn percentiles(bounds: &[f64], counts: &[u64]) -> Option<Percentiles> {
    let p = |quantile| Some(rounded(within(bounds, counts, quantile)?));
    Some(Percentiles { p50: p(0.5)?, p99: p(0.99)? })
}

/// How a ratio was through an interval: the time in each bucket, and the integral of the ratio over time. `None` if no time
/// has passed.
#[expect(clippy::cast_precision_loss, reason = "an interval is short")]
pub fn utilisation(bounds: &[f64], spans: &[u64], sum: f64) -> Option<Utilisation> {
    let total: u64 = spans.iter().sum();
    let first = spans.iter().position(|span| *span > 0)?;
    let last = spans.iter().rposition(|span| *span > 0)?;
    let mean = (sum / total as f64).max(0.0);
    let lower = if first == 0 { 0.0 } else { bounds.get(first - 1).copied().unwrap_or(mean) };
    let upper = bounds.get(last).copied().unwrap_or(mean);
    Some(Utilisation { min: rounded(lower.min(mean)), mean: rounded(mean), max: rounded(upper.max(mean)) })
}

/// Three digits are enough for people, and keep frames small.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0);
    let scale = 10_f64.powf(digits);
    (value * scale).round() / scale
}

/// The value below which that part of all values is. Within a bucket, values are taken to be spread evenly; those above all
/// bounds count as the last bound.
#[expect(clippy::cast_precision_loss, reason = "a percentile is an estimate")]
fn within(bounds: &[f64], counts: &[u64], quantile: f64) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return None;
    }
    let rank = quantile * total as f64;
    let mut below = 0.0;
    for (index, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = *count as f64;
        if below + count >= rank {
            let Some(upper) = bounds.get(index) else { break };
            let lower = if index == 0 { 0.0 } else { bounds[index - 1] };
            return Some(lower + (upper - lower) * ((rank - below) / count).clamp(0.0, 1.0));
        }
        below += count;
    }
    bounds.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_their_buckets() {
        let bounds = [0.0, 5.0, 20.0];
        for (counts, expected) in [
            ([0, 0, 0, 0], None),
            ([100, 0, 0, 0], Some((0.0, 0.0))),
            ([98, 0, 2, 0], Some((0.0, 12.5))),
            ([0, 100, 0, 0], Some((2.5, 4.95))),
            ([0, 0, 0, 1], Some((20.0, 20.0))),
        ] {
            assert_eq!(percentiles(&bounds, &counts).map(|found| (found.p50, found.p99)), expected, "{counts:?}");
        }
    }

    #[test]
    fn utilisation_is_between_the_bounds_of_its_buckets() {
        let bounds = [0.0, 0.5, 1.0];
        let of =
            |spans: [u64; 4], sum| utilisation(&bounds, &spans, sum).map(|found| (found.min, found.mean, found.max));
        assert_eq!(of([0, 0, 0, 0], 0.0), None);
        assert_eq!(of([10, 0, 0, 0], 0.0), Some((0.0, 0.0, 0.0)));
        assert_eq!(of([0, 5, 5, 0], 6.0), Some((0.0, 0.6, 1.0)));
        assert_eq!(of([0, 0, 10, 0], 8.0), Some((0.5, 0.8, 1.0)));
        // More seats than the level has of its own.
        assert_eq!(of([0, 0, 0, 10], 13.0), Some((1.0, 1.3, 1.3)));
    }

    #[test]
    fn three_digits_are_kept() {
        let cases = [(0.0, 0.0), (1234.5, 1235.0), (12.345, 12.3), (0.012_345, 0.0123), (1e-9, 0.0), (f64::NAN, 0.0)];
        for (value, expected) in cases {
            assert!((rounded(value) - expected).abs() < 1e-12, "{value}");
        }
    }
}
