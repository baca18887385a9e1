//! `Moment`: turns instants of a monotonic clock into times of day.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment by both clocks: one is cheap to read and never goes back, the other tells the time of day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    instant: Instant,
    since_epoch: Duration,
}

/// A moment that several threads share, so that the order of their instants is the order of their times of day.
#[derive(Debug, Clone)]
pub(super) struct SharedMoment(Arc<Mutex<Moment>>);

/// If the time of day differs by more from what it would be by the other clock, it has been changed.
const CHANGED: Duration = Duration::from_millis(1);

/// The largest distance between the readings of the two clocks, and how often it is tried to get below it.
const APART: Duration = Duration::from_micros(5);
const TRIES: usize = 8;

/// The first reading that took little enough time, or else the one that took the least.
fn nearest(mut read: impl FnMut() -> (Duration, Moment)) -> Moment {
    let mut best = read();
    for _ in 1..TRIES {
        if best.0 <= APART {
            break;
        }
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

// === impl SharedMoment ===

impl SharedMoment {
    pub(super) fn now() -> Self {
        Self(Arc::new(Mutex::new(Moment::now())))
    }

    /// The moment, which stays the same until the time of day is changed. To be asked now and then.
    pub(super) fn current(&self) -> Moment {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.follow(Moment::now());
        *shared
    }
}

// === impl Moment ===

impl Moment {
    /// The moment now. The two clocks cannot be read at once: a thread that is interrupted between them tries again, so that
    /// the times of different threads agree.
    pub(super) fn now() -> Self {
        nearest(|| {
            let instant = Instant::now();
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (instant.elapsed(), Self { instant, since_epoch })
        })
    }

    /// The time of day may have been changed since: then this later moment takes the place of this one.
    fn follow(&mut self, later: Self) {
        if self.since_epoch(later.instant).abs_diff(later.since_epoch) > CHANGED {
            *self = later;
        }
    }

    /// The time from 1970 to this instant.
    pub(super) fn since_epoch(&self, instant: Instant) -> Duration {
        match instant.checked_duration_since(self.instant) {
            Some(after) => self.since_epoch + after,
            None => self.since_epoch.saturating_sub(self.instant - instant),
        }
    }

    /// The time of day at that instant, in nanoseconds.
    pub(super) fn unix_nanos(&self, instant: Instant) -> u64 {
        u64::try_from(self.since_epoch(instant).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_kept_until_the_time_of_day_is_changed() {
        let (instant, minute) = (Instant::now(), Duration::from_secs(60));
        let mut moment = Moment { instant, since_epoch: Duration::from_secs(1000) };
        let micros = Duration::from_micros;
        for (read, kept) in [
            (Duration::from_secs(1060), Duration::from_secs(1000)),
            (micros(1_060_000_999), Duration::from_secs(1000)),
            (micros(1_059_999_001), Duration::from_secs(1000)),
            (Duration::from_secs(1059), Duration::from_secs(999)),
            (Duration::from_secs(5000), Duration::from_secs(4940)),
        ] {
            moment.follow(Moment { instant: instant + minute, since_epoch: read });
            assert_eq!(moment.since_epoch(instant), kept, "{read:?}");
        }
    }

    #[test]
    fn a_reading_that_was_interrupted_is_repeated() {
        let instant = Instant::now();
        let found = |readings: &[u64]| {
            let mut left = readings.iter();
            let read = || {
                let apart = *left.next().unwrap();
                (Duration::from_micros(apart), Moment { instant, since_epoch: Duration::from_secs(apart) })
            };
            (nearest(read).since_epoch.as_secs(), left.len())
        };
        assert_eq!(found(&[1, 0]), (1, 1), "near enough");
        assert_eq!(found(&[3000, 8, 2, 0]), (2, 1));
        assert_eq!(found(&[90, 80, 70, 20, 30, 40, 50, 60, 0]), (20, 1), "the best of some");
    }
}
