//! Whether an upstream is healthy, as the outcomes of requests show.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::HealthConfig;
use crate::observe::metrics::UpstreamMetrics;

/// The health of an upstream, shared by all workers.
#[derive(Debug)]
pub(super) struct Health {
    config: HealthConfig,
    /// Whether there was a failure lately. Without one, the lock is not taken.
    is_suspect: AtomicBool,
    record: Mutex<Record>,
    /// Shows whether it is up. Changed only under the lock, so that it is always what the record says.
    metrics: UpstreamMetrics,
}

#[derive(Debug, Default)]
struct Record {
    failures: u32,
    failed_at: Option<Instant>,
    /// How often it was taken out of the rotation without a success in between, and until when it is.
    ejections: u32,
    ejected_until: Option<Instant>,
    /// A request probes whether it is healthy again.
    is_tried: bool,
}

/// What an upstream is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// For requests.
    Well,
    /// Its pause is over: for one request.
    Due,
    /// For nothing, and since this time.
    Ejected(Instant),
}

// === impl Health ===

impl Health {
    pub(super) fn new(config: HealthConfig, metrics: UpstreamMetrics) -> Self {
        Self { config, is_suspect: AtomicBool::new(false), record: Mutex::default(), metrics }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn condition(&self, now: Instant) -> Condition {
        if !self.is_suspect.load(Ordering::Acquire) {
            return Condition::Well;
        }
        let record = self.record();
        match (record.ejected_until, record.failed_at) {
            (Some(until), _) if now >= until && !record.is_tried => Condition::Due,
            (Some(until), failed_at) => Condition::Ejected(failed_at.unwrap_or(until)),
            (None, _) => Condition::Well,
        }
    }

    /// Takes the right to probe whether it is healthy again. Only one request gets it.
    pub(super) fn begin_trial(&self) -> bool {
        !std::mem::replace(&mut self.record().is_tried, true)
    }

    /// The trial has ended without a result.
    pub(super) fn abandon_trial(&self) {
        self.record().is_tried = false;
    }

    /// It has responded.
    pub(super) fn note_success(&self) {
        if self.is_suspect.load(Ordering::Acquire) {
            let mut record = self.record();
            *record = Record::default();
            self.is_suspect.store(false, Ordering::Release);
            self.metrics.came_up();
        }
    }

    /// Whether this took it out of the rotation, and for how long. It is down then.
    pub(super) fn note_failure(&self, now: Instant) -> Option<Duration> {
        let mut record = self.record();
        self.is_suspect.store(true, Ordering::Release);
        record.failures = record.failures.saturating_add(1);
        record.failed_at = Some(now);
        record.is_tried = false;
        let is_out = record.ejected_until.is_some_and(|until| now < until);
        if record.failures < self.config.failures.max(1) || is_out {
            return None;
        }
        let factor = 1_u32 << record.ejections.min(16);
        let pause = self.config.pause.saturating_mul(factor).min(self.config.pause_max);
        record.ejections = record.ejections.saturating_add(1);
        record.ejected_until = Some(now + pause);
        self.metrics.went_down();
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_a_trial_succeeds() {
        let (second, start) = (Duration::from_secs(1), Instant::now());
        let metrics = UpstreamMetrics::new("http://a", 1);
        let is_up = || metrics.status().is_up;
        let config = HealthConfig { failures: 2, pause: second, pause_max: 3 * second };
        let health = Health::new(config, metrics.clone());
        assert_eq!(health.note_failure(start), None);
        assert_eq!((health.condition(start), is_up()), (Condition::Well, true));
        let mut now = start;
        for pause in [1, 2, 3, 3] {
            assert_eq!(health.note_failure(now), Some(pause * second));
            // Requests that were under way fail too; that counts for nothing.
            assert_eq!(health.note_failure(now), None);
            assert_eq!(health.condition(now), Condition::Ejected(now));
            now += pause * second;
            assert_eq!(health.condition(now), Condition::Due);
            assert!(health.begin_trial() && !health.begin_trial());
            assert!(matches!(health.condition(now), Condition::Ejected(_)) && !is_up());
        }
        health.abandon_trial();
        assert_eq!(health.condition(now), Condition::Due);
        health.note_success();
        assert_eq!((health.condition(now), is_up()), (Condition::Well, true));
        assert_eq!((health.note_failure(now), is_up()), (None, true));
    }
}
