//! `judge`: compares upstreams by their responses, and decides which get no requests for a while.
//!
//! The judge has no clock and no network. A caller looks at the counters of all upstreams some times a second and passes them on, with
//! the time. Memory does not grow: a [`TrackRecord`] has a fixed size.
//!
//! Failures that all upstreams share are the service's fault or the clients', and no upstream is ejected for them; see
//! `docs/decisions/0077-failing-upstreams.md`.

use std::time::{Duration, Instant};

use crate::config::HealthConfig;
use crate::observe::frame::OutCause;

/// The counts of an upstream since it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UpstreamCounts {
    /// Requests that were sent to the upstream.
    pub(crate) asked: u64,
    /// Requests that wait for a response of the upstream.
    pub(crate) waiting: u64,
    /// Responses that are no errors.
    pub(crate) served: u64,
    /// Responses that are errors, and requests that got none because of the upstream.
    pub(crate) failed: u64,
}

/// The record of an upstream, kept from one look to the next.
#[derive(Debug, Clone, Default)]
pub(super) struct TrackRecord {
    last: Option<(Instant, UpstreamCounts)>,
    /// Errors that were more than their tolerated share, as a running sum that never falls below zero.
    score: f64,
    /// The recent outcomes; older ones weigh less.
    recent: Recent,
    silence: Option<Silence>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    served: f64,
    failed: f64,
}

/// A time in which nothing came back while requests waited.
#[derive(Debug, Clone, Copy)]
struct Silence {
    since: Instant,
    /// How many requests the other upstreams had been sent when the silence began.
    others_asked: u64,
    /// How many requests waited at the last looks, the oldest first.
    waiting: [u64; LOOKS],
}

/// One upstream of those that are compared.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) record: &'a mut TrackRecord,
    pub(super) counts: UpstreamCounts,
    pub(super) out: Option<OutCause>,
    /// Since when a request probes the upstream.
    pub(super) trial_since: Option<Instant>,
}

/// The verdict on an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Eject(OutCause),
    /// The upstream is no longer worse than the others in what it was ejected for.
    Reinstate,
    /// The request that probes the upstream gets no response.
    TrialFailed,
}

/// How often the caller looks.
pub(super) const PERIOD: Duration = Duration::from_millis(100);
/// Requests have been waiting for as many looks before their silence counts.
const LOOKS: usize = 5;
/// After this time, an event weighs half.
const HALF_LIFE: Duration = Duration::from_secs(5);
/// An upstream is worse than the best of the others if that one has had so many responses lately, and a share of errors that is so many times smaller.
const COMPARED_MIN: f64 = 10.0;
const TIMES_WORSE: f64 = 3.0;
/// Failed and served requests that are assumed beside those that were counted: few responses prove little.
const ASSUMED_FAILED: f64 = 3.0;
const ASSUMED_SERVED: f64 = 3.0;
/// An upstream is silent if so many requests without a response are less likely than this, as the logarithm of one in ten
/// thousand, by what the others leave waiting.
const UNLIKELY: f64 = -9.2;
/// No request is late that takes less than so many times what is usual.
const TIMES_SLOWER: u32 = 10;
/// The score goes no higher than so many ejections' worth, so that it falls soon when errors end.
const SCORE_MAX: f64 = 2.0;

/// The verdict on each of these upstreams, in their order. At least one that is in service stays there.
///
/// `patience` is the time after which a request without a response is suspicious, see [`patience`].
pub(super) fn judge(
    now: Instant,
    patience: Option<Duration>,
    config: &HealthConfig,
    cases: &mut [Case<'_>],
) -> Vec<Option<Verdict>> {
    let asked: u64 = cases.iter().map(|case| case.counts.asked).sum();
    for case in &mut *cases {
        let others_asked = asked.saturating_sub(case.counts.asked);
        case.record.note(now, case.counts, others_asked, config);
    }
    let mut in_service = cases.iter().filter(|case| case.out.is_none()).count();
    let verdicts = (0..cases.len()).map(|index| {
        let verdict = decide(now, patience, config, cases, index);
        if let Some(Verdict::Eject(_)) = verdict {
            if in_service <= 1 {
                return None;
            }
            in_service -= 1;
        }
        verdict
    });
    let verdicts: Vec<_> = verdicts.collect();
    for (case, verdict) in cases.iter_mut().zip(&verdicts) {
        if verdict.is_some() {
            (case.record.score, case.record.silence) = (0.0, None);
        }
    }
    verdicts
}

/// The time after which a request without a response is suspicious: as the settings say, and many times what upstreams usually
/// take. None if silence is not watched.
pub(super) fn patience(config: &HealthConfig, usual: Option<Duration>) -> Option<Duration> {
    let usual = usual.unwrap_or_default().saturating_mul(TIMES_SLOWER);
    (!config.silence.is_zero()).then(|| config.silence.max(usual))
}

fn decide(
    now: Instant,
    patience: Option<Duration>,
    config: &HealthConfig,
    cases: &[Case<'_>],
    index: usize,
) -> Option<Verdict> {
    let case = &cases[index];
    let others = || cases.iter().enumerate().filter(|(other, case)| *other != index && case.out.is_none());
    let others = || others().map(|(_, case)| case);
    let is_late = |since: Instant| patience.is_some_and(|patience| now.saturating_duration_since(since) >= patience);
    match case.out {
        None if case.record.is_silent(is_late, cases, case.counts) => Some(Verdict::Eject(OutCause::Silent)),
        None if case.record.is_worse(config, others()) => Some(Verdict::Eject(OutCause::Errors)),
        Some(OutCause::Errors)
            if others().next().is_some() && others().all(|other| other.record.is_failing(config)) =>
        {
            Some(Verdict::Reinstate)
        }
        Some(OutCause::Errors | OutCause::Silent | OutCause::Connections) => {
            case.trial_since.is_some_and(is_late).then_some(Verdict::TrialFailed)
        }
        _ => None,
    }
}

// === impl TrackRecord ===

impl TrackRecord {
    /// Adds what has happened since the last look.
    fn note(&mut self, now: Instant, counts: UpstreamCounts, others_asked: u64, config: &HealthConfig) {
        let (last_at, last) = self.last.replace((now, counts)).unwrap_or((now, counts));
        let served = float(counts.served.saturating_sub(last.served));
        let failed = float(counts.failed.saturating_sub(last.failed));
        let weight = (-now.saturating_duration_since(last_at).as_secs_f64() / HALF_LIFE.as_secs_f64()).exp2();
        self.recent.served = self.recent.served * weight + served;
        self.recent.failed = self.recent.failed * weight + failed;
        let score_max = SCORE_MAX * config.score_limit();
        self.score = (self.score + failed * config.error_weight() - served).clamp(0.0, score_max);
        let has_come = served + failed > 0.0;
        match &mut self.silence {
            silence if has_come || counts.waiting == 0 => *silence = None,
            Some(silence) => {
                silence.waiting.rotate_left(1);
                silence.waiting[LOOKS - 1] = counts.waiting;
            }
            silence => *silence = Some(Silence { since: now, others_asked, waiting: [0; LOOKS] }),
        }
    }

    /// Whether the upstream fails more often than tolerated, lately.
    fn is_failing(&self, config: &HealthConfig) -> bool {
        config.compares_errors() && self.score >= config.score_limit()
    }

    /// Whether the upstream fails more often than tolerated, and than the best of the others.
    fn is_worse<'a>(&self, config: &HealthConfig, others: impl Iterator<Item = &'a Case<'a>>) -> bool {
        if !self.is_failing(config) {
            return false;
        }
        let compared = others.map(|other| other.record.recent).filter(|recent| recent.all() >= COMPARED_MIN);
        let best = compared.map(Recent::share_at_most).fold(f64::INFINITY, f64::min);
        self.recent.failed / self.recent.all() >= TIMES_WORSE * best
    }

    /// Whether the upstream is silent, and not by chance.
    fn is_silent(&self, is_late: impl Fn(Instant) -> bool, all: &[Case<'_>], own: UpstreamCounts) -> bool {
        let Some(silence) = self.silence.filter(|silence| is_late(silence.since)) else { return false };
        let all_of = |count: fn(&UpstreamCounts) -> u64| all.iter().map(|case| count(&case.counts)).sum::<u64>();
        let asked = all_of(|counts| counts.asked).saturating_sub(own.asked + silence.others_asked);
        let waiting = all_of(|counts| counts.waiting).saturating_sub(own.waiting);
        // The part of the requests sent to the other upstreams in the same time that still waits.
        let share = (float(waiting) + 1.0) / (float(asked) + 2.0);
        let for_long = silence.waiting.iter().copied().min().unwrap_or(0);
        share < 1.0 && float(for_long) * share.ln() < UNLIKELY
    }
}

// === impl Recent ===

impl Recent {
    fn all(self) -> f64 {
        self.served + self.failed
    }

    /// The share of errors, estimated too high rather than too low.
    fn share_at_most(self) -> f64 {
        (self.failed + ASSUMED_FAILED) / (self.all() + ASSUMED_FAILED + ASSUMED_SERVED)
    }
}

// === impl HealthConfig ===

impl HealthConfig {
    fn compares_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many good responses outweigh an error, so that the tolerated share of errors is even.
    fn error_weight(&self) -> f64 {
        (1.0 - self.error_share) / self.error_share.max(f64::MIN_POSITIVE)
    }

    /// The score of so many errors in a row.
    fn score_limit(&self) -> f64 {
        f64::from(self.errors) * self.error_weight()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small beside 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
