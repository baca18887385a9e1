//! What a rejected client is told: when to try again, and how long it would have waited.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::drain::{Advice, DrainMeter, DrainRate};
use evenkeel_engine::retry_after::RetryAfter;
use evenkeel_engine::time::Instant;

use crate::control::ledger::LevelGrants;
use crate::control::level::LevelQueueSet;

/// How a level finds out how fast it drains, and when its rejected clients should try again.
#[derive(Debug)]
pub(crate) struct RetryAdvisor {
    meter: DrainMeter,
    /// Set where clients are told what Kubernetes tells them: it goes by how many requests were rejected lately (HF-13).
    reference: Option<RetryAfter>,
}

/// For how long a client should stay away, at least, when a level has too many long-running requests. Those last for minutes
/// or hours, so that there is little to be gained by trying every second.
const LONG_RUNNING_WAIT: Duration = Duration::from_secs(10);

// === impl RetryAdvisor ===

impl RetryAdvisor {
    pub(crate) fn new(preset: Preset, now: Instant) -> Self {
        // Each process spreads its clients in a way of its own.
        let meter = DrainMeter::new(now, RandomState::new().hash_one(now));
        Self { meter, reference: (preset == Preset::Kubernetes).then(RetryAfter::default) }
    }

    /// Something has happened in a level, and so many requests have given their seats back.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, set: &LevelQueueSet, grants: Option<&LevelGrants>, ended: u64) {
        // Where seats are granted one by one, the limit of the queue set is what it uses.
        let usable = || grants.map_or_else(|| set.concurrency_limit(), LevelGrants::usable);
        self.meter.look(now, set, usable, ended);
    }

    /// A request was rejected, or has given up.
    pub(crate) fn record_drop(&mut self, unix_second: impl FnOnce() -> i64) {
        if let Some(reference) = &mut self.reference {
            reference.record_drop(unix_second());
        }
    }

    /// What a client is told that is rejected now.
    pub(crate) fn advise(&mut self, now: Instant, set: &LevelQueueSet) -> Advice {
        match &self.reference {
            Some(reference) => as_reference(reference),
            None => self.meter.advise(now, set),
        }
    }

    /// The same for one that is rejected since there are too many long-running requests. Nobody knows when one of them ends.
    pub(crate) fn advise_long_running(&mut self) -> Advice {
        match &self.reference {
            Some(reference) => as_reference(reference),
            None => Advice { retry_after: self.meter.retry_after(LONG_RUNNING_WAIT), expected_wait: None },
        }
    }

    /// How fast the level drains, if that is known.
    pub(crate) fn drain_rate(&self, now: Instant) -> Option<DrainRate> {
        self.meter.rate(now)
    }
}

/// What Kubernetes tells a rejected client.
fn as_reference(reference: &RetryAfter) -> Advice {
    Advice { retry_after: Duration::from_secs(u64::from(reference.seconds())), expected_wait: None }
}
