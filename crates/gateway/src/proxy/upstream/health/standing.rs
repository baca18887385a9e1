//! `UpstreamStanding`: whether one upstream gets requests. A state machine without a clock: time is an argument.
//!
//! Events in: [`UpstreamStanding::connection_failed`], [`UpstreamStanding::eject`], [`UpstreamStanding::responded`], [`UpstreamStanding::trial_failed`],
//! [`UpstreamStanding::checked`]. Each says what changed, if anything. Queries: [`UpstreamStanding::condition`], [`UpstreamStanding::out`]. Of those that
//! find it due, one begins the trial ([`UpstreamStanding::begin_trial`]).

use std::time::{Duration, Instant};

use crate::config::{HealthCheckConfig, HealthConfig};
use crate::observe::frame::OutCause;

/// Whether an upstream gets requests, and what it takes to change that.
#[derive(Debug, Default)]
pub(super) struct UpstreamStanding {
    service: Service,
    /// Connections that failed in a row.
    failures: u32,
    /// How often it was ejected. Forgotten after it has been in service for as long as the longest pause.
    ejections: u32,
    check: CheckResults,
}

#[derive(Debug, Clone, Copy)]
enum Service {
    /// The upstream gets requests; since when, if it was out before.
    In(Option<Instant>),
    Ejected(Ejection),
}

#[derive(Debug, Clone, Copy)]
struct Ejection {
    cause: OutCause,
    /// The latest failure of the upstream.
    since: Instant,
    until: Instant,
    /// Since when a request probes whether it serves again.
    trial: Option<Instant>,
}

/// The results of the health check.
#[derive(Debug, Default)]
struct CheckResults {
    failing_since: Option<Instant>,
    /// Results in a row that say the opposite.
    contrary: u32,
}

/// Whether an upstream may get requests, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The upstream gets this share of the requests that it would get otherwise, in thousandths.
    Well(u32),
    /// Its ejection has expired; one probe request is allowed.
    Due,
    /// The upstream gets no requests, since this time.
    Out(Instant),
}

/// How an upstream that responded did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    Well,
    /// The response of the upstream is one of a failure.
    Error,
}

/// Whether a request probes an upstream whose ejection has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPurpose {
    Service,
    Trial,
}

/// The change that an event made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The upstream gets no requests for this time.
    Ejected(OutCause, Duration),
    /// A probe request has failed: it gets none for longer.
    StillEjected(Duration),
    /// The upstream gets requests again.
    Back,
    CheckFails,
    CheckPasses,
}

/// All of its share.
pub(crate) const FULL_SHARE: u32 = 1000;
/// The share with which an upstream begins that comes back.
const FIRST_SHARE: u32 = FULL_SHARE / 10;
/// The pause doubles so often at most.
const DOUBLED_MAX: u32 = 16;

// === impl UpstreamStanding ===

impl UpstreamStanding {
    /// A connection was refused, or closed before a response.
    pub(super) fn connection_failed(
        &mut self,
        purpose: RequestPurpose,
        now: Instant,
        config: &HealthConfig,
    ) -> Option<Change> {
        match self.service {
            Service::In(_) => {
                self.failures = self.failures.saturating_add(1);
                if self.failures < config.failures.max(1) {
                    None
                } else {
                    self.eject(OutCause::Connections, now, config)
                }
            }
            Service::Ejected(Ejection { trial: Some(_), .. }) if purpose == RequestPurpose::Trial => {
                self.trial_failed(now, config)
            }
            // The upstream was asked because there is no other one, and its pause is over.
            Service::Ejected(ejection) if ejection.trial.is_none() && now >= ejection.until => {
                self.trial_failed(now, config)
            }
            Service::Ejected(_) => None,
        }
    }

    /// The upstream is to get no requests for a while.
    pub(super) fn eject(&mut self, cause: OutCause, now: Instant, config: &HealthConfig) -> Option<Change> {
        let Service::In(since) = self.service else { return None };
        if since.is_none_or(|since| now.saturating_duration_since(since) >= config.pause_max) {
            self.ejections = 0;
        }
        let pause = self.pause(cause, now, config);
        Some(Change::Ejected(cause, pause))
    }

    /// The request that probes it has failed.
    pub(super) fn trial_failed(&mut self, now: Instant, config: &HealthConfig) -> Option<Change> {
        let Service::Ejected(Ejection { cause, .. }) = self.service else { return None };
        Some(Change::StillEjected(self.pause(cause, now, config)))
    }

    /// Begins a pause, and returns its length.
    fn pause(&mut self, cause: OutCause, now: Instant, config: &HealthConfig) -> Duration {
        let factor = 1_u32 << self.ejections.min(DOUBLED_MAX);
        let pause = config.pause.saturating_mul(factor).min(config.pause_max);
        self.ejections = self.ejections.saturating_add(1);
        self.failures = 0;
        self.service = Service::Ejected(Ejection { cause, since: now, until: now + pause, trial: None });
        pause
    }

    /// The upstream has responded.
    pub(super) fn responded(
        &mut self,
        served: Served,
        purpose: RequestPurpose,
        now: Instant,
        config: &HealthConfig,
    ) -> Option<Change> {
        let Service::Ejected(ejection) = self.service else {
            self.failures = 0;
            return None;
        };
        match (ejection.cause, served, purpose) {
            // Any response shows that it can be reached; errors are judged as those of other upstreams.
            (OutCause::Connections, _, _)
            | (_, Served::Well, RequestPurpose::Trial)
            | (OutCause::Silent, Served::Well, _) => {
                self.service = Service::In(Some(now));
                Some(Change::Back)
            }
            (_, Served::Error, RequestPurpose::Trial) if ejection.trial.is_some() => self.trial_failed(now, config),
            // A request that was under way when it was ejected, or a probe that came too late.
            _ => None,
        }
    }

    /// The upstream is no longer worse than the others in what it was ejected for.
    pub(super) fn reinstate(&mut self, now: Instant) -> Option<Change> {
        let Service::Ejected(_) = self.service else { return None };
        self.service = Service::In(Some(now));
        Some(Change::Back)
    }

    /// Takes the right to probe it. Only one request gets it.
    pub(super) fn begin_trial(&mut self, now: Instant) -> bool {
        match &mut self.service {
            Service::Ejected(Ejection { trial: trial @ None, until, .. }) if now >= *until => {
                *trial = Some(now);
                true
            }
            _ => false,
        }
    }

    /// The trial has ended without a result.
    pub(super) fn abandon_trial(&mut self) {
        if let Service::Ejected(ejection) = &mut self.service {
            ejection.trial = None;
        }
    }

    /// Since when a request probes it.
    pub(super) fn trial_since(&self) -> Option<Instant> {
        match self.service {
            Service::Ejected(Ejection { trial, .. }) => trial,
            Service::In(_) => None,
        }
    }

    /// A health check of the upstream has passed or failed.
    pub(super) fn checked(&mut self, has_passed: bool, now: Instant, config: &HealthCheckConfig) -> Option<Change> {
        let is_failing = self.check.failing_since.is_some();
        if has_passed != is_failing {
            self.check.contrary = 0;
            return None;
        }
        self.check.contrary = self.check.contrary.saturating_add(1);
        let enough = if has_passed { config.healthy_after } else { config.unhealthy_after };
        if self.check.contrary < enough.max(1) {
            return None;
        }
        self.check = CheckResults { failing_since: (!has_passed).then_some(now), contrary: 0 };
        if !has_passed {
            return Some(Change::CheckFails);
        }
        if let Service::In(since) = &mut self.service {
            *since = Some(now);
        }
        Some(Change::CheckPasses)
    }

    /// Whether the upstream may get requests, and how many.
    pub(super) fn condition(&self, now: Instant, config: &HealthConfig) -> Condition {
        if let Some(since) = self.check.failing_since {
            return Condition::Out(since);
        }
        match self.service {
            Service::In(None) => Condition::Well(FULL_SHARE),
            Service::In(Some(since)) => Condition::Well(share(now.saturating_duration_since(since), config.slow_start)),
            Service::Ejected(ejection) if now >= ejection.until && ejection.trial.is_none() => Condition::Due,
            Service::Ejected(ejection) => Condition::Out(ejection.since),
        }
    }

    /// Why it gets no requests, if it gets none.
    pub(super) fn out(&self) -> Option<OutCause> {
        match self.service {
            _ if self.check.failing_since.is_some() => Some(OutCause::Check),
            Service::In(_) => None,
            Service::Ejected(ejection) => Some(ejection.cause),
        }
    }

    /// Whether there is nothing to remember that decides about the next request.
    pub(super) fn is_unremarkable(&self, now: Instant, config: &HealthConfig) -> bool {
        self.failures == 0 && self.condition(now, config) == Condition::Well(FULL_SHARE)
    }
}

/// The share of one that has been back for this long.
fn share(back_for: Duration, slow_start: Duration) -> u32 {
    if back_for >= slow_start {
        return FULL_SHARE;
    }
    let grown = back_for.as_micros() * u128::from(FULL_SHARE) / slow_start.as_micros().max(1);
    u32::try_from(grown).unwrap_or(FULL_SHARE).clamp(FIRST_SHARE, FULL_SHARE)
}

// === impl Service ===

impl Default for Service {
    fn default() -> Self {
        Self::In(None)
    }
}

#[cfg(test)]
mod tests;
