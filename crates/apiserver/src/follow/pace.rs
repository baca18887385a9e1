//! `FollowPace`: limits following to a tenth of a core under many writes, without delaying single writes.

use std::time::Duration;

use tokio::time::Instant;

/// The time that following has taken recently. It grows by the time that following takes, and shrinks by a tenth of the time
/// that passes.
#[derive(Debug)]
pub(super) struct FollowPace {
    taken: Duration,
    at: Instant,
}

/// Following may use the time divided by this.
const PARTS: u32 = 10;
/// The time that may be used at once after a quiet time: ten changes that take ten milliseconds each.
const TAKEN_MAX: Duration = Duration::from_millis(100);
/// The longest pause. With very many objects, following uses more than a tenth of the time, so that changes take effect soon.
const REST_MAX: Duration = Duration::from_millis(80);

// === impl FollowPace ===

impl FollowPace {
    pub(super) fn new(now: Instant) -> Self {
        Self { taken: Duration::ZERO, at: now }
    }

    /// Notes that following took this long until now. Returns how long to pause before the next time.
    pub(super) fn take(&mut self, time: Duration, now: Instant) -> Duration {
        self.taken = self.taken.saturating_sub((now - self.at) / PARTS) + time;
        self.at = now;
        let rest = (self.taken.saturating_sub(TAKEN_MAX) * PARTS).min(REST_MAX);
        // Work that the longest pause does not make up for is forgotten.
        self.taken = self.taken.min(TAKEN_MAX + REST_MAX / PARTS);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Duration = Duration::from_millis(10);

    #[test]
    fn a_few_changes_are_followed_at_once_and_a_stream_of_them_takes_a_tenth_of_the_time() {
        let start = Instant::now();
        let (mut pace, mut now, mut rests) = (FollowPace::new(start), start, 0);
        for change in 1..=100_u32 {
            now += COST;
            let rest = pace.take(COST, now);
            assert!(rest <= REST_MAX);
            assert!(change > 10 || rest.is_zero(), "change {change} rests for {rest:?}");
            rests += u32::from(!rest.is_zero());
            now += rest;
        }
        assert!(rests > 80 && now - start > 7 * 100 * COST, "{rests} rests in {:?}", now - start);
        // After a quiet time, changes are followed at once again.
        assert!(pace.take(COST, now + Duration::from_secs(1)).is_zero());
    }
}
