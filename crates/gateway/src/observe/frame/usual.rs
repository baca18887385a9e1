//! `Usual`: the usual value of a number, and since when it has been different.

use std::collections::VecDeque;

/// Follows a mean, such as a latency, and notices when it becomes at least twice what it was. The usual value follows slowly, and
/// stands still while the number is different.
#[derive(Debug, Clone, Default)]
pub struct Usual {
    /// The last intervals: sums and counts.
    recent: VecDeque<(f64, f64)>,
    value: Option<f64>,
    /// How many intervals the usual value is made of.
    seen: u32,
    changed_ms: Option<u64>,
}

/// The present is that many intervals.
const RECENT: usize = 5;
/// The usual value follows as a mean over that many intervals.
const SLOW: u32 = 60;
/// How many intervals it takes to know what is usual.
const SEEN_MIN: u32 = 10;
/// After this time, a different value becomes the usual one.
const ADOPTED_AFTER_MS: u64 = 600_000;

// === impl Usual ===

impl Usual {
    /// An interval has ended, in which values with that sum and count were seen. Differences below `slack` do not matter. With
    /// `is_frozen`, the usual value stands still.
    pub fn note(&mut self, time_ms: u64, sum: f64, count: f64, slack: f64, is_frozen: bool) {
        self.recent.push_back((sum, count));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        let Some(now) = self.now() else { return };
        let usual = *self.value.get_or_insert(now);
        let is_known = self.seen >= SEEN_MIN;
        if is_known && now > 2.0 * usual + slack {
            self.changed_ms.get_or_insert(time_ms);
        } else if now < 1.5 * usual + slack {
            self.changed_ms = None;
        }
        if self.changed_ms.is_some_and(|since| time_ms.saturating_sub(since) > ADOPTED_AFTER_MS) {
            *self = Self { value: Some(now), seen: self.seen, ..Self::default() };
        } else if self.changed_ms.is_none() && !is_frozen {
            self.seen = self.seen.saturating_add(1);
            self.value = Some(usual + (now - usual) / f64::from(self.seen.min(SLOW)));
        }
    }

    /// The mean over the last intervals, if there were values.
    pub fn now(&self) -> Option<f64> {
        let (sum, count) = self.recent.iter().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
        (count > 0.0).then(|| sum / count)
    }

    /// The usual value, if it is known.
    pub fn before(&self) -> Option<f64> {
        self.value.filter(|_| self.seen >= SEEN_MIN)
    }

    /// Since when it has been at least twice what it was, in milliseconds since 1970.
    pub fn changed_ms(&self) -> Option<u64> {
        self.changed_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_slower_is_noticed_and_what_stays_slow_becomes_usual() {
        let mut usual = Usual::default();
        let mut second = 0;
        let mut run = |usual: &mut Usual, seconds: u64, latency: f64| {
            for _ in 0..seconds {
                second += 1;
                usual.note(second * 1000, latency * 100.0, 100.0, 1.0, false);
            }
        };
        run(&mut usual, 5, 10.0);
        assert_eq!((usual.now(), usual.before()), (Some(10.0), None));
        run(&mut usual, 55, 10.0);
        assert_eq!((usual.before(), usual.changed_ms()), (Some(10.0), None));
        run(&mut usual, 10, 60.0);
        // The mean over five seconds is above twice the usual from the second second on.
        assert_eq!((usual.now(), usual.changed_ms()), (Some(60.0), Some(62_000)));
        let before = usual.before().unwrap();
        assert!((10.0..12.0).contains(&before), "{before}");
        run(&mut usual, 6, 10.0);
        assert_eq!(usual.changed_ms(), None);
        run(&mut usual, 700, 60.0);
        assert_eq!((usual.changed_ms(), usual.before()), (None, Some(60.0)));
    }

    #[test]
    fn silence_and_small_differences_change_nothing() {
        let mut usual = Usual::default();
        (1..60).for_each(|second| usual.note(second * 1000, 0.2, 1.0, 1.0, false));
        (60..70).for_each(|second| usual.note(second * 1000, 0.9, 1.0, 1.0, false));
        assert_eq!(usual.changed_ms(), None);
        (70..80).for_each(|second| usual.note(second * 1000, 0.0, 0.0, 1.0, false));
        assert_eq!((usual.now(), usual.changed_ms()), (None, None));
    }
}
