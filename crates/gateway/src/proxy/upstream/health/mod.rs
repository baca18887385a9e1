//! Whether an upstream is healthy, as the outcomes of requests and of its health check show.

mod comparison;
mod judge;
mod pace;
mod standing;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::{HealthCheckConfig, HealthConfig};
use crate::observe::frame::OutCause;
use crate::observe::metrics::UpstreamMetrics;

pub(crate) use comparison::compare_upstreams;
pub(super) use judge::UpstreamCounts;
pub(super) use pace::Pace;
pub(super) use standing::{Change, Condition, FULL_SHARE};
pub(crate) use standing::{RequestPurpose, Served};

use standing::UpstreamStanding;

/// The health of an upstream, shared by all workers.
#[derive(Debug)]
pub(super) struct Health {
    config: HealthConfig,
    /// Whether there is anything to remember. If not, the lock is not taken.
    is_suspect: AtomicBool,
    /// Whether it is out because it is silent.
    is_silent: AtomicBool,
    /// How long a request may wait before that is suspicious, in milliseconds; zero if upstreams are not compared.
    patience_ms: AtomicU64,
    standing: Mutex<UpstreamStanding>,
    /// How fast it responds beside the others.
    pub(super) pace: Pace,
    /// Shows whether it is up. Changed only under the lock, so that it always agrees with the standing.
    metrics: UpstreamMetrics,
}

/// How a request without a response failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The connection could not be made, or was closed.
    Connection,
    /// The response did not come in time, or is no HTTP.
    Response,
}

// === impl Health ===

impl Health {
    pub(super) fn new(config: HealthConfig, metrics: UpstreamMetrics) -> Self {
        // Until the first look, requests know no more than the settings.
        let patience_ms = AtomicU64::new(milliseconds(config.silence));
        Self {
            config,
            is_suspect: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            patience_ms,
            standing: Mutex::default(),
            pace: Pace::default(),
            metrics,
        }
    }

    fn standing(&self) -> MutexGuard<'_, UpstreamStanding> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the upstream may get requests, and how many.
    pub(super) fn condition(&self, now: Instant) -> Condition {
        if !self.is_suspect.load(Ordering::Acquire) {
            return Condition::Well(FULL_SHARE);
        }
        let standing = self.standing();
        if standing.is_unremarkable(now, &self.config) {
            self.is_suspect.store(false, Ordering::Release);
        }
        standing.condition(now, &self.config)
    }

    /// Why it gets no requests, if it gets none.
    pub(super) fn out(&self) -> Option<OutCause> {
        if self.is_suspect.load(Ordering::Acquire) { self.standing().out() } else { None }
    }

    /// Since when a request probes it.
    fn trial_since(&self) -> Option<Instant> {
        if self.is_suspect.load(Ordering::Acquire) { self.standing().trial_since() } else { None }
    }

    /// Takes the right to probe whether it serves again. Only one request gets it.
    pub(super) fn begin_trial(&self, now: Instant) -> bool {
        self.standing().begin_trial(now)
    }

    /// The trial has ended without a result.
    pub(super) fn abandon_trial(&self) {
        self.standing().abandon_trial();
    }

    /// The upstream has responded.
    pub(super) fn note_response(&self, served: Served, purpose: RequestPurpose) -> Option<Change> {
        if !self.is_suspect.load(Ordering::Acquire) {
            return None;
        }
        let now = Instant::now();
        self.update(now, |standing| standing.responded(served, purpose, now, &self.config))
    }

    /// A request got no response because of it.
    pub(super) fn note_unanswered(
        &self,
        unanswered: Unanswered,
        purpose: RequestPurpose,
        now: Instant,
    ) -> Option<Change> {
        match (unanswered, purpose) {
            (Unanswered::Connection, _) => {
                self.update(now, |standing| standing.connection_failed(purpose, now, &self.config))
            }
            (Unanswered::Response, RequestPurpose::Trial) => self
                .update(now, |standing| standing.trial_since().and_then(|_| standing.trial_failed(now, &self.config))),
            // Failures of this kind are compared with those of other upstreams.
            (Unanswered::Response, RequestPurpose::Service) => None,
        }
    }

    /// A health check of the upstream has passed or failed.
    pub(super) fn note_check(&self, has_passed: bool, now: Instant, check: &HealthCheckConfig) -> Option<Change> {
        self.update(now, |standing| standing.checked(has_passed, now, check))
    }

    /// Whether a request that has waited for longer than [`patience`](Self::patience) waits in vain.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    fn set_patience(&self, patience: Option<Duration>) {
        self.patience_ms.store(patience.map_or(0, milliseconds), Ordering::Relaxed);
    }

    /// How long a request may wait before that is suspicious, if upstreams are compared.
    pub(super) fn patience(&self) -> Option<Duration> {
        Some(self.patience_ms.load(Ordering::Relaxed)).filter(|ms| *ms > 0).map(Duration::from_millis)
    }

    fn update(&self, now: Instant, event: impl FnOnce(&mut UpstreamStanding) -> Option<Change>) -> Option<Change> {
        let mut standing = self.standing();
        let was_out = standing.out().is_some();
        let change = event(&mut standing);
        let out = standing.out();
        self.is_silent.store(out == Some(OutCause::Silent), Ordering::Relaxed);
        self.is_suspect.store(!standing.is_unremarkable(now, &self.config), Ordering::Release);
        match (was_out, out.is_some()) {
            (false, true) => self.metrics.went_down(),
            (true, false) => {
                self.pace.reset();
                self.metrics.came_up();
            }
            _ => {}
        }
        change
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gauge_says_what_the_standing_says() {
        let metrics = UpstreamMetrics::new("http://a", 1);
        let is_up = || metrics.status().is_up;
        let config = HealthConfig { failures: 2, ..HealthConfig::default() };
        let (health, now) = (Health::new(config, metrics.clone()), Instant::now());
        let fail = || health.note_unanswered(Unanswered::Connection, RequestPurpose::Service, now);
        assert_eq!((fail(), is_up()), (None, true));
        assert!(matches!(fail(), Some(Change::Ejected(OutCause::Connections, _))) && !is_up());
        assert_eq!(health.out(), Some(OutCause::Connections));
        assert_eq!((health.note_response(Served::Well, RequestPurpose::Service), is_up()), (Some(Change::Back), true));
        assert_eq!(health.note_unanswered(Unanswered::Response, RequestPurpose::Service, now), None);
        let check = HealthCheckConfig { unhealthy_after: 1, healthy_after: 1, ..HealthCheckConfig::new("/") };
        assert_eq!((health.note_check(false, now, &check), is_up()), (Some(Change::CheckFails), false));
        assert_eq!((health.note_check(true, now, &check), is_up()), (Some(Change::CheckPasses), true));
    }
}
