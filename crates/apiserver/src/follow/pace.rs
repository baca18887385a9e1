//! `Pace`: a stream of writes costs a tenth of a core at most, and single writes do not wait for that.

use std::time::Duration;

use tokio::time::Instant;

/// The time that following has taken lately. It grows with what following takes, and shrinks by a tenth of the time that passes.
#[derive(Debug)]
pub(super) struct Pace {
    taken: Duration,
    at: Instant,
}

/// Of so many parts of the time, one may be taken.
const PARTS: u32 = 10;
/// What may be taken at once after a quiet time: ten changes that take ten milliseconds each.
const TAKEN_MAX: Duration = Duration::from_millis(100);
/// With very many objects following takes more than a tenth, so that changes do not take long to have an effect.
const REST_MAX: Duration = Duration::from_millis(80);

// === impl Pace ===

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { taken: Duration::ZERO, at: now }
    }

    /// Following took so long until now. Returns how long to rest before the next time.
    pub(super) fn take(&mut self, time: Duration, now: Instant) -> Duration {
        self.taken = self.taken.saturating_sub((now - self.at) / PARTS) + time;
        self.at = now;
        let rest = (self.taken.saturating_sub(TAKEN_MAX) * PARTS).min(REST_MAX);
        // What the longest rest does not make up for is forgotten.
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
        let (mut pace, mut now, mut rests) = (Pace::new(start), start, 0);
        for change in 1..=100_u32 {
            now += COST;
            let rest = pace.take(COST, now);
            assert!(rest <= REST_MAX);
            assert!(change > 10 || rest.is_zero(), "change {change} rests for {rest:?}");
            rests += u32::from(!rest.is_zero());
            now += rest;
        }
        assert!(rests > 80 && now - start > 7 * 100 * COST, "{rests} rests in {:?}", now - start);
        // After a quiet time it is as at first.
        assert!(pace.take(COST, now + Duration::from_secs(1)).is_zero());
    }
}
