//! `ServiceTimes`: how long an upstream usually works on a request, for requests that are cancelled when their clients leave.
//!
//! A client that cancels its requests early must not get more of the upstream than one that waits. So the seat of a cancelled
//! request stays taken for as long as the request would have run.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// Mean service times, by user and path, of one worker.
#[derive(Debug, Default)]
pub(crate) struct ServiceTimes {
    means: RefCell<HashMap<u64, Duration>>,
    overall: Cell<Option<Duration>>,
}

/// A request that an upstream works on since then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    key: u64,
    at: Instant,
}

/// More kinds of requests than this are not told apart.
const KINDS_MAX: usize = 4096;
/// The expected time as long as no request has run to its end.
const UNKNOWN: Duration = Duration::from_secs(1);
/// The weight of a sample in the mean is one divided by this.
const WEIGHT: u32 = 8;

// === impl ServiceTimes ===

impl ServiceTimes {
    /// A request of this user for this path has run to its end.
    pub(crate) fn note(&self, started: Started) {
        let time = started.at.elapsed();
        self.overall.set(Some(mean(self.overall.get(), time)));
        let mut means = self.means.borrow_mut();
        if means.len() >= KINDS_MAX && !means.contains_key(&started.key) {
            means.clear();
        }
        let known = means.get(&started.key).copied();
        means.insert(started.key, mean(known, time));
    }

    /// How much longer a request is expected to run.
    pub(crate) fn remaining(&self, started: Started) -> Duration {
        let known = self.means.borrow().get(&started.key).copied();
        known.or(self.overall.get()).unwrap_or(UNKNOWN).saturating_sub(started.at.elapsed())
    }
}

fn mean(before: Option<Duration>, time: Duration) -> Duration {
    before.map_or(time, |before| (before * (WEIGHT - 1) + time) / WEIGHT)
}

// === impl Started ===

impl Started {
    /// A request of this user for this path, which starts now.
    pub(crate) fn now(user: &str, path: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (user, path).hash(&mut hasher);
        Self { key: hasher.finish(), at: Instant::now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(user: &str, time: Duration) -> Started {
        let started = Started::now(user, "/");
        Started { at: started.at.checked_sub(time).unwrap(), ..started }
    }

    #[test]
    fn what_is_left_follows_from_requests_that_have_ended() {
        let (times, second) = (ServiceTimes::default(), Duration::from_secs(1));
        assert!(times.remaining(ago("ann", Duration::ZERO)) > second / 2);
        for _ in 0..50 {
            times.note(ago("ann", 10 * second));
        }
        let is_about = |left: Duration, expected: Duration| left.abs_diff(expected) < second;
        assert!(is_about(times.remaining(ago("ann", Duration::ZERO)), 10 * second));
        assert!(is_about(times.remaining(ago("ann", 4 * second)), 6 * second));
        assert!(is_about(times.remaining(ago("bob", Duration::ZERO)), 10 * second), "the mean of all others");
        assert_eq!(times.remaining(ago("ann", 60 * second)), Duration::ZERO);
        for _ in 0..50 {
            times.note(ago("bob", 2 * second));
        }
        assert!(is_about(times.remaining(ago("bob", Duration::ZERO)), 2 * second));
        assert!(is_about(times.remaining(ago("ann", Duration::ZERO)), 10 * second));
    }

    #[test]
    fn there_is_a_bound_to_what_is_remembered() {
        let times = ServiceTimes::default();
        for number in 0..3 * KINDS_MAX {
            times.note(Started::now(&number.to_string(), "/"));
        }
        assert!(times.means.borrow().len() <= KINDS_MAX);
    }
}
