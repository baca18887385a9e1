//! What a rejected client is told: when to try again, and how long it would have waited.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::drain::DrainMeter;
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::retry_after::RetryAfter;
use evenkeel_engine::time::Instant;

use crate::control::ledger::LevelGrants;
use crate::control::level::LevelQueueSet;

/// How a level finds out when its rejected clients should try again.
#[derive(Debug)]
pub(crate) enum RetryAdvisor {
    /// As Kubernetes does: by how many requests were rejected lately (HF-13).
    Reference(RetryAfter),
    /// By what waits, and how fast it drains.
    Drain(DrainMeter),
}

/// What a rejected client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) retry_after: Duration,
    /// Only where it is measured.
    pub(crate) expected_wait: Option<Duration>,
}

/// For how long a client should stay away, at least, when a level has too many long-running requests. Those last for minutes
/// or hours, so that there is little to be gained by trying every second.
const LONG_RUNNING_WAIT: Duration = Duration::from_secs(10);

// === impl RetryAdvisor ===

impl RetryAdvisor {
    pub(crate) fn new(preset: Preset, now: Instant) -> Self {
        match preset {
            Preset::Kubernetes => Self::Reference(RetryAfter::default()),
            // Each process spreads its clients in a way of its own.
            Preset::Plain => Self::Drain(DrainMeter::new(now, RandomState::new().hash_one(now))),
        }
    }

    /// Something has happened in a level, and so many requests have given their seats back.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, set: &LevelQueueSet, grants: Option<&LevelGrants>, ended: u64) {
        if let Self::Drain(meter) = self {
            meter.note(now, is_saturated(set, grants), ended);
        }
    }

    /// A request was rejected, or has given up.
    pub(crate) fn record_drop(&mut self, unix_second: impl FnOnce() -> i64) {
        if let Self::Reference(retry_after) = self {
            retry_after.record_drop(unix_second());
        }
    }

    /// What a client is told that is rejected now.
    pub(crate) fn advise(&mut self, now: Instant, set: &LevelQueueSet) -> Advice {
        match self {
            Self::Reference(retry_after) => {
                let retry_after = Duration::from_secs(u64::from(retry_after.seconds()));
                Advice { retry_after, expected_wait: None }
            }
            Self::Drain(meter) => {
                // Requests that linger hold seats too.
                let running = set.executing().max(usize::from(set.seats_in_use() > 0));
                let expected_wait = meter.expected_wait(now, set.waiting(), running);
                Advice { retry_after: meter.retry_after(expected_wait.unwrap_or(Duration::MAX)), expected_wait }
            }
        }
    }

    /// The same for one that is rejected since there are too many long-running requests. Nobody knows when one of them ends.
    pub(crate) fn advise_long_running(&mut self) -> Advice {
        let retry_after = match self {
            Self::Reference(retry_after) => Duration::from_secs(u64::from(retry_after.seconds())),
            Self::Drain(meter) => meter.retry_after(LONG_RUNNING_WAIT),
        };
        Advice { retry_after, expected_wait: None }
    }
}

/// Whether requests of the level wait, or would be rejected for want of a seat.
#[inline]
fn is_saturated(set: &LevelQueueSet, grants: Option<&LevelGrants>) -> bool {
    if matches!(set.mode(), Mode::Queue(_) | Mode::Exempt) || set.waiting() > 0 {
        return set.waiting() > 0;
    }
    // Where seats are granted one by one, the limit of the queue set is what it uses.
    set.seats_in_use() >= grants.map_or_else(|| set.concurrency_limit(), LevelGrants::usable)
}
