//! `Model`: decides about the requests of reality under the shadow's configuration. No I/O, no clock, no lock.
//!
//! A request is decided about when it is known how long it took: the shadow is behind reality by the age of the oldest request
//! that still runs, up to [`HORIZON`]. So it starts requests at the times at which it would have started them, and gives their
//! seats back when it would have, also where it starts a request before reality does. Requests that take longer are let in before
//! it is known, and end as soon as it is.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use evenkeel_api::Preset;
use evenkeel_api::annotations::{Excess, RateUnit};
use evenkeel_engine::borrowing::DivideSeats;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::{Arrival, Ended, Finish, Phase, RequestId};
use evenkeel_engine::rate::FlowStamps;
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{Configuration, Engine, EngineEffects, Flow, LevelId, Schema, Ticket};

use super::figures::{Figures, RowRef, Side, SideOutcome};
use super::records::{ArrivalRecord, EventRecord, Happened};
use super::service_times::ServiceTimes;
use crate::control::level_names::LevelKey;
use crate::control::seat_division::DivisionChoice;

/// The shadow of a flow control, as a state machine: records go in, figures come out.
#[derive(Debug)]
pub(crate) struct Model {
    setup: ModelSetup,
    configuration: Arc<Configuration>,
    engine: Engine<Job, Box<dyn DivideSeats + Send>>,
    now: Instant,
    /// No timer of the engine is due before this time.
    timeout_at: Instant,
    /// The requests that have arrived and are not decided about yet, in their order. The first has the number `first`.
    pending: VecDeque<Pending>,
    first: u64,
    /// Where requests are that have not ended in reality.
    places: HashMap<(LevelKey, RequestId), OpenRequest>,
    /// Events of requests that are not known yet: their arrivals may follow soon.
    early: Vec<EventRecord>,
    ends: BinaryHeap<Reverse<(Instant, Ticket)>>,
    /// Requests that wait for their rates.
    delayed: BinaryHeap<Reverse<Delayed>>,
    /// Changes of the number of seats, each with its time.
    seats: VecDeque<(Instant, i64)>,
    /// The state of each flow schema.
    schemas: Vec<SchemaState>,
    /// How many long-running requests each level has, by its index.
    long_running: Vec<u32>,
    /// Requests that arrived before are not counted: the shadow did not know what was there already.
    counts_from: Instant,
    pub(crate) figures: Figures,
    /// Requests that were not decided about, and in how many pieces.
    pub(crate) dropped: u64,
    pub(crate) dropped_seconds: u64,
    /// The last second that is counted among those.
    dropped_in: Option<Nanos>,
}

/// The parts that a model is made of.
#[derive(Debug, Clone)]
pub(crate) struct ModelSetup {
    pub(crate) preset: Preset,
    pub(crate) division: DivisionChoice,
    pub(crate) objects: Objects,
    pub(crate) seats: i64,
    /// When reality divides its seats next: the shadow does at the same times (CL-11).
    pub(crate) next_division: Option<Instant>,
}

/// A request that has arrived.
#[derive(Debug, Clone, Copy)]
struct Pending {
    arrival: ArrivalRecord,
    waited: Nanos,
    real: RealEnd,
}

/// How a request ended in reality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RealEnd {
    /// The request has not ended.
    Open,
    Finished {
        ran: Nanos,
    },
    Rejected,
    Left {
        waited: Nanos,
    },
}

#[derive(Debug, Clone, Copy)]
enum OpenRequest {
    /// The request is not decided about yet, and has this number among those.
    Pending(u64),
    /// The request was let in before it was known how long it takes.
    Decided { ticket: Option<Ticket>, row: Option<RowRef>, schema: u32, waited: Nanos },
}

/// A request inside of the engine.
#[derive(Debug, Clone, Copy)]
struct Job {
    at: Instant,
    started: Option<Instant>,
    /// How long it runs, if that is known.
    service: Option<Nanos>,
    row: Option<RowRef>,
    /// Its client leaves when it has waited for as long as it may.
    leaves: bool,
    is_long_running: bool,
}

/// A request that comes to its level later.
#[derive(Debug, Clone, Copy)]
struct Delayed {
    until: Instant,
    arrival: ArrivalRecord,
    job: Job,
    wait_until: Instant,
}

/// The model's state for one flow schema.
#[derive(Debug)]
struct SchemaState {
    service_times: ServiceTimes,
    stamps: FlowStamps,
}

/// Takes over the effects of the engine on the parts of a model.
struct ModelEffects<'a> {
    now: Instant,
    figures: &'a mut Figures,
    ends: &'a mut BinaryHeap<Reverse<(Instant, Ticket)>>,
    long_running: &'a mut [u32],
}

/// Requests are decided about when they have ended in reality, or when they arrived so long ago.
pub(crate) const HORIZON: Nanos = 10 * SECOND;
/// Or when there are so many.
const PENDING_MAX: usize = 1 << 15;
/// So many requests may be open in reality or in the engine. Those that come then are dropped.
const OPEN_MAX: usize = 1 << 15;
/// How long after missed records the figures begin again.
const SETTLE: Nanos = SECOND;
/// How many flows with rates are remembered, of all flow schemas together, and of each of many.
const STAMPS_MAX: usize = 1 << 16;
const STAMPS_MIN: usize = 64;
/// How long a request takes of which nothing is known.
const SERVICE_UNKNOWN: Nanos = 10 * MILLISECOND;

// === impl Model ===

impl Model {
    /// A shadow that begins now. If reality is busy, what is counted begins a little later.
    pub(crate) fn new(setup: ModelSetup, now: Instant, is_busy: bool) -> Self {
        let mut engine = Engine::with_config(setup.division.config(setup.preset, setup.seats), setup.divided_at(now));
        engine.apply(setup.objects.clone(), now, &mut |_: Ticket, _: &mut Job| {});
        let configuration = engine.configuration();
        let has_rate = |schema: &&Schema| schema.terms.as_ref().is_some_and(|terms| terms.rate.is_some());
        let with_rate = configuration.schemas().iter().filter(has_rate).count().max(1);
        let stamps = (STAMPS_MAX / with_rate).max(STAMPS_MIN);
        let state =
            |_: &Schema| SchemaState { service_times: ServiceTimes::default(), stamps: FlowStamps::new(stamps) };
        Self {
            schemas: configuration.schemas().iter().map(state).collect(),
            configuration,
            engine,
            now,
            timeout_at: now,
            pending: VecDeque::new(),
            first: 0,
            places: HashMap::new(),
            early: Vec::new(),
            ends: BinaryHeap::new(),
            delayed: BinaryHeap::new(),
            seats: VecDeque::new(),
            long_running: Vec::new(),
            counts_from: if is_busy { now + SETTLE } else { now },
            figures: Figures::default(),
            dropped: 0,
            dropped_seconds: 0,
            dropped_in: None,
            setup,
        }
    }

    /// The configuration that it decides by.
    pub(crate) fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }

    /// When the figures begin.
    pub(crate) fn counts_from(&self) -> Instant {
        self.counts_from
    }

    /// The seats of all levels.
    pub(crate) fn seat_limit(&self) -> i64 {
        self.setup.seats
    }

    /// How many requests have not been decided about yet.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// A request has arrived. Arrivals come in the order of their times.
    pub(crate) fn arrived(&mut self, arrival: ArrivalRecord) {
        if self.places.len() + self.ends.len() >= OPEN_MAX + PENDING_MAX {
            self.drop_arrival(arrival.at);
            return;
        }
        let real = if arrival.id == RequestId::NONE { RealEnd::Rejected } else { RealEnd::Open };
        if real == RealEnd::Open {
            let number = self.first + self.pending.len() as u64;
            self.places.insert((arrival.event_level(), arrival.id), OpenRequest::Pending(number));
        }
        self.pending.push_back(Pending { arrival, waited: 0, real });
    }

    /// Drops an arrival, since there are too many requests.
    fn drop_arrival(&mut self, at: Instant) {
        self.dropped += 1;
        self.drop_seconds(at, at);
    }

    /// Requests of this time are missing. Each second is counted once, however often that happens in it.
    fn drop_seconds(&mut self, from: Instant, until: Instant) {
        let (from, until) = (from.as_nanos() / SECOND, until.as_nanos() / SECOND);
        let first = self.dropped_in.map_or(from, |last| from.max(last + 1));
        self.dropped_seconds += u64::try_from(until - first + 1).unwrap_or(0);
        self.dropped_in = self.dropped_in.max(Some(until));
    }

    /// Takes in events, in this order, of requests whose arrivals have been seen before or come soon.
    pub(crate) fn happened(&mut self, events: impl Iterator<Item = EventRecord>) {
        let again = std::mem::take(&mut self.early);
        for event in again {
            // Events whose requests are still unknown belong to requests from before the shadow.
            self.take_event(event);
        }
        for event in events {
            if !self.take_event(event) && self.early.len() < PENDING_MAX {
                self.early.push(event);
            }
        }
    }

    /// Decides about requests, given that all arrivals before this time have been seen.
    pub(crate) fn advance(&mut self, until: Instant) {
        while let Some(first) = self.pending.front() {
            let is_due =
                first.real != RealEnd::Open || until - first.arrival.at > HORIZON || self.pending.len() > PENDING_MAX;
            if !is_due {
                break;
            }
            let number = self.first;
            self.first += 1;
            if let Some(pending) = self.pending.pop_front() {
                self.decide(number, pending);
            }
        }
        let next = self.pending.front().map_or(until, |first| first.arrival.at.min(until));
        self.run_until(next);
    }

    /// Sets the number of seats from this time on.
    pub(crate) fn set_seats(&mut self, at: Instant, seats: i64) {
        if self.setup.seats != seats {
            self.setup.seats = seats;
            self.seats.push_back((at, seats));
        }
    }

    /// At least so many requests were missed: the figures of the others are of no use any more.
    pub(crate) fn fell_behind(&mut self, now: Instant, missed: u64) {
        // Everything before the model's own time has been decided about.
        self.drop_seconds(self.now, now);
        let dropped = self.dropped + missed + self.pending.len() as u64;
        let (dropped_seconds, dropped_in) = (self.dropped_seconds, self.dropped_in);
        let figures = std::mem::take(&mut self.figures);
        let next_division = self.engine.controller().next_timeout();
        let fresh = Self::new(ModelSetup { next_division, ..self.setup.clone() }, now, true);
        *self = Self { figures, dropped, dropped_seconds, dropped_in, ..fresh };
    }

    /// Takes in an event of a request. Returns whether the request is known.
    fn take_event(&mut self, event: EventRecord) -> bool {
        let key = (event.level, event.id);
        let Some(place) = self.places.get_mut(&key) else { return false };
        match (place, event.what) {
            (OpenRequest::Pending(number), what) => {
                let index = usize::try_from(number.wrapping_sub(self.first)).unwrap_or(usize::MAX);
                let Some(pending) = self.pending.get_mut(index) else { return true };
                match what {
                    Happened::Started { waited } => {
                        pending.waited = waited;
                        return true;
                    }
                    Happened::Rejected { .. } => pending.real = RealEnd::Rejected,
                    Happened::Left { waited } => pending.real = RealEnd::Left { waited },
                    Happened::Finished { ran } => pending.real = RealEnd::Finished { ran },
                }
                self.places.remove(&key);
            }
            (OpenRequest::Decided { waited, .. }, Happened::Started { waited: real }) => *waited = real,
            (OpenRequest::Decided { ticket, row, schema, waited }, what) => {
                let (ticket, row, schema, waited) = (*ticket, *row, *schema, *waited);
                self.places.remove(&key);
                let service = match what {
                    Happened::Finished { ran } => {
                        self.note_service(schema, ran);
                        self.note_real(row, SideOutcome::Started { waited });
                        ran
                    }
                    Happened::Rejected { .. } => {
                        self.note_real(row, SideOutcome::Rejected);
                        self.expected(schema)
                    }
                    Happened::Left { .. } | Happened::Started { .. } => self.expected(schema),
                };
                self.learn_service(ticket, service);
            }
        }
        true
    }

    /// Sets the service time of a request that is in the engine already.
    fn learn_service(&mut self, ticket: Option<Ticket>, service: Nanos) {
        let Some(ticket) = ticket else { return };
        let Some(job) = self.engine.payload_mut(ticket) else { return };
        job.service = Some(service);
        if let Some(started) = job.started {
            self.ends.push(Reverse(((started + service).max(self.now), ticket)));
        }
    }

    /// Decides about the request that arrived first.
    fn decide(&mut self, number: u64, pending: Pending) {
        let Pending { arrival, waited, real } = pending;
        self.run_until(arrival.at);
        let configuration = Arc::clone(&self.configuration);
        let Some(schema) = configuration.schemas().get(arrival.schema as usize) else { return };
        let level = u32::try_from(schema.level.id.index()).unwrap_or(u32::MAX);
        let is_counted = arrival.at >= self.counts_from;
        let row = is_counted.then(|| self.figures.arrived(arrival.key, (arrival.level, level)));
        let service = match real {
            RealEnd::Open => None,
            RealEnd::Finished { ran } => {
                self.note_service(arrival.schema, ran);
                self.note_real(row, SideOutcome::Started { waited });
                Some(ran)
            }
            RealEnd::Rejected => {
                self.note_real(row, SideOutcome::Rejected);
                Some(self.expected(arrival.schema))
            }
            RealEnd::Left { .. } => Some(self.expected(arrival.schema)),
        };
        let (limit, leaves) = match real {
            RealEnd::Left { waited } if waited < arrival.wait_limit => (waited, true),
            _ => (arrival.wait_limit, false),
        };
        let is_long_running = arrival.is_long_running;
        let job = Job { at: arrival.at, started: None, service, row, leaves, is_long_running };
        let wait_until = arrival.at + limit;
        let ticket = match self.pass_rate(schema, &arrival, wait_until) {
            Some(until) if until > self.now => {
                self.delayed.push(Reverse(Delayed { until, arrival, job, wait_until }));
                None
            }
            Some(_) => self.enter(schema, &arrival, job, wait_until),
            None => {
                self.note_shadow_rejection(&job);
                None
            }
        };
        if real == RealEnd::Open
            && let Some(place) = self.places.get_mut(&(arrival.event_level(), arrival.id))
            && matches!(place, OpenRequest::Pending(found) if *found == number)
        {
            *place = OpenRequest::Decided { ticket, row, schema: arrival.schema, waited };
        }
    }

    /// When the rate of its flow lets a request pass; `None`: never in time. Rates of costs are ignored: the cost of a request is
    /// known in reality only.
    fn pass_rate(&mut self, schema: &Schema, arrival: &ArrivalRecord, latest: Instant) -> Option<Instant> {
        let rate = schema.terms.as_ref().and_then(|terms| terms.rate);
        let Some(rate) = rate.filter(|rate| rate.rate.unit == RateUnit::Requests) else { return Some(self.now) };
        let state = self.schemas.get_mut(arrival.schema as usize)?;
        let latest = if rate.rate.excess == Excess::Reject { self.now } else { latest };
        state.stamps.take(&rate.limit, arrival.flow_hash, 1, self.now, latest).ok()
    }

    /// A request comes to its level.
    fn enter(&mut self, schema: &Schema, arrival: &ArrivalRecord, job: Job, wait_until: Instant) -> Option<Ticket> {
        let level = schema.level.id;
        if self.long_running.len() <= level.index() {
            self.long_running.resize(level.index() + 1, 0);
        }
        if job.is_long_running {
            let running = &mut self.long_running[level.index()];
            if schema.level.max_long_running.is_some_and(|max| *running >= max) {
                self.note_shadow_rejection(&job);
                return None;
            }
            *running += 1;
        }
        let hash = if schema.level.has_flows { arrival.flow_hash } else { 0 };
        let flow = Flow::with_hash(&schema.name, "", hash).with_weight(schema.flow_weight);
        let mut new = NewRequest::new(flow, arrival.work).wait_until(wait_until);
        if arrival.work.is_seatless() {
            new = new.seatless();
        } else if job.is_long_running {
            new = new.long_running();
        }
        let (now, mut effects) =
            (self.now, model_effects(self.now, &mut self.figures, &mut self.ends, &mut self.long_running));
        match self.engine.arrive(now, level, new, job, &mut effects)? {
            Arrival::Started { id, .. } => Some(Ticket { level, id }),
            Arrival::Waiting { id, .. } => {
                self.timeout_at = self.timeout_at.min(wait_until);
                Some(Ticket { level, id })
            }
            Arrival::Rejected { payload, .. } => {
                effects.gone(level, &payload);
                self.note_shadow_rejection(&payload);
                None
            }
        }
    }

    /// Lets time pass up to this moment.
    fn run_until(&mut self, until: Instant) {
        loop {
            let end = self.ends.peek().map(|Reverse((at, _))| *at);
            let delayed = self.delayed.peek().map(|Reverse(delayed)| delayed.until);
            let seats = self.seats.front().map(|(at, _)| *at);
            let next = [end, delayed, seats].into_iter().flatten().fold(self.timeout_at, Ord::min);
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if seats == Some(next) {
                self.change_seats();
            } else if end == Some(next) {
                self.end_next();
            } else if delayed == Some(next) {
                self.enter_delayed();
            } else {
                self.handle_timeouts();
            }
        }
        self.now = self.now.max(until);
    }

    fn end_next(&mut self) {
        let Some(Reverse((_, ticket))) = self.ends.pop() else { return };
        let (now, mut effects) =
            (self.now, model_effects(self.now, &mut self.figures, &mut self.ends, &mut self.long_running));
        match self.engine.finish(now, ticket, &mut effects) {
            Some(Finish::Released(job)) => effects.gone(ticket.level, &job),
            Some(Finish::Lingering { until }) => {
                if let Some(job) = self.engine.payload_mut(ticket) {
                    effects.gone(ticket.level, job);
                }
                self.timeout_at = self.timeout_at.min(until);
            }
            None => {}
        }
    }

    fn enter_delayed(&mut self) {
        let Some(Reverse(Delayed { arrival, job, wait_until, .. })) = self.delayed.pop() else { return };
        let configuration = Arc::clone(&self.configuration);
        let Some(schema) = configuration.schemas().get(arrival.schema as usize) else { return };
        let ticket = self.enter(schema, &arrival, job, wait_until);
        if let Some(OpenRequest::Decided { ticket: place, .. }) =
            self.places.get_mut(&(arrival.event_level(), arrival.id))
        {
            *place = ticket;
        } else if job.service.is_none() {
            // The request has ended meanwhile, and its service time is not known any more.
            let service = self.expected(arrival.schema);
            self.learn_service(ticket, service);
        }
    }

    fn change_seats(&mut self) {
        let Some((_, seats)) = self.seats.pop_front() else { return };
        let mut effects = model_effects(self.now, &mut self.figures, &mut self.ends, &mut self.long_running);
        self.engine.set_server_limit(seats, self.now, &mut effects);
        self.timeout_at = self.engine.next_timeout().unwrap_or(NEVER);
    }

    fn handle_timeouts(&mut self) {
        let mut effects = model_effects(self.now, &mut self.figures, &mut self.ends, &mut self.long_running);
        self.engine.handle_timeout(self.now, &mut effects);
        // Everything that is due by now has been done.
        self.timeout_at = self.engine.next_timeout().map_or(NEVER, |next| next.max(self.now + 1));
    }

    fn note_real(&mut self, row: Option<RowRef>, outcome: SideOutcome) {
        if let Some(row) = row {
            self.figures.note(row, Side::Real, outcome);
        }
    }

    fn note_shadow_rejection(&mut self, job: &Job) {
        if let Some(row) = job.row {
            self.figures.note(row, Side::Shadow, SideOutcome::Rejected);
        }
    }

    fn note_service(&mut self, schema: u32, ran: Nanos) {
        if let Some(state) = self.schemas.get_mut(schema as usize) {
            state.service_times.note(ran);
        }
    }

    /// How long a request of that flow schema may take (SH-1).
    fn expected(&mut self, schema: u32) -> Nanos {
        let own = self.schemas.get_mut(schema as usize).and_then(|state| state.service_times.draw());
        own.or_else(|| self.schemas.iter_mut().find_map(|state| state.service_times.draw())).unwrap_or(SERVICE_UNKNOWN)
    }
}

// === impl ModelSetup ===

impl ModelSetup {
    /// When seats were divided last, if that is due at the same times as in reality.
    fn divided_at(&self, now: Instant) -> Instant {
        let (Some(next), Some(period)) = (self.next_division, self.division.period.filter(|period| *period > 0)) else {
            return now;
        };
        Instant::from_nanos(now.as_nanos() - (now - next).rem_euclid(period))
    }
}

/// A time that never comes.
const NEVER: Instant = Instant::from_nanos(Nanos::MAX);

/// The parts of a model that the engine's effects change, while the engine itself is borrowed.
fn model_effects<'a>(
    now: Instant,
    figures: &'a mut Figures,
    ends: &'a mut BinaryHeap<Reverse<(Instant, Ticket)>>,
    long_running: &'a mut [u32],
) -> ModelEffects<'a> {
    ModelEffects { now, figures, ends, long_running }
}

// === impl ModelEffects ===

impl ModelEffects<'_> {
    /// A request has left its level, or has given back its seats.
    fn gone(&mut self, level: LevelId, job: &Job) {
        if job.is_long_running
            && let Some(running) = self.long_running.get_mut(level.index())
        {
            *running = running.saturating_sub(1);
        }
    }

    fn reject(&mut self, level: LevelId, job: &Job) {
        self.gone(level, job);
        if let Some(row) = job.row.filter(|_| !job.leaves) {
            self.figures.note(row, Side::Shadow, SideOutcome::Rejected);
        }
    }
}

impl EngineEffects<Job> for ModelEffects<'_> {
    fn started(&mut self, ticket: Ticket, job: &mut Job) {
        job.started = Some(self.now);
        if let Some(row) = job.row {
            let waited = self.now - job.at;
            self.figures.note(row, Side::Shadow, SideOutcome::Started { waited });
        }
        if let Some(service) = job.service {
            self.ends.push(Reverse((self.now + service, ticket)));
        }
    }

    fn displaced(&mut self, level: LevelId, ended: Ended<Job>) {
        self.reject(level, &ended.payload);
    }

    fn timed_out(&mut self, level: LevelId, ended: Ended<Job>) {
        if ended.phase == Phase::Waiting {
            self.reject(level, &ended.payload);
        }
    }
}

// === impl Delayed ===

impl PartialEq for Delayed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.until, self.arrival.at, self.arrival.id).cmp(&(other.until, other.arrival.at, other.arrival.id))
    }
}
