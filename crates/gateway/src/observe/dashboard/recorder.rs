//! `Recorder`: makes a frame of each look at the gateway. It knows no clock: time is an argument.

use std::cmp::Ordering::Equal;
use std::collections::{BTreeSet, HashMap};

use evenkeel::fleet::FleetState;
use evenkeel::limit::LimitState;
use evenkeel::status::{LevelFlows, LevelReading, Reading};

use super::attribution;
use super::changes::Events;
use super::history::{History, INTERVALS_MAX, Point};
use super::interval;
use crate::llm::ModelReading;
use crate::observe::frame::{Fleet, Frame, Limit, Model, Objects, OutCause, Upstream, Usual, diagnose, rounded};
use crate::observe::metrics::ObjectChange;

/// The state of a gateway at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Observation {
    pub(crate) reading: Reading,
    /// The flows of the busiest levels, in that order.
    pub(crate) flows: Vec<LevelFlows>,
    pub(crate) upstreams: Vec<UpstreamReading>,
    pub(crate) models: Vec<ModelReading>,
    /// Changes of objects since the last look.
    pub(crate) object_changes: BTreeSet<ObjectChange>,
    pub(crate) objects_refused: u64,
    pub(crate) settings_applied: u64,
    pub(crate) upstream_failures: u64,
    /// Why the objects may be out of date, and what is wrong with the store.
    pub(crate) objects_stale: Option<String>,
    pub(crate) store_problem: Option<String>,
    /// Whether the latest objects have errors.
    pub(crate) objects_are_refused: bool,
    /// The bytes in buffers, and how many there may be.
    pub(crate) buffered: u64,
    pub(crate) buffer_limit: u64,
    /// The limit, if it finds itself.
    pub(crate) limit: Option<LimitState>,
    /// The fleet, if the seats are shared.
    pub(crate) fleet: Option<FleetState>,
    /// Whether there is a shadow.
    pub(crate) has_shadow: bool,
    /// How many canaries have returned by themselves, and why the last one has.
    pub(crate) canary_returns: u64,
    pub(crate) canary_returned: Option<String>,
}

/// The counters of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UpstreamReading {
    /// The host and port of the upstream.
    pub(crate) name: String,
    /// Why it is down, if it is.
    pub(crate) out: Option<OutCause>,
    pub(crate) in_flight: u64,
    /// How many responses have begun.
    pub(crate) responses: u64,
    /// The responses whose latency was measured: their number, and the sum of their latencies.
    pub(crate) timed: u64,
    pub(crate) latency_sum_ns: u64,
    /// Responses that say that it failed, and requests that failed because of it.
    pub(crate) errors: u64,
    pub(crate) timeouts: u64,
    pub(crate) unreachable: u64,
    pub(crate) cut: u64,
}

/// Makes frames, and remembers what they need of the past.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    before: Option<Observation>,
    /// The last frames, for the diagnosis.
    frames: Vec<Frame>,
    events: Events,
    demand: Usual,
    latencies: HashMap<String, Usual>,
}

/// How many frames are kept for the diagnosis.
const FRAMES_MAX: usize = 10;
/// How many changes in the fleet are in a frame.
const FLEET_STEPS_MAX: usize = 8;
/// How many language models are in a frame.
const MODELS_MAX: usize = 12;
/// How many decisions of the limit are in a frame: those of the last seconds, and some of before.
const LIMIT_STEPS_MAX: usize = 20;
/// Differences below these do not matter: in requests a second, and in milliseconds.
const DEMAND_SLACK: f64 = 10.0;
const LATENCY_SLACK_MS: f64 = 2.0;

// === impl Recorder ===

impl Recorder {
    /// The levels that were busiest since the last look, whose flows are shown.
    pub(super) fn busiest<'a>(&self, reading: &'a Reading, count: usize) -> Vec<&'a str> {
        let weight = |level: &LevelReading| {
            let before = self.before.as_ref().and_then(|before| before.reading.level(&level.name));
            let seat_time = level.utilisation.sum_ns - before.map_or(0.0, |before| before.utilisation.sum_ns);
            (level.waiting, seat_time)
        };
        let mut levels: Vec<_> = reading.levels.iter().map(|level| (weight(level), &*level.name)).collect();
        levels.sort_by(|(a, _), (b, _)| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        levels.into_iter().take(count).map(|(_, name)| name).collect()
    }

    /// The frame of a look at this time, in milliseconds since 1970.
    pub(super) fn record(&mut self, seen: Observation, time_ms: u64, history: &mut History) -> Frame {
        let before = self.before.as_ref();
        let mut frame = interval::frame(before.map(|before| &before.reading), &seen.reading, time_ms);
        attribution::attach(&mut frame.levels, &seen.flows);
        if let Some(before) = &self.before {
            self.events.compare(before, &seen, time_ms);
            remember(&frame, history);
            frame.server.upstream_failures = {
                let failures = seen.upstream_failures.saturating_sub(before.upstream_failures);
                per_second(failures, frame.interval_ms)
            };
        }
        frame.upstreams = self.upstreams(&seen, &frame);
        frame.models = self.models(&seen, frame.interval_ms);
        self.note_demand(&mut frame);
        frame.events = self.events.all();
        let (dangling, dangling_count) = interval::dangling(&seen.reading);
        frame.objects = Objects {
            stale: seen.objects_stale.clone(),
            are_refused: seen.objects_are_refused,
            store: seen.store_problem.clone(),
            dangling,
            dangling_count,
        };
        frame.server.fleet = seen.fleet.as_ref().map(|fleet| Fleet::new(fleet, time_ms, FLEET_STEPS_MAX));
        frame.server.has_shadow = seen.has_shadow;
        frame.server.limit = seen.limit.as_ref().map(|limit| Limit::new(limit, time_ms, LIMIT_STEPS_MAX));
        (frame.server.buffered, frame.server.buffer_limit) = (seen.buffered, seen.buffer_limit);
        self.before = Some(seen);
        if self.frames.len() >= FRAMES_MAX {
            self.frames.remove(0);
        }
        self.frames.push(frame.clone());
        frame.diagnosis = diagnose(&self.frames);
        frame
    }

    #[expect(clippy::cast_precision_loss, reason = "an interval is short")]
    fn upstreams(&mut self, seen: &Observation, frame: &Frame) -> Vec<Upstream> {
        self.latencies.retain(|name, _| seen.upstreams.iter().any(|upstream| upstream.name == *name));
        let known = |name: &str| self.before.as_ref()?.upstreams.iter().find(|known| known.name == name);
        let mut upstreams = Vec::with_capacity(seen.upstreams.len());
        for reading in &seen.upstreams {
            let before = known(&reading.name).unwrap_or(reading);
            let since = |count: fn(&UpstreamReading) -> u64| count(reading).saturating_sub(count(before)) as f64;
            let rate = |count: fn(&UpstreamReading) -> u64| {
                per_second(count(reading).saturating_sub(count(before)), frame.interval_ms)
            };
            let usual = self.latencies.entry(reading.name.clone()).or_default();
            let sum_ms = since(|reading| reading.latency_sum_ns) / 1e6;
            usual.note(frame.time_ms, sum_ms, since(|reading| reading.timed), LATENCY_SLACK_MS, false);
            upstreams.push(Upstream {
                name: reading.name.clone(),
                is_out: reading.out.is_some(),
                out_cause: reading.out,
                in_flight: reading.in_flight,
                responses: rate(|reading| reading.responses),
                errors: rate(|reading| reading.errors),
                timeouts: rate(|reading| reading.timeouts),
                unreachable: rate(|reading| reading.unreachable),
                cut: rate(|reading| reading.cut),
                latency_ms: usual.now().map(rounded),
                latency_before_ms: usual.before().map(rounded),
                changed_ms: usual.changed_ms(),
            });
        }
        upstreams
    }

    fn models(&self, seen: &Observation, interval_ms: u64) -> Vec<Model> {
        let nothing = ModelReading::default();
        let mut models: Vec<Model> = (seen.models.iter())
            .map(|reading| {
                // A model is new since the last look, unless this is the first one.
                let before = match &self.before {
                    Some(before) => before.models.iter().find(|known| known.name == reading.name).unwrap_or(&nothing),
                    None => reading,
                };
                Model {
                    name: reading.name.to_string(),
                    running: reading.running,
                    prompt: per_second(reading.prompt.saturating_sub(before.prompt), interval_ms),
                    output: per_second(reading.output.saturating_sub(before.output), interval_ms),
                }
            })
            .collect();
        if models.len() > MODELS_MAX {
            let weight =
                |model: &Model| (model.name != ModelReading::OTHERS, model.running, model.prompt + model.output);
            models.sort_by(|one, other| weight(other).partial_cmp(&weight(one)).unwrap_or(Equal));
            let others = models.split_off(MODELS_MAX - 1).into_iter().reduce(|all, one| Model {
                running: all.running + one.running,
                prompt: rounded(all.prompt + one.prompt),
                output: rounded(all.output + one.output),
                ..all
            });
            models.extend(others.map(|others| Model { name: ModelReading::OTHERS.to_owned(), ..others }));
        }
        models.sort_by(|one, other| one.name.cmp(&other.name));
        models
    }

    /// Requests arrive that start, wait or are rejected.
    #[expect(clippy::cast_precision_loss, reason = "an interval is short")]
    fn note_demand(&mut self, frame: &mut Frame) {
        let seconds = frame.interval_ms as f64 / 1000.0;
        let arrived = frame.levels.iter().map(|level| level.dispatched + level.rejected_total()).sum::<f64>() * seconds;
        // An upstream that is slower changes what clients send.
        let is_frozen = frame.upstreams.iter().any(|upstream| upstream.changed_ms.is_some());
        if frame.interval_ms > 0 {
            self.demand.note(frame.time_ms, arrived, seconds, DEMAND_SLACK, is_frozen);
        }
        frame.server.demand = self.demand.now().map(rounded).unwrap_or_default();
        frame.server.demand_before = self.demand.before().map(rounded);
    }
}

#[expect(clippy::cast_precision_loss, reason = "an interval is short")]
fn per_second(count: u64, interval_ms: u64) -> f64 {
    rounded(count as f64 * 1000.0 / interval_ms.max(1) as f64)
}

fn remember(frame: &Frame, history: &mut History) {
    for level in &frame.levels {
        let small = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
        let point = Point {
            in_use: Point::number(level.in_use_mean),
            current: small(level.current),
            waiting: small(level.waiting),
            wait_p99_ms: Point::number(level.wait_ms.map_or(0.0, |wait| wait.p99)),
        };
        history.note(&level.name, frame.time_ms, frame.interval_ms, point);
    }
    history.forget_before(frame.time_ms.saturating_sub(INTERVALS_MAX as u64 * 1000));
}

#[cfg(test)]
mod tests;
