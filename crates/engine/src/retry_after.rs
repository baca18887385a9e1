//! How long a rejected client is told to wait before it tries again (HF-13, HF-14).

use std::collections::VecDeque;

/// The suggestion before anything was dropped, and the least there is.
const SECONDS_MIN: u8 = 1;
/// The longest suggestion.
const SECONDS_MAX: u8 = 32;
/// So many drops for each second of the suggestion raise it.
const DROPS_TO_RAISE: u64 = 3;
/// Seconds that can count at once: the longest look back, and the second it starts from.
const HISTORY_LENGTH_MAX: usize = 33;

/// The suggestion of one priority level. It rises while many requests are dropped, and falls when few are.
///
/// It is reviewed at the first drop of a second, and so does not fall while nothing is dropped at all (KW-23).
///
/// ```
/// use evenkeel_engine::retry_after::RetryAfter;
///
/// let mut retry_after = RetryAfter::default();
/// for second in 100..104 {
///     for _ in 0..200 {
///         retry_after.record_drop(second);
///     }
/// }
/// assert_eq!(retry_after.seconds(), 4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryAfter {
    current: Second,
    /// Earlier seconds in which something was dropped, the oldest first.
    history: VecDeque<Second>,
    seconds: u8,
    raised_at: i64,
}

/// The drops in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Second {
    unix_second: i64,
    drops: u64,
}

// === impl RetryAfter ===

impl RetryAfter {
    /// What to suggest now, in seconds: from 1 to 32.
    pub const fn seconds(&self) -> u8 {
        self.seconds
    }

    /// A request was dropped in that second of Unix time.
    ///
    /// A clock that was set back does no harm: counts may then be wrong, but memory stays limited.
    pub fn record_drop(&mut self, unix_second: i64) {
        if unix_second == self.current.unix_second {
            self.current.drops = self.current.drops.saturating_add(1);
            return;
        }
        self.remember_current();
        self.current = Second { unix_second, drops: 1 };
        self.review();
    }

    fn remember_current(&mut self) {
        let now = self.current.unix_second;
        let kept = i64::from(twice(self.seconds));
        while self.history.front().is_some_and(|second| now.saturating_sub(second.unix_second) > kept) {
            self.history.pop_front();
        }
        // Only a clock that was set back fills the history without any second being too old.
        if self.history.len() >= HISTORY_LENGTH_MAX {
            self.history.pop_front();
        }
        self.history.push_back(self.current);
    }

    fn review(&mut self) {
        let now = self.current.unix_second;
        let drops = self.drops_before(now);
        let seconds = u64::from(self.seconds);
        if self.raised_long_ago(now) && drops >= DROPS_TO_RAISE * seconds {
            self.seconds = twice(self.seconds);
            self.raised_at = now;
        } else if drops < seconds && self.seconds > SECONDS_MIN {
            self.seconds -= 1;
        }
    }

    fn raised_long_ago(&self, now: i64) -> bool {
        now.saturating_sub(self.raised_at) >= i64::from(self.seconds)
    }

    /// The drops in the seconds before, as far back as the suggestion is long.
    fn drops_before(&self, now: i64) -> u64 {
        let newest_first = self.history.iter().rev();
        newest_first
            .take_while(|second| now.saturating_sub(second.unix_second) <= i64::from(self.seconds))
            .filter(|second| second.unix_second < now)
            .fold(0, |sum, second| sum.saturating_add(second.drops))
    }
}

impl Default for RetryAfter {
    fn default() -> Self {
        Self { current: Second::default(), history: VecDeque::new(), seconds: SECONDS_MIN, raised_at: 0 }
    }
}

fn twice(seconds: u8) -> u8 {
    (2 * seconds).min(SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drop_many(retry_after: &mut RetryAfter, unix_second: i64, drops: u32) -> u8 {
        for _ in 0..drops {
            retry_after.record_drop(unix_second);
        }
        retry_after.seconds()
    }

    #[test]
    fn hf_13_without_a_drop_it_is_one_second() {
        assert_eq!(RetryAfter::default().seconds(), 1);
    }

    #[test]
    fn hf_14_table() {
        let mut retry_after = RetryAfter::default();
        for (second, drops, expected) in [
            (0, 5, 1),
            (1, 11, 2),
            (2, 1, 2),
            (3, 11, 4),
            (4, 1, 4),
            (7, 1, 8),
            (11, 1, 8),
            (15, 1, 7),
            (17, 1, 6),
            (21, 14, 5),
            (22, 1, 10),
        ] {
            assert_eq!(drop_many(&mut retry_after, second, drops), expected, "second {second}");
        }
    }

    #[test]
    fn hf_14_a_steady_flood_doubles_it_up_to_32() {
        let mut retry_after = RetryAfter::default();
        for second in 0..100 {
            let expected = match second {
                0 => 1,
                1..3 => 2,
                3..7 => 4,
                7..15 => 8,
                15..31 => 16,
                _ => 32,
            };
            assert_eq!(drop_many(&mut retry_after, second, 200), expected, "second {second}");
        }
    }

    #[test]
    fn kw_23_silence_of_any_length_does_not_lower_it_the_next_drop_does() {
        for silence in [33, 3_600, i64::MAX - 99] {
            let mut retry_after = RetryAfter::default();
            for second in 0..100 {
                drop_many(&mut retry_after, second, 200);
            }
            assert_eq!(retry_after.seconds(), 32);
            assert_eq!(drop_many(&mut retry_after, 99 + silence, 1), 31);
        }
    }

    proptest! {
        #[test]
        fn any_clock_keeps_it_within_bounds(seconds in prop::collection::vec(any_second(), 0..300)) {
            let mut retry_after = RetryAfter::default();
            for second in seconds {
                retry_after.record_drop(second);
                prop_assert!((1..=32).contains(&retry_after.seconds()));
                prop_assert!(retry_after.history.len() <= HISTORY_LENGTH_MAX);
            }
        }

        #[test]
        fn the_limit_on_the_history_changes_nothing_for_a_clock_that_goes_forward(
            steps in prop::collection::vec((0..4_i64, 1..100_u32), 0..300),
        ) {
            let (mut retry_after, mut plain, mut second) = (RetryAfter::default(), Plain::default(), 1_000);
            for (step, drops) in steps {
                second += step;
                (0..drops).for_each(|_| plain.record_drop(second));
                prop_assert_eq!(i64::from(drop_many(&mut retry_after, second, drops)), plain.suggestion + 1);
            }
        }
    }

    /// HF-14 word by word, but for a history without end. The suggestion is kept less one, so that it starts at zero.
    #[derive(Default)]
    struct Plain {
        second: i64,
        drops: i64,
        history: Vec<(i64, i64)>,
        suggestion: i64,
        raised_at: i64,
    }

    impl Plain {
        fn record_drop(&mut self, t: i64) {
            if t == self.second {
                self.drops += 1;
                return;
            }
            self.history.push((self.second, self.drops));
            (self.second, self.drops) = (t, 1);
            let ra = self.suggestion + 1;
            let within = self.history.iter().filter(|(second, _)| t - second <= ra && *second < t);
            let d: i64 = within.map(|(_, drops)| drops).sum();
            if t - self.raised_at >= ra && d >= 3 * ra {
                (self.suggestion, self.raised_at) = ((2 * ra).min(32) - 1, t);
            } else if d < ra && ra > 1 {
                self.suggestion -= 1;
            }
        }
    }

    fn any_second() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), 0..50_i64, Just(i64::MIN), Just(i64::MAX)]
    }
}
