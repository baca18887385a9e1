//! Upstreams that fail, or are slower than they were.

use super::super::{Diagnosis, DiagnosisState, Frame, Upstream};
use super::words::{clock, milliseconds, part_of, times};
use super::{QUIET, RATE_MIN};

/// Fewer failures than this part of all requests are an accident.
const FAILED_SHARE: f64 = 0.02;
/// Demand that has grown by this factor is not unchanged.
const GROWN: f64 = 1.5;

/// An upstream and the outcomes of its requests, per second.
struct Outcome<'a> {
    upstream: &'a Upstream,
    requests: f64,
    /// Requests that failed, by what the upstream did.
    failed: [(f64, &'static str); 4],
}

// === impl Outcome ===

impl<'a> Outcome<'a> {
    #[expect(clippy::cast_precision_loss, reason = "there are ten frames")]
    fn new(upstream: &'a Upstream, frames: &'a [Frame]) -> Self {
        let named = |frame: &'a Frame| frame.upstreams.iter().find(|one| one.name == upstream.name);
        let past: Vec<&Upstream> = frames.iter().filter_map(named).collect();
        let mean =
            |rate: fn(&Upstream) -> f64| past.iter().map(|one| rate(one)).sum::<f64>() / past.len().max(1) as f64;
        let failed = [
            (mean(|one| one.errors), "responds with errors"),
            (mean(|one| one.timeouts), "does not respond in time"),
            (mean(|one| one.unreachable), "cannot be connected to"),
            (mean(|one| one.cut), "closes connections before it has responded"),
        ];
        let unanswered: f64 = failed[1..].iter().map(|(rate, _)| rate).sum();
        Self { upstream, requests: mean(|one| one.responses) + unanswered, failed }
    }

    fn failures(&self) -> f64 {
        self.failed.iter().map(|(rate, _)| rate).sum()
    }

    fn is_failing(&self) -> bool {
        let failures = self.failures();
        failures >= RATE_MIN && failures >= FAILED_SHARE * self.requests
    }

    /// What the upstream does, in words: how most of its requests failed, or why it is down.
    fn words(&self) -> &'static str {
        let most = self.failed.iter().max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(rate, _)| *rate > 0.0);
        match (most, self.upstream.out_cause) {
            (Some((_, words)), _) if self.is_failing() => words,
            (_, Some(cause)) => cause.words(),
            (Some((_, words)), None) => words,
            (None, None) => "fails",
        }
    }
}

/// Upstreams that are down, or that fail requests.
pub(super) fn failing(frames: &[Frame], last: &Frame) -> Option<Diagnosis> {
    let lately = &frames[frames.len().saturating_sub(QUIET)..];
    let is_over = |outcome: &Outcome<'_>| Outcome::new(outcome.upstream, lately).failures() <= 0.0;
    let outcomes = last.upstreams.iter().map(|upstream| Outcome::new(upstream, frames));
    let bad: Vec<Outcome<'_>> =
        outcomes.filter(|one| one.upstream.is_out || one.is_failing() && !is_over(one)).collect();
    let Some(worst) = bad.iter().max_by(|a, b| a.failures().total_cmp(&b.failures())) else {
        return failing_somewhere(frames);
    };
    let (count, all) = (bad.len(), last.upstreams.len());
    let failures: f64 = bad.iter().map(Outcome::failures).sum();
    let requests: f64 = bad.iter().map(|one| one.requests).sum();
    let rates = part_of(failures, requests.max(failures));
    let (name, words, is_out) = (&worst.upstream.name, worst.words(), worst.upstream.is_out);
    let fail = if failures >= RATE_MIN { format!(": {rates} fail") } else { String::new() };
    let text = match (count, all) {
        (1, 1) if fail.is_empty() => format!("not flow control: the upstream {name} {words}; the log says why"),
        (1, 1) => format!("not flow control: the upstream {name} {words}{fail}"),
        (1, _) => {
            let fate = if is_out { " and gets no requests" } else { "" };
            // Requests that the upstream failed before it was taken out do not matter any more.
            let fail = if is_out { "" } else { &*fail };
            format!("not flow control: the upstream {name} {words}{fate}{fail}; {} of {all} upstreams serve", all - 1)
        }
        (count, all) if count == all => format!("not flow control: all {all} upstreams fail, {name} {words}{fail}"),
        (count, all) => {
            format!("not flow control: {count} of {all} upstreams fail, {name} {words}{fail}")
        }
    };
    Some(Diagnosis { state: DiagnosisState::Failing, text, level: None })
}

/// Requests fail behind the gateway, and it is not known at which upstream.
#[expect(clippy::cast_precision_loss, reason = "there are ten frames")]
fn failing_somewhere(frames: &[Frame]) -> Option<Diagnosis> {
    let is_known = frames.iter().flat_map(|frame| &frame.upstreams).any(|one| one.responses > 0.0 || failed(one) > 0.0);
    let mean = |of: &dyn Fn(&Frame) -> f64| frames.iter().map(of).sum::<f64>() / frames.len() as f64;
    let failures = mean(&|frame| frame.server.upstream_failures);
    let started = mean(&|frame| frame.levels.iter().map(|level| level.dispatched).sum());
    if is_known || failures < RATE_MIN || failures < FAILED_SHARE * started {
        return None;
    }
    let rates = part_of(failures, started.max(failures));
    let text = format!("not flow control: upstreams fail {rates}; the log says why");
    Some(Diagnosis { state: DiagnosisState::Failing, text, level: None })
}

fn failed(one: &Upstream) -> f64 {
    one.errors + one.timeouts + one.unreachable + one.cut
}

/// An upstream that is slower than it was.
pub(super) fn slower(last: &Frame) -> Option<Diagnosis> {
    let slower = |one: &Upstream| Some((one.latency_ms? / one.latency_before_ms?.max(0.001), one.changed_ms?));
    let all = last.upstreams.iter().filter_map(|one| Some((one, slower(one)?)));
    let (upstream, (factor, since)) = all.max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let demand = match last.server.demand_before {
        Some(before) if before > 0.0 && last.server.demand >= GROWN * before => {
            format!("while demand grew {}", times(last.server.demand / before, "fold"))
        }
        // Clients that wait for responses send less when these are slow.
        Some(before) if last.server.demand * GROWN <= before => "demand has not grown".to_owned(),
        _ => "demand is unchanged".to_owned(),
    };
    let is_demand = demand.starts_with("while");
    let name =
        if last.upstreams.len() == 1 { "the upstream".to_owned() } else { format!("the upstream {}", upstream.name) };
    let text = format!(
        "{}{name} got {} at {} ({} → {} at the mean){}{demand}",
        if is_demand { "" } else { "not flow control: " },
        times(factor, "slower"),
        clock(since),
        milliseconds(upstream.latency_before_ms.unwrap_or_default()),
        milliseconds(upstream.latency_ms.unwrap_or_default()),
        if is_demand { " " } else { ", " },
    );
    Some(Diagnosis { state: DiagnosisState::Slow, text, level: None })
}
