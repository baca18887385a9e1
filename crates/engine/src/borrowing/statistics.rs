//! What is remembered of a level's demand when limits are adjusted (CL-10).

use super::DemandPeriod;
use crate::seat_rounding;

/// How much of the smoothed demand is left after a period, and how much of the period's own comes in (CL-10, CV-4).
const SMOOTHING_KEPT: f64 = 0.977;
const SMOOTHING_NEW: f64 = 0.023;

/// A level's demand in the last period, and a memory of the periods before.
///
/// The memory follows a rise at once and a fall slowly.
///
/// ```
/// use evenkeel_engine::borrowing::{DemandPeriod, DemandStatistics};
///
/// let mut statistics = DemandStatistics::default();
/// let busy = DemandPeriod { duration: 10.0, seats_integral: 30.0, squares_integral: 90.0, min: 3.0, max: 3.0 };
/// statistics.update(&busy);
/// assert_eq!((statistics.high_watermark, statistics.smoothed), (3, 3.0));
/// statistics.update(&DemandPeriod { duration: 10.0, ..DemandPeriod::default() });
/// assert_eq!((statistics.high_watermark, statistics.smoothed), (0, 0.977 * 3.0));
/// ```
///
/// Not `#[non_exhaustive]`: tests of a division make it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DemandStatistics {
    /// The most seats in the last period, those at its start included.
    pub high_watermark: i64,
    /// The average of the last period that had a length.
    pub average: f64,
    /// The standard deviation of that period.
    pub deviation: f64,
    /// The memory of all periods: a number always.
    pub smoothed: f64,
}

// === impl DemandStatistics ===

impl DemandStatistics {
    /// Takes in a period that has ended. One without length counts for the high watermark only.
    pub fn update(&mut self, period: &DemandPeriod) {
        self.high_watermark = seat_rounding::round(period.max);
        let average = period.average();
        let deviation = match period.deviation() {
            deviation if deviation.is_nan() => 0.0,
            deviation => deviation,
        };
        let envelope = average + deviation;
        // A period without length has no average. Infinite ones would never leave the memory again.
        if envelope.is_finite() {
            self.average = average;
            self.deviation = deviation;
            self.smoothed = envelope.max(SMOOTHING_KEPT * self.smoothed + SMOOTHING_NEW * envelope);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borrowing::DemandIntegrator;
    use crate::time::{Instant, SECOND};

    #[test]
    fn cl_10_example() {
        let mut demand = DemandIntegrator::new(Instant::default());
        let mut statistics = DemandStatistics::default();
        let mut now = Instant::default();
        for (spans, average, deviation, smoothed, high_watermark) in [
            (&[(0, 2), (4, 3), (1, 5)][..], 1.7, 1.552_417_469_626_002_5, 3.252_417_469_626_002_4, 4),
            (&[(1, 2), (0, 8)], 0.2, 0.4, 3.191_411_867_824_604, 1),
            (&[(0, 10)], 0.0, 0.0, 3.118_009_394_864_638, 0),
        ] {
            for (seats, seconds) in spans {
                demand.set(now, *seats);
                now = now + seconds * SECOND;
            }
            statistics.update(&demand.read_and_reset(now));
            assert_eq!(statistics, DemandStatistics { high_watermark, average, deviation, smoothed });
        }
    }

    #[test]
    fn cl_10_a_period_without_length_counts_for_the_high_watermark_only() {
        let before = DemandStatistics { high_watermark: 9, average: 1.0, deviation: 2.0, smoothed: 3.0 };
        let mut statistics = before;
        statistics.update(&DemandPeriod { max: 2.5, ..DemandPeriod::default() });
        assert_eq!(statistics, DemandStatistics { high_watermark: 3, ..before });
    }

    #[test]
    fn cl_10_a_negative_variance_counts_as_none() {
        let mut statistics = DemandStatistics::default();
        statistics.update(&DemandPeriod {
            duration: 1.0,
            seats_integral: 3.0,
            squares_integral: 8.999_999,
            min: 3.0,
            max: 3.0,
        });
        assert_eq!(statistics, DemandStatistics { high_watermark: 3, average: 3.0, deviation: 0.0, smoothed: 3.0 });
    }

    #[test]
    fn cl_10_the_memory_halves_in_about_298_seconds() {
        let mut statistics = DemandStatistics { smoothed: 100.0, ..DemandStatistics::default() };
        let idle = DemandPeriod { duration: 10.0, ..DemandPeriod::default() };
        (0..29).for_each(|_| statistics.update(&idle));
        assert!(statistics.smoothed > 50.0, "{statistics:?}");
        statistics.update(&idle);
        assert!(statistics.smoothed < 50.0, "{statistics:?}");
    }

    #[test]
    fn cl_10_what_is_no_number_is_not_remembered() {
        let mut statistics = DemandStatistics { smoothed: 7.0, ..DemandStatistics::default() };
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN] {
            let period =
                DemandPeriod { duration: 1e-9, seats_integral: value, squares_integral: value, min: value, max: value };
            statistics.update(&period);
            assert!(statistics.smoothed.is_finite(), "{value} gave {statistics:?}");
        }
    }
}
