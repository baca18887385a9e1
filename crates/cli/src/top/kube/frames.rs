//! Frames of a kube-apiserver, from its scrapes and dumps.

use std::collections::{BTreeMap, VecDeque};

use evenkeel_gateway::observe::frame::{
    self, Event, EventKind, Frame, Level, Percentiles, Queuing, Schema, Server, Utilisation, diagnose, rounded,
};

use super::attribution::Attribution;
use super::dump::{self, Request};
use super::histogram::Histogram;
use super::scrape::{LevelMetrics, SchemaMetrics, Scrape};

/// Makes frames from the moments of a server, each compared with the one before.
#[derive(Debug, Default)]
pub(super) struct Frames {
    before: Option<Moment>,
    attribution: Attribution,
    events: VecDeque<Event>,
    /// The last frames, which a diagnosis is about.
    last: Vec<Frame>,
}

/// The figures that were read of a server at a moment.
#[derive(Debug, Default)]
pub(super) struct Moment {
    pub(super) time_ms: u64,
    pub(super) scrape: Scrape,
    pub(super) dumps: Option<Dumps>,
}

/// The content of the dumps.
#[derive(Debug, Default)]
pub(super) struct Dumps {
    pub(super) quiescing: Vec<String>,
    pub(super) requests: Vec<Request>,
}

/// The only level without a limit in Kubernetes.
const EXEMPT: &str = "exempt";
const EVENTS_MAX: usize = 20;
/// How many frames a diagnosis is about.
const FRAMES_KEPT: usize = 10;
/// A server that was not reachable for a while is no reason for a flow to count that long.
const SECONDS_MAX: f64 = 30.0;

// === impl Dumps ===

impl Dumps {
    pub(super) fn read(levels: &str, requests: &str) -> Self {
        Self { quiescing: dump::quiescing_levels(levels), requests: dump::requests(requests) }
    }
}

// === impl Frames ===

impl Frames {
    /// The frame of a moment. Rates are those since the moment before; the first frame has none.
    pub(super) fn next(&mut self, moment: Moment) -> Frame {
        let before = self.before.take();
        let is_same = before.as_ref().is_none_or(|before| is_same_process(&before.scrape, &moment.scrape));
        if !is_same {
            self.attribution.clear();
            self.last.clear();
            let text = "another process responds: the server has restarted, or there are several; rates start again";
            self.event(EventKind::ServerChanged, moment.time_ms, text.to_owned());
        }
        let before = before.filter(|before| is_same && before.time_ms < moment.time_ms);
        let interval_ms = before.as_ref().map_or(0, |before| moment.time_ms - before.time_ms);
        let seconds = seconds(interval_ms);
        if let Some(before) = &before {
            self.note_changes(&before.scrape, &moment);
        }
        let mut frame = Frame::new(moment.time_ms, interval_ms);
        let earlier = before.as_ref().map(|before| &before.scrape.levels);
        frame.levels = levels(&moment.scrape.levels, earlier, seconds);
        if let Some(dumps) = &moment.dumps {
            // The first dump has to stand for something.
            self.attribution.push(&dumps.requests, if before.is_some() { seconds.min(SECONDS_MAX) } else { 1.0 });
            for level in &mut frame.levels {
                level.is_quiescing = dumps.quiescing.contains(&level.name);
            }
            self.add_flows(&mut frame.levels);
        }
        frame.server = server(&frame.levels);
        frame.events = self.events.iter().cloned().collect();
        self.before = Some(moment);
        // The first frame knows of no rates.
        if interval_ms > 0 {
            self.last.push(frame.clone());
            self.last.drain(..self.last.len().saturating_sub(FRAMES_KEPT));
            frame.diagnosis = diagnose(&self.last);
        }
        frame
    }

    fn add_flows(&self, levels: &mut [Level]) {
        let mut found = self.attribution.levels();
        for level in levels {
            if let Some(found) = found.remove(&level.name) {
                level.flows = found.flows;
                level.delays = found.delays;
            }
        }
    }

    fn note_changes(&mut self, before: &Scrape, now: &Moment) {
        let nominal = |scrape: &Scrape| scrape.levels.values().map(|level| level.nominal).sum::<f64>();
        let (old, new) = (nominal(before), nominal(&now.scrape));
        if (old - new).abs() > 0.5 {
            let text = format!("the levels have {new:.0} seats instead of {old:.0}");
            self.event(EventKind::LimitChanged, now.time_ms, text);
        }
        let names = |scrape: &Scrape| scrape.levels.keys().cloned().collect::<Vec<_>>();
        let (old, new) = (names(before), names(&now.scrape));
        for name in new.iter().filter(|name| !old.contains(name)) {
            self.event(EventKind::ObjectsChanged, now.time_ms, format!("there is a new level, {name}"));
        }
    }

    fn event(&mut self, kind: EventKind, time_ms: u64, text: String) {
        self.events.push_front(Event { time_ms, kind, text, seats: None });
        self.events.truncate(EVENTS_MAX);
    }
}

/// Servers without the metric are taken for the same one; counters that go back show a restart as well.
fn is_same_process(before: &Scrape, now: &Scrape) -> bool {
    match (before.process_start, now.process_start) {
        // The metric is of a precision of ten milliseconds.
        (Some(before), Some(now)) => (before - now).abs() < 0.5,
        _ => true,
    }
}

fn levels(
    now: &BTreeMap<String, LevelMetrics>,
    before: Option<&BTreeMap<String, LevelMetrics>>,
    seconds: f64,
) -> Vec<Level> {
    // A level that was not there before has counted from nothing since then.
    let nothing = LevelMetrics::default();
    let each = |(name, now): (&String, &LevelMetrics)| {
        let before = before.map(|levels| levels.get(name).unwrap_or(&nothing));
        level(name, now, before, seconds)
    };
    now.iter().map(each).collect()
}

fn level(name: &str, now: &LevelMetrics, before: Option<&LevelMetrics>, seconds: f64) -> Level {
    let is_exempt = name == EXEMPT;
    let sum = |value: fn(&SchemaMetrics) -> f64| whole(now.schemas.values().map(value).sum());
    let (nominal, current) = (whole(now.nominal), whole(now.current));
    let mut level = Level {
        name: name.to_owned(),
        queuing: is_exempt.then_some(Queuing::Exempt),
        nominal,
        floor: whole(now.floor),
        limit: whole(now.limit),
        current,
        in_use: sum(|schema| schema.seats),
        waiting: sum(|schema| schema.waiting),
        ..Level::default()
    };
    if !is_exempt {
        level.borrowed = (current - nominal).max(0);
        level.lent = (nominal - current).max(0);
    }
    let nothing = SchemaMetrics::default();
    for (name, schema) in &now.schemas {
        let before = before.map(|level| level.schemas.get(name).unwrap_or(&nothing));
        let rate = |value: &dyn Fn(&SchemaMetrics) -> f64| {
            before.map_or(0.0, |before| rate(value(before), value(schema), seconds))
        };
        level.dispatched += rate(&|schema| schema.dispatched);
        for reason in schema.rejected.keys() {
            let rejected = rate(&|schema| schema.rejected.get(reason).copied().unwrap_or(0.0));
            if rejected > 0.0 {
                *level.rejected.entry(reason.clone()).or_default() += rejected;
            }
        }
        level.schemas.push(Schema {
            name: name.clone(),
            hits: count(schema.hits()),
            rate: rate(&SchemaMetrics::hits),
            ..Schema::default()
        });
    }
    if let Some(before) = before {
        level.wait_ms = milliseconds(&now.wait.since(&before.wait));
        level.execution_ms = milliseconds(&now.execution.since(&before.execution));
        let used = now.seat_utilisation.since(&before.seat_utilisation);
        level.utilisation = utilisation(&used).filter(|_| !is_exempt);
        // The current limit is what the ratio is of (CL-19).
        level.in_use_mean = level.utilisation.map_or(0.0, |used| rounded(used.mean * now.current));
    }
    level
}

fn server(levels: &[Level]) -> Server {
    let limited = || levels.iter().filter(|level| !level.is_exempt());
    Server {
        concurrency: levels.iter().map(|level| level.nominal).sum(),
        in_use: limited().map(|level| level.in_use).sum(),
        exempt: levels.iter().filter(|level| level.is_exempt()).map(|level| level.in_use).sum(),
        borrowing: "periodic".to_owned(),
        demand: rounded(levels.iter().flat_map(|level| &level.schemas).map(|schema| schema.rate).sum()),
        ..Server::default()
    }
}

/// How fast a counter grew. One that went back has started from nothing.
fn rate(before: f64, now: f64, seconds: f64) -> f64 {
    let grown = if now < before { now } else { now - before };
    if seconds > 0.0 { rounded(grown / seconds) } else { 0.0 }
}

fn milliseconds(seconds: &Histogram) -> Option<Percentiles> {
    let (bounds, counts) = seconds.buckets();
    frame::percentiles(&bounds.iter().map(|bound| bound * 1000.0).collect::<Vec<_>>(), &counts)
}

fn utilisation(ratio: &Histogram) -> Option<Utilisation> {
    let (bounds, spans) = ratio.buckets();
    frame::utilisation(&bounds, &spans, ratio.sum)
}

#[expect(clippy::cast_precision_loss, reason = "an interval is short")]
fn seconds(interval_ms: u64) -> f64 {
    interval_ms as f64 / 1000.0
}

#[expect(clippy::cast_possible_truncation, reason = "numbers of seats and requests; the conversion saturates")]
fn whole(number: f64) -> i64 {
    number.round() as i64
}

fn count(number: f64) -> u64 {
    whole(number).max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::kube::{recorded, recorded_frame};

    fn scrape(text: &str) -> Scrape {
        let mut scrape = Scrape::default();
        text.lines().for_each(|line| scrape.line(line));
        scrape
    }

    fn moment(time_ms: u64, metrics: &str) -> Moment {
        Moment { time_ms, scrape: scrape(metrics), dumps: None }
    }

    fn counters(dispatched: u32, rejected: u32, start: u32) -> String {
        format!(
            "process_start_time_seconds {start}\n\
             apiserver_flowcontrol_dispatched_requests_total{{flow_schema=\"s\",priority_level=\"l\"}} {dispatched}\n\
             apiserver_flowcontrol_rejected_requests_total{{flow_schema=\"s\",priority_level=\"l\",reason=\"time-out\"}} \
             {rejected}\n"
        )
    }

    #[track_caller]
    fn assert_rates(frame: &Frame, dispatched: f64, rejected: f64) {
        let found = (frame.levels[0].dispatched, frame.levels[0].rejected_total());
        assert!((found.0 - dispatched).abs() < 1e-9 && (found.1 - rejected).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn rates_are_those_since_the_moment_before() {
        let mut frames = Frames::default();
        assert_rates(&frames.next(moment(1000, &counters(100, 7, 1))), 0.0, 0.0);
        let frame = frames.next(moment(3000, &counters(150, 17, 1)));
        assert_rates(&frame, 25.0, 5.0);
        assert_eq!(frame.interval_ms, 2000);
        // A clock that stands still or goes back makes no rates.
        assert_rates(&frames.next(moment(3000, &counters(160, 17, 1))), 0.0, 0.0);
        assert_rates(&frames.next(moment(2000, &counters(170, 17, 1))), 0.0, 0.0);
    }

    #[test]
    fn counters_that_go_back_have_started_from_nothing() {
        let mut frames = Frames::default();
        frames.next(moment(1000, &counters(100, 7, 1)));
        assert_rates(&frames.next(moment(2000, &counters(30, 9, 1))), 30.0, 2.0);
    }

    #[test]
    fn another_process_begins_anew() {
        let mut frames = Frames::default();
        frames.next(moment(1000, &counters(100, 7, 1)));
        let frame = frames.next(moment(2000, &counters(5000, 9, 60)));
        assert_rates(&frame, 0.0, 0.0);
        assert!(frame.events[0].text.starts_with("another process responds"), "{:?}", frame.events);
        assert_rates(&frames.next(moment(3000, &counters(5010, 9, 60))), 10.0, 0.0);
    }

    #[test]
    fn damaged_responses_are_read_without_harm() {
        let mut random = fastrand::Rng::with_seed(17);
        let mut damaged = |text: &str| {
            let mut bytes = text.as_bytes()[..random.usize(..text.len())].to_vec();
            for _ in 0..random.usize(..50).min(bytes.len()) {
                let at = random.usize(..bytes.len());
                bytes[at] = *random.choice(b"\n,\"\\{}= 0-e9N\xff\x1b").unwrap();
            }
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let [metrics, levels, requests] = ["metrics", "dump_priority_levels", "dump_requests"].map(recorded);
        let mut frames = Frames::default();
        for time_ms in 1..40 {
            let dumps = Some(Dumps::read(&damaged(&levels), &damaged(&requests)));
            let frame = frames.next(Moment { time_ms, scrape: scrape(&damaged(&metrics)), dumps });
            let numbers = frame.levels.iter().flat_map(|level| [level.dispatched, level.rejected_total()]);
            assert!(numbers.into_iter().all(f64::is_finite), "{frame:?}");
        }
    }

    #[test]
    fn new_levels_and_other_limits_are_events() {
        let level = |name: &str, seats: u32| {
            format!("apiserver_flowcontrol_nominal_limit_seats{{priority_level=\"{name}\"}} {seats}\n")
        };
        let mut frames = Frames::default();
        frames.next(moment(1000, &level("a", 10)));
        let frame = frames.next(moment(2000, &(level("a", 10) + &level("b", 5))));
        let texts: Vec<_> = frame.events.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(texts, ["there is a new level, b", "the levels have 15 seats instead of 10"]);
        assert_eq!(frame.server.concurrency, 15);
    }

    #[test]
    fn a_recorded_server() {
        let frame = recorded_frame();
        assert_eq!((frame.levels.len(), frame.server.concurrency, frame.server.exempt), (10, 30, 15));
        let batch = frame.level("batch").unwrap();
        assert_eq!((batch.in_use, batch.waiting, batch.current, batch.nominal), (1, 12, 1, 1));
        // A fortieth of 301 and 31522.
        assert!((batch.dispatched - 8.0).abs() < 1e-9, "{batch:?}");
        assert!((batch.rejected["queue-full"] - 788.0).abs() < 1e-9, "{batch:?}");
        let wait = batch.wait_ms.unwrap();
        assert!((500.0..=2000.0).contains(&wait.p50) && (2000.0..=10_000.0).contains(&wait.p99), "{wait:?}");
        let used = batch.utilisation.unwrap();
        assert!((used.mean - 0.704).abs() < 1e-9 && (batch.in_use_mean - 0.704).abs() < 1e-9, "{used:?}");
        // One flow waits behind itself.
        assert_eq!(batch.flows.len(), 1);
        assert_eq!((batch.flows[0].distinguisher.as_str(), batch.delays[0].by), ("batch-runner", Some(0)));
        assert!((batch.flows[0].waiting - 12.0).abs() < 1e-9 && (batch.delays[0].share - 1.0).abs() < 1e-9);
        let teams = frame.level("teams").unwrap();
        assert_eq!((teams.borrowed, frame.level("workload-low").unwrap().lent), (6, 6));
        assert_eq!(teams.schemas.iter().map(|schema| schema.name.as_str()).collect::<Vec<_>>(), ["jobs", "teams"]);
        assert!(frame.level("exempt").unwrap().is_exempt());
    }
}
