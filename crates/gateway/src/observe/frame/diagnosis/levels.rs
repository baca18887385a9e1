//! Levels in which requests are rejected or wait: whose requests these are, and which flow holds the seats.

use std::collections::{BTreeMap, HashMap};

use super::super::{Delay, Diagnosis, DiagnosisState, Flow, Frame, Level};
use super::words::{clock, flow_name, milliseconds, quantity};
use super::{QUIET, RATE_MIN};

/// Waits below this do not matter.
const WAIT_MS_MIN: f64 = 10.0;
/// Requests that wait while nothing starts are a concern after this long.
const STUCK_MS_MIN: f64 = 3000.0;
/// Fewer seats than this part of those before may be why requests wait, for as long as this.
const LOWERED: f64 = 0.8;
const LOWERED_MS: u64 = 600_000;
/// A flow is limited as intended if so much of the trouble is its own,
const OWN_SHARE: f64 = 0.9;
/// it has about its share of the seats,
const FAIR_SHARE: f64 = 0.8;
/// and no request of another flow was seen to wait longer than this.
const OTHERS_WAIT_MS_MAX: f64 = 200.0;
/// A request that has waited for so long waits for long.
const LONG_MS: f64 = 1000.0;
/// The sentence about a client that delays itself alone.
const LIMITED: &str = "one client is limited as intended, the others are fine";
/// A flow holds the seats that others wait for, or is to blame, if it has more than this part.
const MOST: f64 = 0.5;

/// The levels that suffer from something.
pub(super) struct Levels<'a> {
    last: &'a Frame,
    troubles: Vec<Trouble<'a>>,
}

/// The trouble of a level, over all frames.
struct Trouble<'a> {
    level: &'a Level,
    /// Requests a second, by reason.
    rejected: BTreeMap<&'a str, f64>,
    /// Requests a second that were started.
    started: f64,
    /// The longest 99th percentile of all frames, so that one bad second counts.
    wait_p99: f64,
    /// For how long requests have waited of which none was started. How long a request waits is known when that is over.
    stuck_ms: f64,
    /// How long ago requests were rejected or waited for the last time, and in how many frames they have not been since.
    quiet_ms: u64,
    quiet_frames: usize,
    /// The longest that a request of each flow was seen to wait at the end of a frame.
    queued_ms: HashMap<(&'a str, &'a str), f64>,
}

/// Why requests of a level wait.
enum Cause<'a> {
    NoSeats,
    LongRunning,
    /// This flow holds most of the seats.
    Holder(&'a Flow),
    /// How much of the waiting of the last minute was behind this flow, in requests of its own or of others.
    Behind {
        flow: &'a Flow,
        share: f64,
        is_own: bool,
    },
    Busy,
}

const CANCELLED: &str = "cancelled";
const TOO_MANY_LONG_RUNNING: &str = "too-many-long-running";

// === impl Levels ===

impl<'a> Levels<'a> {
    /// The troubles of all levels with a limit. There may be hundreds, so that each frame is gone through once.
    #[expect(clippy::cast_precision_loss, reason = "there are ten frames")]
    pub(super) fn new(frames: &'a [Frame], last: &'a Frame) -> Self {
        let limited = last.levels.iter().filter(|level| !level.is_exempt());
        let mut troubles: Vec<_> = limited.map(Trouble::none).collect();
        let places: HashMap<&str, usize> =
            troubles.iter().enumerate().map(|(place, one)| (one.level.name.as_str(), place)).collect();
        let share = 1.0 / frames.len() as f64;
        for (frame, level) in frames.iter().flat_map(|frame| frame.levels.iter().map(move |level| (frame, level))) {
            if let Some(one) = places.get(level.name.as_str()).and_then(|place| troubles.get_mut(*place)) {
                one.add(level, frame.interval_ms, share);
            }
        }
        troubles.retain(Trouble::is_worth_a_word);
        Self { last, troubles }
    }

    /// Requests fail, and not only those of one client that sends too many.
    pub(super) fn failing(&self) -> Option<Diagnosis> {
        let all = self.present().filter(|one| one.is_failing() && one.greedy().is_none());
        let worst = all.max_by(|a, b| a.rejected_by_us().total_cmp(&b.rejected_by_us()))?;
        Some(self.told(worst, DiagnosisState::Failing))
    }

    /// Requests wait, and not only those of one client.
    pub(super) fn slow(&self) -> Option<Diagnosis> {
        let all = self.present().filter(|one| !one.is_failing() && one.greedy().is_none());
        let worst = all.max_by(|a, b| a.wait().total_cmp(&b.wait()))?;
        Some(self.told(worst, DiagnosisState::Slow))
    }

    /// Requests failed or waited a moment ago.
    pub(super) fn recovering(&self) -> Option<Diagnosis> {
        let past = self.troubles.iter().filter(|one| !one.is_present() && one.greedy().is_none());
        let worst = past
            .max_by(|a, b| a.rejected_by_us().total_cmp(&b.rejected_by_us()).then(a.wait_p99.total_cmp(&b.wait_p99)))?;
        let name = &worst.level.name;
        let what = if worst.is_failing() {
            "rejected requests".to_owned()
        } else {
            format!("waited up to {} at p99", milliseconds(worst.wait_p99))
        };
        let now = match worst.level.waiting {
            0 => "no request waits now".to_owned(),
            1 => "1 waits now".to_owned(),
            some => format!("{some} wait now"),
        };
        let ago = milliseconds(quiet(worst.quiet_ms));
        let text = format!("recovering: {name} {what} until {ago} ago, {now}");
        Some(Diagnosis { state: DiagnosisState::Slow, text, level: Some(name.clone()) })
    }

    /// One client sends more than its share, and nobody else suffers from it.
    pub(super) fn limited(&self) -> Option<Diagnosis> {
        let all = self.present().filter_map(|one| Some((one, one.greedy()?)));
        let (worst, flow) = all.max_by(|a, b| {
            a.0.rejected_by_us().total_cmp(&b.0.rejected_by_us()).then(a.0.wait_p99.total_cmp(&b.0.wait_p99))
        })?;
        let level = worst.level;
        let text = if worst.is_failing() {
            let (name, holds) = (flow_name(flow), holds(flow, level, "holds"));
            let (rate, reason) = (quantity(worst.rejected_by_us()), worst.reason());
            format!("{LIMITED}: {name} has {rate} requests a second rejected ({reason}) and {holds} of {}", level.name)
        } else {
            limited_by_itself(level, flow)
        };
        Some(Diagnosis { state: DiagnosisState::Well, text, level: Some(level.name.clone()) })
    }

    fn present(&self) -> impl Iterator<Item = &Trouble<'a>> {
        self.troubles.iter().filter(|one| one.is_present())
    }

    /// The trouble, its cause, and what else the reader should know.
    fn told(&self, trouble: &Trouble<'_>, state: DiagnosisState) -> Diagnosis {
        let level = trouble.level;
        let mut text = format!("{}: {}", trouble.symptom(), trouble.cause_in_words());
        // Seats have nothing to do with a limit of long-running requests.
        if trouble.reason() != TOO_MANY_LONG_RUNNING && !trouble.is_starved() {
            for more in [seats_lowered(self.last), idle_elsewhere(level, self.last)].into_iter().flatten() {
                text += "; ";
                text += &more;
            }
        }
        Diagnosis { state, text, level: Some(level.name.clone()) }
    }
}

// === impl Trouble ===

impl<'a> Trouble<'a> {
    fn none(level: &'a Level) -> Self {
        Self {
            level,
            rejected: BTreeMap::new(),
            started: 0.0,
            wait_p99: 0.0,
            stuck_ms: 0.0,
            quiet_ms: 0,
            quiet_frames: 0,
            queued_ms: HashMap::new(),
        }
    }

    /// Adds the state of the level in one of the frames.
    #[expect(clippy::cast_precision_loss, reason = "an interval is short")]
    fn add(&mut self, then: &'a Level, interval_ms: u64, share: f64) {
        for (reason, rate) in &then.rejected {
            *self.rejected.entry(reason).or_default() += rate * share;
        }
        for flow in then.flows.iter().filter(|flow| flow.queued > 0) {
            let longest = self.queued_ms.entry((&flow.schema, &flow.distinguisher)).or_default();
            *longest = longest.max(flow.queued_ms);
        }
        self.started += then.dispatched * share;
        let wait = then.wait_ms.map_or(0.0, |wait| wait.p99);
        self.wait_p99 = self.wait_p99.max(wait);
        let is_stuck = then.waiting > 0 && then.dispatched <= 0.0;
        self.stuck_ms = if is_stuck { self.stuck_ms + interval_ms as f64 } else { 0.0 };
        if then.rejected_total() > 0.0 || wait >= WAIT_MS_MIN || self.is_stuck() {
            (self.quiet_ms, self.quiet_frames) = (0, 0);
        } else {
            (self.quiet_ms, self.quiet_frames) = (self.quiet_ms + interval_ms, self.quiet_frames + 1);
        }
    }

    fn is_worth_a_word(&self) -> bool {
        self.is_failing() || self.is_stuck() || self.wait_p99 >= WAIT_MS_MIN || self.left() >= RATE_MIN
    }

    fn is_present(&self) -> bool {
        self.quiet_frames < QUIET
    }

    fn is_stuck(&self) -> bool {
        self.stuck_ms >= STUCK_MS_MIN
    }

    /// The level has no seats of its own, and gets none.
    fn is_starved(&self) -> bool {
        let is_hopeless = self.is_stuck() || self.rejected_by_us() >= RATE_MIN;
        self.level.nominal <= 0 && self.level.in_use == 0 && self.started <= 0.0 && is_hopeless
    }

    fn is_failing(&self) -> bool {
        self.rejected_by_us() >= RATE_MIN || self.is_starved()
    }

    /// Requests a second that the server rejects, and did not only lose.
    fn rejected_by_us(&self) -> f64 {
        self.rejected.iter().filter(|(reason, _)| **reason != CANCELLED).map(|(_, rate)| rate).sum()
    }

    /// Requests a second whose clients have left.
    fn left(&self) -> f64 {
        self.rejected.get(CANCELLED).copied().unwrap_or_default()
    }

    fn wait(&self) -> f64 {
        if self.is_stuck() { self.wait_p99.max(self.stuck_ms) } else { self.wait_p99 }
    }

    /// The most frequent reason of rejections by the server.
    fn reason(&self) -> &'a str {
        let by_us = self.rejected.iter().filter(|(reason, _)| **reason != CANCELLED);
        by_us.max_by(|a, b| a.1.total_cmp(b.1)).map_or("", |(reason, _)| reason)
    }

    /// The symptom: what happens to requests.
    fn symptom(&self) -> String {
        let name = &self.level.name;
        let waiting =
            if self.level.waiting == 1 { "1 waits".to_owned() } else { format!("{} wait", self.level.waiting) };
        if self.is_starved() {
            return format!("no request of {name} can start, {waiting}");
        }
        if self.is_failing() {
            let (rate, reason) = (quantity(self.rejected_by_us()), self.reason());
            if reason == TOO_MANY_LONG_RUNNING {
                return format!("{name} rejects {rate} long-running requests a second");
            }
            return format!("{name} rejects {rate} requests a second ({reason})");
        }
        if self.left() >= RATE_MIN {
            let rate = quantity(self.left());
            return format!("{name}: the clients of {rate} requests a second disconnect while they wait");
        }
        if self.is_stuck() {
            return format!("{name} has started no request for {}, {waiting}", milliseconds(self.stuck_ms));
        }
        format!("{name} waits {} at p99", milliseconds(self.wait_p99))
    }

    fn cause_in_words(&self) -> String {
        let level = self.level;
        if self.reason() == TOO_MANY_LONG_RUNNING {
            let limit =
                level.long_running_limit.map_or_else(String::new, |limit| format!(" of {limit} that it may have"));
            return format!("it has {}{limit}", level.long_running);
        }
        let is_wait = !self.is_failing() && !self.is_stuck() && self.left() < RATE_MIN;
        let waiting = if is_wait { "it" } else { "the waiting" };
        let whose = if self.is_failing() { self.rejected_of() } else { None };
        let seats = level.current.max(level.in_use);
        let cause = match self.cause() {
            Cause::NoSeats if level.nominal > 0 => "it has no seats now".to_owned(),
            Cause::NoSeats => "it has no seats of its own and can borrow none now".to_owned(),
            Cause::LongRunning => {
                format!("long-running requests hold {} of {seats} seats until they respond", level.long_running_seats)
            }
            Cause::Holder(flow) | Cause::Behind { flow, .. }
                if whose.as_ref().is_some_and(|(of, _)| is_same(of, flow)) =>
            {
                let part = whose.as_ref().map_or("", |(_, part)| part);
                let (name, holds) = (flow_name(flow), holds(flow, level, "holds"));
                return format!("{part} of them are from {name}, which {holds}");
            }
            Cause::Holder(flow) => format!("{} {}", flow_name(flow), holds(flow, level, "holds")),
            Cause::Behind { flow, share, is_own } => {
                let (name, share) = (flow_name(flow), (share * 100.0).round());
                if is_own {
                    let hold = holds(flow, level, "hold");
                    format!("{share} % of {waiting} is {name} behind its own requests, which {hold}")
                } else {
                    format!("{share} % of {waiting} behind {name}, which {}", holds(flow, level, "holds"))
                }
            }
            Cause::Busy => format!("{} of {seats} seats are in use", level.in_use),
        };
        match whose {
            Some((flow, part)) => format!("{part} of them are from {}; {cause}", flow_name(flow)),
            None if self.is_failing() && self.rejects_many() => format!("{cause}, by many clients"),
            None => cause,
        }
    }

    /// Whether several flows have rejected requests, and none of them most.
    fn rejects_many(&self) -> bool {
        matches!(self.cause(), Cause::Busy) && self.level.flows.iter().filter(|flow| flow.rejected > 0.0).count() > 1
    }

    fn cause(&self) -> Cause<'a> {
        let level = self.level;
        if self.is_starved() || level.in_use == 0 && level.current <= 0 {
            return Cause::NoSeats;
        }
        if level.long_running_seats > 0 && 2 * level.long_running_seats >= level.in_use {
            return Cause::LongRunning;
        }
        match (holder(level), blamed(level)) {
            // A cause within the last minute may be gone by now.
            (Some(holder), Some(Cause::Behind { flow, share, is_own }))
                if !self.is_stuck() && is_same(holder, flow) =>
            {
                Cause::Behind { flow, share, is_own }
            }
            (Some(holder), _) => Cause::Holder(holder),
            (None, Some(blamed)) if !self.is_stuck() => blamed,
            _ => Cause::Busy,
        }
    }

    /// The flow that has most of the rejected requests, and its part of them, if there is such a flow.
    fn rejected_of(&self) -> Option<(&'a Flow, String)> {
        let flows = &self.level.flows;
        let total: f64 = flows.iter().map(|flow| flow.rejected).sum();
        let most = flows.iter().max_by(|a, b| a.rejected.total_cmp(&b.rejected))?;
        if total <= 0.0 || most.rejected <= MOST * total {
            return None;
        }
        let share = (most.rejected / total * 100.0).round().min(99.0);
        Some((most, if most.rejected >= total { "all".to_owned() } else { format!("{share} %") }))
    }

    /// The flow that causes all this, if no other flow suffers from it: it has more requests than its share of the seats serves,
    /// and they are rejected or wait. The only client of a level is not limited because of others.
    #[expect(clippy::cast_precision_loss, reason = "a number of requests")]
    fn greedy(&self) -> Option<&'a Flow> {
        if self.reason() == TOO_MANY_LONG_RUNNING || self.is_starved() {
            return None;
        }
        let weight = |flow: &Flow| if self.is_failing() { flow.rejected } else { flow.waiting + flow.queued as f64 };
        let flows = &self.level.flows;
        let total: f64 = flows.iter().map(weight).sum();
        let most = flows.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
        if total <= 0.0 || weight(most) < OWN_SHARE * total {
            return None;
        }
        let is_there = |flow: &&Flow| flow.seats > 0.0 || flow.waiting > 0.0 || flow.held > 0 || flow.queued > 0;
        let others: Vec<&Flow> = flows.iter().filter(|flow| !is_same(flow, most)).filter(is_there).collect();
        let fair = self.level.in_use as f64 / (others.len() + 1) as f64;
        let is_heavy = most.seats.max(most.held as f64) >= FAIR_SHARE * fair;
        let is_fine = others.iter().all(|flow| {
            let longest = self.queued_ms.get(&(flow.schema.as_str(), flow.distinguisher.as_str()));
            longest.is_none_or(|wait| *wait <= OTHERS_WAIT_MS_MAX)
        });
        (!others.is_empty() && is_heavy && is_fine).then_some(most)
    }
}

/// The flow that holds most of the seats at the end of the last frame.
#[expect(clippy::cast_precision_loss, reason = "numbers of seats")]
fn holder(level: &Level) -> Option<&Flow> {
    let most = level.flows.iter().max_by_key(|flow| flow.held)?;
    (most.held > 0 && most.held as f64 > MOST * level.in_use as f64).then_some(most)
}

/// The flow behind which most of the waiting of the last minute was.
fn blamed(level: &Level) -> Option<Cause<'_>> {
    let blamed = level.delays.iter().filter_map(|delay| Some((delay, level.flows.get(delay.by?)?)));
    let mut by_flow: Vec<(&Flow, f64, bool)> = Vec::new();
    for (Delay { waiter, by, share, .. }, flow) in blamed {
        let is_own = Some(*waiter) == *by;
        match by_flow.iter_mut().find(|(known, _, own)| is_same(known, flow) && *own == is_own) {
            Some((_, sum, _)) => *sum += share,
            None => by_flow.push((flow, *share, is_own)),
        }
    }
    let (flow, share, is_own) = by_flow.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (share > MOST).then_some(Cause::Behind { flow, share, is_own })
}

fn is_same(one: &Flow, other: &Flow) -> bool {
    std::ptr::eq(one, other)
}

/// Whether a request of the flow has waited for long and still waits.
pub(super) fn waits_long(flow: &Flow) -> bool {
    flow.queued > 0 && flow.queued_ms >= LONG_MS
}

/// One client holds seats for long and waits for itself alone: others that arrive get the seats that are kept for new clients.
pub(super) fn behind_its_own_requests(last: &Frame) -> Option<Diagnosis> {
    let mut all = last.levels.iter().flat_map(|level| level.flows.iter().map(move |flow| (level, flow)));
    let (level, flow) = all.find(|(_, flow)| waits_long(flow))?;
    if flow.held == 0 || all.any(|(_, flow)| waits_long(flow)) {
        return None;
    }
    Some(Diagnosis {
        state: DiagnosisState::Well,
        text: limited_by_itself(level, flow),
        level: Some(level.name.clone()),
    })
}

fn limited_by_itself(level: &Level, flow: &Flow) -> String {
    let (name, holds) = (flow_name(flow), holds(flow, level, "holds"));
    format!("{LIMITED}: {name} waits behind its own requests and {holds} of {}", level.name)
}

/// How many seats of its level a flow has: now, or else on average. In the last minute the level may have had more seats than now.
#[expect(clippy::cast_precision_loss, reason = "a number of seats")]
fn holds(flow: &Flow, level: &Level, verb: &str) -> String {
    let seats = level.current.max(level.in_use);
    if flow.held > 0 {
        return format!("{verb} {} of {seats} seats", flow.held);
    }
    format!("had {} of {seats} seats on average in the last minute", quantity(flow.seats.min(seats as f64)))
}

#[expect(clippy::cast_precision_loss, reason = "some seconds")]
fn quiet(ms: u64) -> f64 {
    ms as f64
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
