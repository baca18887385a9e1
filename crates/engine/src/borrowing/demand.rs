//! How many seats a level could use, followed through time (CL-8, CL-9).

use crate::seat_rounding;
use crate::time::{Instant, Nanos, SECOND};

/// Follows the seats that a level has in use or that requests wait for.
///
/// Every request changes them several times, so a change costs a few nanoseconds and allocates nothing. Times may stand
/// still or go backwards; what is then read is of no use, but a number.
///
/// ```
/// use evenkeel_engine::borrowing::DemandIntegrator;
/// use evenkeel_engine::time::{Instant, SECOND};
///
/// let at = |seconds: i64| Instant::from_nanos(seconds * SECOND);
/// let mut demand = DemandIntegrator::new(at(0));
/// demand.set(at(2), 4);
/// demand.set(at(5), 1);
/// let period = demand.read_and_reset(at(10));
/// assert_eq!((period.average(), period.min, period.max), (1.7, 0.0, 4.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DemandIntegrator {
    seats: f64,
    updated_at: Instant,
    period: DemandPeriod,
}

/// What an integrator saw between two resets.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DemandPeriod {
    /// How long it lasted, in seconds.
    pub duration: f64,
    /// The seats, integrated over the period.
    pub seats_integral: f64,
    /// Their square, integrated over the period.
    pub squares_integral: f64,
    /// The fewest seats, those at the start included.
    pub min: f64,
    /// The most seats, those at the start included.
    pub max: f64,
}

// === impl DemandIntegrator ===

impl DemandIntegrator {
    /// Starts with no demand.
    pub fn new(now: Instant) -> Self {
        Self { seats: 0.0, updated_at: now, period: DemandPeriod::default() }
    }

    /// Sets the demand from now on, in seats.
    #[inline]
    pub fn set(&mut self, now: Instant, seats: i64) {
        self.update(now);
        self.seats = seat_rounding::to_f64(seats);
        self.period.min = self.period.min.min(self.seats);
        self.period.max = self.period.max.max(self.seats);
    }

    /// Ends a period and starts the next.
    pub fn read_and_reset(&mut self, now: Instant) -> DemandPeriod {
        self.update(now);
        let next = DemandPeriod { min: self.seats, max: self.seats, ..DemandPeriod::default() };
        std::mem::replace(&mut self.period, next)
    }

    #[inline]
    fn update(&mut self, now: Instant) {
        let elapsed = now - self.updated_at;
        // One event often changes the demand more than once; adding nothing would change nothing.
        if elapsed != 0 {
            let seconds = as_seconds(elapsed);
            self.period.duration += seconds;
            self.period.seats_integral += self.seats * seconds;
            self.period.squares_integral += (self.seats * self.seats) * seconds;
            self.updated_at = now;
        }
    }
}

// === impl DemandPeriod ===

impl DemandPeriod {
    /// The average number of seats, or NaN if the period has no length (CL-9).
    pub fn average(&self) -> f64 {
        if self.duration > 0.0 { self.seats_integral / self.duration } else { f64::NAN }
    }

    /// The standard deviation of the seats, or NaN if the period has no length or rounding made the variance
    /// negative (CL-9).
    pub fn deviation(&self) -> f64 {
        let average = self.average();
        let variance = self.squares_integral / self.duration - average * average;
        if variance >= 0.0 { variance.sqrt() } else { f64::NAN }
    }
}

/// Whole seconds and the rest are converted apart, which is what CL-8 says and not what one division gives.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "both parts are small enough to be exact")]
fn as_seconds(span: Nanos) -> f64 {
    // Most events are less than a second apart.
    if (0..SECOND).contains(&span) {
        return span as f64 / 1e9;
    }
    (span / SECOND) as f64 + (span % SECOND) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        Instant::from_nanos(seconds * SECOND)
    }

    fn assert_same(actual: f64, expected: f64) {
        assert_eq!(actual.to_bits(), expected.to_bits(), "{actual} instead of {expected}");
    }

    #[test]
    fn cl_8_moments_are_weighted_by_time() {
        let mut demand = DemandIntegrator::new(at(0));
        demand.set(at(2), 4);
        demand.set(at(5), 1);
        let period = demand.read_and_reset(at(10));
        assert_eq!(
            period,
            DemandPeriod { duration: 10.0, seats_integral: 17.0, squares_integral: 53.0, min: 0.0, max: 4.0 }
        );
        assert_same(period.average(), 1.7);
        assert_same(period.deviation(), 1.552_417_469_626_002_5);
    }

    #[test]
    fn cl_8_two_values_at_one_instant_both_count_for_the_extremes() {
        let mut demand = DemandIntegrator::new(at(0));
        demand.set(at(0), 9);
        demand.set(at(0), 2);
        let period = demand.read_and_reset(at(10));
        assert_eq!((period.min, period.max, period.average()), (0.0, 9.0, 2.0));
    }

    #[test]
    fn cl_9_a_period_starts_with_the_seats_at_its_start() {
        let mut demand = DemandIntegrator::new(at(0));
        demand.set(at(1), 5);
        demand.read_and_reset(at(2));
        demand.set(at(2), 7);
        let period = demand.read_and_reset(at(4));
        assert_eq!((period.min, period.max, period.average(), period.duration), (5.0, 7.0, 7.0, 2.0));
    }

    #[test]
    fn cl_9_a_period_without_length_has_no_average() {
        let mut demand = DemandIntegrator::new(at(3));
        demand.set(at(3), 5);
        let period = demand.read_and_reset(at(3));
        assert!(period.average().is_nan() && period.deviation().is_nan());
        assert_same(period.max, 5.0);
    }

    #[test]
    fn cl_9_a_clock_that_went_back_gives_no_average() {
        let mut demand = DemandIntegrator::new(at(3));
        demand.set(at(1), 5);
        let period = demand.read_and_reset(at(2));
        assert!(period.duration < 0.0 && period.average().is_nan() && period.deviation().is_nan());
    }

    #[test]
    fn cl_8_the_longest_spans_are_numbers() {
        let (first, last) = (Instant::from_nanos(i64::MIN), Instant::from_nanos(i64::MAX));
        let mut demand = DemandIntegrator::new(first);
        for _ in 0..1_000 {
            demand.set(first, i64::MAX);
            demand.set(last, i64::MIN);
        }
        let period = demand.read_and_reset(last);
        assert!(
            period.duration.is_finite() && period.seats_integral.is_finite() && period.squares_integral.is_finite()
        );
    }
}
