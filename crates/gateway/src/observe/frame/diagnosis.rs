//! The diagnosis: what the last frames mean, in one sentence.

use std::collections::HashMap;

use super::{Delay, Diagnosis, Flow, Frame, Level, State, Upstream};

/// Waits below this are nobody's concern.
const WAIT_MS_MIN: f64 = 10.0;
/// Requests that wait while nothing starts are a concern after this long.
const STUCK_MS_MIN: f64 = 3000.0;
/// Fewer rejected requests a second than this are nobody's concern.
const REJECTED_MIN: f64 = 0.1;
/// How many frames a diagnosis is about. One bad second in ten is worth a word, and a sentence that changes every second is not.
const FRAMES: usize = 10;
/// Fewer failures than this part of all requests are an accident.
const FAILED_SHARE: f64 = 0.02;
/// Fewer seats than this part of those before may be why requests wait, for as long as this.
const LOWERED: f64 = 0.8;
const LOWERED_MS: u64 = 600_000;
/// Demand that has grown by this factor is not unchanged.
const GROWN: f64 = 1.5;

/// What the last of these frames means, with those before it. The latest is the last.
pub fn diagnose(frames: &[Frame]) -> Diagnosis {
    let frames = &frames[frames.len().saturating_sub(FRAMES)..];
    let Some(last) = frames.last() else { return Diagnosis::default() };
    upstream_out(last)
        .or_else(|| upstream_failing(frames))
        .or_else(|| upstream_slow(last))
        .or_else(|| level_in_trouble(frames, last))
        .unwrap_or_else(|| all_is_well(last))
}

fn upstream_out(last: &Frame) -> Option<Diagnosis> {
    let out: Vec<&str> = last.upstreams.iter().filter(|one| one.is_out).map(|one| one.name.as_str()).collect();
    let (first, count) = (out.first()?, last.upstreams.len());
    let text = match out.len() {
        1 if count == 1 => format!("not flow control: the upstream {first} fails; the log says why"),
        all if all == count => format!("not flow control: all {count} upstreams fail; the log says why"),
        1 => {
            format!("not flow control: the upstream {first} fails and gets no requests; {} of {count} serve", count - 1)
        }
        some => format!("not flow control: {some} of {count} upstreams fail and get no requests, {first} among them"),
    };
    Some(Diagnosis { state: State::Failing, text, level: None })
}

/// Requests fail behind the gateway, and no upstream is down: it may respond to some, or too late.
#[expect(clippy::cast_precision_loss, reason = "there are ten frames")]
fn upstream_failing(frames: &[Frame]) -> Option<Diagnosis> {
    let mean = |of: &dyn Fn(&Frame) -> f64| frames.iter().map(of).sum::<f64>() / frames.len() as f64;
    let failures = mean(&|frame| frame.server.upstream_failures);
    let started = mean(&|frame| frame.levels.iter().map(|level| level.dispatched).sum());
    if failures < REJECTED_MIN || failures < FAILED_SHARE * started {
        return None;
    }
    let text = format!(
        "not flow control: upstreams fail {} of {} requests a second; the log says why",
        quantity(failures),
        quantity(started.max(failures)),
    );
    Some(Diagnosis { state: State::Failing, text, level: None })
}

fn upstream_slow(last: &Frame) -> Option<Diagnosis> {
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
    Some(Diagnosis { state: State::Slow, text, level: None })
}

/// The level with the most rejected requests, or else the one with the longest waits.
fn level_in_trouble(frames: &[Frame], last: &Frame) -> Option<Diagnosis> {
    let worst = Trouble::all(last, frames).into_iter().max_by(|a, b| {
        let weight = |one: &Trouble<'_>| if one.rejected >= REJECTED_MIN { one.rejected } else { 0.0 };
        let wait = |one: &Trouble<'_>| if one.is_stuck() { one.wait_p99.max(one.stuck_ms) } else { one.wait_p99 };
        weight(a).total_cmp(&weight(b)).then(wait(a).total_cmp(&wait(b)))
    })?;
    let Trouble { level, rejected, wait_p99, stuck_ms } = worst;
    let is_rejecting = rejected >= REJECTED_MIN;
    if !is_rejecting && !worst.is_stuck() && wait_p99 < WAIT_MS_MIN {
        return None;
    }
    let name = &level.name;
    let mut text = if is_rejecting {
        let reason = reason(level, frames);
        format!("{name} rejects {} requests a second{reason}", quantity(rejected))
    } else if worst.is_stuck() {
        let wait = if level.waiting == 1 { "1 waits".to_owned() } else { format!("{} wait", level.waiting) };
        format!("{name} has started no request for {}, {wait}", milliseconds(stuck_ms))
    } else {
        format!("{name} waits {} at p99", milliseconds(wait_p99))
    };
    text += ": ";
    text += &if is_rejecting { rejected_flow(level) } else { None }.unwrap_or_else(|| {
        let waiting = if is_rejecting || worst.is_stuck() { "the waiting" } else { "it" };
        cause(level, waiting)
    });
    for more in [seats_lowered(last), idle_elsewhere(level, last)].into_iter().flatten() {
        text += "; ";
        text += &more;
    }
    let state = if is_rejecting { State::Failing } else { State::Slow };
    Some(Diagnosis { state, text, level: Some(name.clone()) })
}

/// What a level suffers from, over all frames.
struct Trouble<'a> {
    level: &'a Level,
    /// Requests a second.
    rejected: f64,
    /// The longest, so that one bad second counts.
    wait_p99: f64,
    /// For how long requests have waited of which none was started. How long a request waits is known when that is over.
    stuck_ms: f64,
}

// === impl Trouble ===

impl<'a> Trouble<'a> {
    fn is_stuck(&self) -> bool {
        self.stuck_ms >= STUCK_MS_MIN
    }

    /// Those of all levels with a limit. There may be hundreds, so that each frame is gone through once.
    #[expect(clippy::cast_precision_loss, reason = "there are ten frames")]
    fn all(last: &'a Frame, frames: &[Frame]) -> Vec<Self> {
        let limited = last.levels.iter().filter(|level| !level.is_exempt());
        let mut all: Vec<_> =
            limited.map(|level| Self { level, rejected: 0.0, wait_p99: 0.0, stuck_ms: 0.0 }).collect();
        let places: HashMap<&str, usize> =
            all.iter().enumerate().map(|(place, one)| (one.level.name.as_str(), place)).collect();
        for (frame, level) in frames.iter().flat_map(|frame| frame.levels.iter().map(move |level| (frame, level))) {
            let Some(one) = places.get(level.name.as_str()).and_then(|place| all.get_mut(*place)) else { continue };
            one.rejected += level.rejected_total() / frames.len() as f64;
            one.wait_p99 = one.wait_p99.max(level.wait_ms.map_or(0.0, |wait| wait.p99));
            let is_stuck = level.waiting > 0 && level.dispatched <= 0.0;
            one.stuck_ms = if is_stuck { one.stuck_ms + frame.interval_ms as f64 } else { 0.0 };
        }
        all
    }
}

/// The most frequent reason of rejections, in parentheses.
fn reason(level: &Level, frames: &[Frame]) -> String {
    let past = frames.iter().filter_map(|frame| frame.level(&level.name));
    let all = past.flat_map(|level| level.rejected.iter());
    let most = all.max_by(|a, b| a.1.total_cmp(b.1));
    most.map(|(reason, _)| format!(" ({reason})")).unwrap_or_default()
}

/// Whose requests are rejected, if most of them are of one flow.
fn rejected_flow(level: &Level) -> Option<String> {
    let total: f64 = level.flows.iter().map(|flow| flow.rejected).sum();
    let most = level.flows.iter().max_by(|a, b| a.rejected.total_cmp(&b.rejected))?;
    if total <= 0.0 || most.rejected < 0.5 * total {
        return None;
    }
    let (name, share) = (flow_name(most), (most.rejected / total * 100.0).round());
    let seats = held(most, level);
    let part = if most.rejected >= total { "all".to_owned() } else { format!("{} %", share.min(99.0)) };
    Some(format!("{part} of them are from {name}, which holds {seats}"))
}

/// Who is in the way, or how full the level is. The sentence has mentioned the waiting before, or calls it something now.
fn cause(level: &Level, waiting: &str) -> String {
    let seats = format!("{} of {} seats", level.in_use, level.current.max(level.in_use));
    let blamed = level.delays.iter().filter_map(|delay| Some((delay, level.flows.get(delay.by?)?)));
    let mut by_flow: Vec<(&Flow, f64, bool)> = Vec::new();
    for (Delay { waiter, by, share, .. }, flow) in blamed {
        let is_own = Some(*waiter) == *by;
        match by_flow.iter_mut().find(|(known, _, own)| std::ptr::eq(*known, flow) && *own == is_own) {
            Some((_, sum, _)) => *sum += share,
            None => by_flow.push((flow, *share, is_own)),
        }
    }
    match by_flow.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((flow, share, is_own)) if share >= 0.2 => {
            let (name, share, seats) = (flow_name(flow), (share * 100.0).round(), held(flow, level));
            if is_own {
                format!("{share} % of {waiting} is {name} behind its own requests, which hold {seats}")
            } else {
                format!("{share} % of {waiting} behind {name}, which holds {seats}")
            }
        }
        _ => format!("{seats} are in use"),
    }
}

/// How many seats of its level a flow has. It is a mean over a minute, in which the level may have had more seats than now.
#[expect(clippy::cast_precision_loss, reason = "a number of seats")]
fn held(flow: &Flow, level: &Level) -> String {
    let seats = level.current.max(level.in_use);
    format!("{} of {seats} seats", quantity(flow.seats.min(seats as f64)))
}

/// Seats that were taken away of late, if they were many.
#[expect(clippy::cast_precision_loss, reason = "numbers of seats")]
fn seats_lowered(last: &Frame) -> Option<String> {
    let event = last.events.iter().find(|event| event.seats.is_some())?;
    let [before, after] = event.seats?;
    let is_lately = last.time_ms.saturating_sub(event.time_ms) < LOWERED_MS;
    (is_lately && after as f64 <= LOWERED * before as f64)
        .then(|| format!("there are {before} → {after} seats since {}", clock(event.time_ms)))
}

/// The seats of other levels that nobody uses, and why this level does not have them.
fn idle_elsewhere(level: &Level, last: &Frame) -> Option<String> {
    let others = || last.levels.iter().filter(|other| !other.is_exempt() && other.name != level.name);
    let kept: i64 = others().map(|other| (other.floor - other.in_use).max(0)).sum();
    let idle: i64 = others().map(|other| (other.nominal - other.lent - other.in_use.max(other.floor)).max(0)).sum();
    let is_at_limit = level.limit > 0 && level.current >= level.limit;
    match (idle, kept) {
        (idle, _) if idle > 0 && is_at_limit => Some(match level.limit - level.nominal {
            ..=0 => format!("it may not borrow, although {} seats of other levels are idle", idle + kept),
            borrowed => format!("it may not borrow more than {borrowed} of {} idle seats", idle + kept),
        }),
        (idle, _) if idle > 0 && last.server.borrowing == "periodic" => {
            Some(format!("{idle} idle seats of other levels are lent when seats are divided next, every ten seconds"))
        }
        (_, 1) => Some("1 seat of other levels is idle and not lendable".to_owned()),
        (_, kept) if kept > 0 => Some(format!("{kept} seats of other levels are idle and not lendable")),
        _ => None,
    }
}

fn all_is_well(last: &Frame) -> Diagnosis {
    let waiting: i64 = last.levels.iter().map(|level| level.waiting).sum();
    let server = &last.server;
    // How long they wait is known of those that have started.
    let is_known = last.levels.iter().all(|level| level.waiting == 0 || level.wait_ms.is_some());
    let not_long = if is_known { ", not for long" } else { "" };
    let waits = match waiting {
        0 => "no request waits".to_owned(),
        1 => format!("one request waits{not_long}"),
        many => format!("{many} requests wait{not_long}"),
    };
    let text = format!("all is well: {} of {} seats are in use, {waits}", server.in_use, server.concurrency);
    Diagnosis { state: State::Well, text, level: None }
}

/// The flow as people call it: by who it is, or by its schema.
pub(crate) fn flow_name(flow: &Flow) -> &str {
    if flow.distinguisher.is_empty() { &flow.schema } else { &flow.distinguisher }
}

/// `six times slower`; `threefold`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded and small")]
fn times(factor: f64, what: &str) -> String {
    const WORDS: [&str; 11] = ["", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let rounded = factor.round().max(2.0);
    let word = WORDS.get(rounded as usize).map_or_else(|| format!("{rounded}"), |word| (*word).to_owned());
    if what == "fold" {
        return if rounded <= 10.0 { format!("{word}fold") } else { format!("{word}-fold") };
    }
    if rounded <= 2.0 { "twice as slow".to_owned() } else { format!("{word} times {what}") }
}

/// The time of day of a moment, in UTC.
fn clock(time_ms: u64) -> String {
    let minutes = time_ms / 60_000;
    format!("{:02}:{:02} UTC", minutes / 60 % 24, minutes % 60)
}

fn milliseconds(value: f64) -> String {
    match value {
        long if long >= 10_000.0 => format!("{:.0} s", long / 1000.0),
        long if long >= 1000.0 => format!("{:.1} s", long / 1000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.1} ms"),
    }
}

fn quantity(value: f64) -> String {
    let text = if value >= 9.95 { format!("{value:.0}") } else { format!("{value:.1}") };
    text.strip_suffix(".0").map_or(text.clone(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests;
