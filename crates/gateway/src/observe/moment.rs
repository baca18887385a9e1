//! `Moment`: turns instants of a monotonic clock into times of day.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment by both clocks: one is cheap to read and never goes back, the other tells the time of day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    instant: Instant,
    since_epoch: Duration,
}

// === impl Moment ===

impl Moment {
    pub(super) fn now() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { instant: Instant::now(), since_epoch }
    }

    /// The time from 1970 to this instant.
    pub(super) fn since_epoch(&self, instant: Instant) -> Duration {
        match instant.checked_duration_since(self.instant) {
            Some(after) => self.since_epoch + after,
            None => self.since_epoch.saturating_sub(self.instant - instant),
        }
    }

    /// The same in nanoseconds.
    pub(super) fn unix_nanos(&self, instant: Instant) -> u64 {
        u64::try_from(self.since_epoch(instant).as_nanos()).unwrap_or(u64::MAX)
    }
}
