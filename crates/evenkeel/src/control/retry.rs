//! `RetryAdvisor`: the advice for rejected clients: when to try again, and how long the request would have waited.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::drain::{Advice, Ahead, DrainMeter, DrainRate, Drained};
use evenkeel_engine::retry_after::RetryAfter;
use evenkeel_engine::time::{Instant, SECOND};

use crate::control::clock::Clock;
use crate::control::events::{Event, EventKind};

/// How a level finds out how fast it drains, and when its rejected clients should try again.
#[derive(Debug)]
pub(crate) struct RetryAdvisor {
    meter: DrainMeter,
    /// Set where clients get the advice that Kubernetes gives, which follows from how many requests were rejected lately (HF-13).
    reference: Option<RetryAfter>,
}

/// For how long a client should stay away, at least, when a level has too many long-running requests. Those last for minutes
/// or hours, so that there is little to be gained by trying every second.
const LONG_RUNNING_WAIT: Duration = Duration::from_secs(10);

// === impl RetryAdvisor ===

impl RetryAdvisor {
    pub(crate) fn new(preset: Preset, now: Instant) -> Self {
        let meter = DrainMeter::new(now, seed(now));
        Self { meter, reference: (preset == Preset::Kubernetes).then(RetryAfter::default) }
    }

    /// Counts events of the level.
    pub(crate) fn hear(&mut self, events: &[Event], clock: &Clock) {
        let mut drained = Drained::default();
        for event in events {
            match event.kind {
                // A request without seats makes no other request wait.
                EventKind::Finished { lingers: false, .. } if event.seats > 0 => drained.ended += 1,
                EventKind::Released => drained.ended += 1,
                EventKind::Started { waited: 1.., .. } => drained.started += 1,
                EventKind::Refused { .. } | EventKind::GaveUp { .. } => self.record_drop(event.at, clock),
                _ => {}
            }
            if event.level.is_last {
                if !event.level.has_queues {
                    // No request waits, and a rejected one needs a seat that becomes free.
                    drained.started = drained.ended;
                }
                self.meter.note(event.at, event.level.is_saturated, std::mem::take(&mut drained));
            }
        }
    }

    /// A request was rejected, or has given up.
    fn record_drop(&mut self, at: Instant, clock: &Clock) {
        if let Some(reference) = &mut self.reference {
            reference.record_drop(clock.unix_start().saturating_add(at.as_nanos()).div_euclid(SECOND));
        }
    }

    /// The advice for a client whose request is rejected now, and would have had to wait for these.
    pub(crate) fn advise(&mut self, now: Instant, ahead: Ahead) -> Advice {
        match &self.reference {
            Some(reference) => as_reference(reference),
            None => self.meter.advise_behind(now, ahead),
        }
    }

    /// The advice for a client whose request is rejected since there are too many long-running requests. Nobody knows when one of them ends.
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

/// The advice that Kubernetes gives to a rejected client.
fn as_reference(reference: &RetryAfter) -> Advice {
    Advice { retry_after: Duration::from_secs(u64::from(reference.seconds())), expected_wait: None }
}

/// A number that is different in each process, and unknown to clients.
pub(crate) fn seed(of: impl std::hash::Hash) -> u64 {
    RandomState::new().hash_one(of)
}
