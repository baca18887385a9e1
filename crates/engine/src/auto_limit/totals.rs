//! `Totals`: what one of several servers tells the one that finds the limit for all of them (FL-13).

use super::sample::{Sample, Sums, seconds};
use crate::time::Nanos;

/// What has happened at a server since it started, in sums that only grow. Times are in seconds.
///
/// A server publishes them from time to time. The difference between two of them is what happened in between, whatever got lost
/// meanwhile. Classes of requests are not told apart.
///
/// Not `#[non_exhaustive]`: who reads them from a message has to give all of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// The time in which all of it happened.
    pub seconds: f64,
    /// Requests that ended well.
    pub good: f64,
    /// Requests that failed, timed out or were refused.
    pub failed: f64,
    /// Seat-time of all requests that ended.
    pub seat_seconds: f64,
    /// The squares of it.
    pub squares: f64,
    /// The integral of the seats in use.
    pub in_use: f64,
    /// The time in which somebody waited.
    pub waited: f64,
}

/// No sum of a server is greater, so that the sums of all and what follows from them stay finite, whatever a server publishes.
const SUM_MAX: f64 = 1e18;

// === impl Totals ===

impl Totals {
    /// Time has passed, and this has happened.
    pub fn add(&mut self, span: Nanos, sample: &Sample) {
        let Sums { good, failed, seat_seconds, squares, in_use, waited, .. } = sample.sums;
        self.seconds += seconds(span);
        self.good += good;
        self.failed += failed;
        self.seat_seconds += seat_seconds;
        self.squares += squares;
        self.in_use += in_use;
        self.waited += waited;
    }

    /// What has happened since they were these; `None` if they cannot be earlier ones of the same server.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let difference = Self {
            seconds: self.seconds - earlier.seconds,
            good: self.good - earlier.good,
            failed: self.failed - earlier.failed,
            seat_seconds: self.seat_seconds - earlier.seat_seconds,
            squares: self.squares - earlier.squares,
            in_use: self.in_use - earlier.in_use,
            waited: self.waited - earlier.waited,
        };
        let Self { seconds, good, failed, seat_seconds, squares, in_use, waited } = difference;
        let is_possible = |sum: f64| (0.0..=SUM_MAX).contains(&sum);
        let all = [good, failed, seat_seconds, squares, in_use, waited];
        (seconds.is_finite() && seconds > 0.0 && all.into_iter().all(is_possible)).then_some(difference)
    }

    /// How many requests ended.
    pub fn ends(&self) -> f64 {
        self.good + self.failed
    }

    /// What happens in such a span, as fast as it happened in the span of these sums. Servers that publish at different times become
    /// comparable by that.
    pub fn sample_of(&self, span: Nanos) -> Sample {
        let share = seconds(span) / self.seconds.max(1e-9);
        let sums = Sums {
            seconds: 0.0,
            good: share * self.good,
            failed: share * self.failed,
            seat_seconds: share * self.seat_seconds,
            squares: share * self.squares,
            in_use: share * self.in_use,
            waited: share * self.waited,
        };
        Sample { sums, ..Sample::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{MILLISECOND, SECOND};

    fn totals(spans: i64) -> Totals {
        let (mut totals, mut sample) = (Totals::default(), Sample::default());
        sample.ended(0, 20 * MILLISECOND, 2, true);
        sample.ended(0, 10 * MILLISECOND, 1, false);
        sample.passed(100 * MILLISECOND, 3, true);
        (0..spans).for_each(|_| totals.add(100 * MILLISECOND, &sample));
        totals
    }

    /// FL-13: what is lost on the way is in the next totals.
    #[test]
    fn fl_13_what_happened_is_the_difference_of_two_totals() {
        let between = totals(7).since(&totals(3)).unwrap();
        assert!((between.seconds - 0.4).abs() < 1e-9 && (between.ends() - 8.0).abs() < 1e-9, "{between:?}");
        // As fast as that, twice as long.
        let sample = between.sample_of(SECOND * 8 / 10);
        assert!((sample.ends() - 16.0).abs() < 1e-9, "{sample:?}");
        assert!((sample.sums.in_use - 2.4).abs() < 1e-9 && (sample.sums.waited - 0.8).abs() < 1e-9, "{sample:?}");
    }

    #[test]
    fn totals_of_another_server_are_not_subtracted() {
        assert_eq!(totals(3).since(&totals(7)), None);
        assert_eq!(totals(3).since(&totals(3)), None, "no time has passed");
        let broken = Totals { good: f64::NAN, ..totals(7) };
        assert_eq!(broken.since(&totals(3)), None);
        assert_eq!(totals(7).since(&broken), None);
        let huge = Totals { squares: 1e300, ..totals(7) };
        assert_eq!(huge.since(&totals(3)), None);
    }
}
