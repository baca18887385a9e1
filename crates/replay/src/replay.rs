//! `Replay`: reads logs, and lets their requests arrive at one or two simulated servers.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenkeel::flight::Flight;
use evenkeel::service::Occupancy;
use evenkeel_api::Preset;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_engine::digest::Query;
use evenkeel_engine::queue_set::{NEWCOMER_WAIT, Rejection};
use evenkeel_engine::time::{Instant, Nanos, SECOND};
use evenkeel_engine::work::{Circumstances, Estimator, EstimatorConfig};
use evenkeel_engine::{Classification, RequestHead, RequestInfo, WorkEstimate};
use evenkeel_sim::NewRequest;

use crate::assumed::{RequestKind, ServiceTimes};
use crate::clock::{LogClock, Tick};
use crate::damage::Damaged;
use crate::flight;
use crate::flight_notes::FlightNotes;
use crate::flows::{Counter, FlowKey, Flows, SIDES_MAX, Token};
use crate::formats::Damage;
use crate::input::Input;
use crate::interpret::{Interpreted, Interpreter};
use crate::join::{Completion, Join, RequestKey};
use crate::logged_head::LookedAtHead;
use crate::object_numbers::ObjectNumbers;
use crate::order::Order;
use crate::record::{Outcome, Placed, Record, Stage};
use crate::report::{Notes, Report};
use crate::routes::Routes;
use crate::side::{Side, ToldCost};
use crate::timeline::Timeline;
use crate::truth::{Comparison, Truth};
use crate::users::Users;

/// The server that a log is replayed against.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// What kind of server it is: what paths mean, and how seats are divided.
    pub preset: Preset,
    /// Its seats, or that it finds out how many are right.
    pub concurrency: Concurrency,
    /// How its levels borrow.
    pub borrowing: Borrowing,
    /// How long newcomers may have to wait for a seat before some are kept for them.
    pub newcomer_wait: Nanos,
    /// How long requests wait at most.
    pub wait_limit: Nanos,
    /// How many objects of each resource there are.
    pub object_numbers: ObjectNumbers,
    /// Its routes. A route that matches decides how many seats a request takes, whatever the log tells.
    pub routes: Option<Arc<dyn Routes>>,
}

/// A replay under way. It compares one or two configurations on the same requests, in bounded memory.
///
/// ```
/// use evenkeel_api::Preset;
/// use evenkeel_engine::controller::Objects;
/// use evenkeel_replay::{Input, Replay, Settings};
///
/// let log = concat!(
///     r#"{"time":"2026-11-16T10:51:03.6Z","user":"alice","groups":[],"method":"GET","path":"/","schema":"s","level":"l","waitMs":0,"serviceMs":40}"#, "\n",
///     r#"{"time":"2026-11-16T10:51:03.7Z","user":"alice","groups":[],"method":"GET","path":"/","schema":"s","level":"l","waitMs":0,"serviceMs":40}"#, "\n",
/// );
/// let mut input = Input::new("access.log", Box::new(log.as_bytes()), None, None).unwrap();
/// let mut replay = Replay::new(Settings::new(Preset::Plain, 50), vec![Objects::from(Preset::Plain)], None);
/// replay.read(&mut input, |_, _| {});
/// let report = replay.finish();
/// assert_eq!((report.requests, report.damaged.count()), (2, 0));
/// ```
#[derive(Debug)]
pub struct Replay {
    settings: Settings,
    interpreter: Interpreter,
    estimator: Estimator,
    sides: Vec<Side>,
    /// The headers that the configurations ask for, and whether they ask for anything of the head of requests.
    asked_headers: Vec<Box<str>>,
    asks_for_head: bool,
    truth: Option<Truth>,
    users: Users,
    clock: LogClock,
    join: Join,
    service_times: ServiceTimes,
    order: Order<ReplayRequest>,
    flows: Flows,
    timeline: Timeline,
    lines: u64,
    requests: u64,
    damaged: Damaged,
    notes: Notes,
    comparison: Comparison,
}

/// A request that is ready to be replayed.
#[derive(Debug, Clone, Copy)]
struct ReplayRequest {
    flow: u32,
    schemas: [u32; SIDES_MAX],
    hashes: [u64; SIDES_MAX],
    work: [WorkEstimate; SIDES_MAX],
    costs: [ToldCost; SIDES_MAX],
    service: Nanos,
    patience: Nanos,
}

/// No request is taken to hold its seats for longer.
const SERVICE_MAX: Nanos = 24 * 3600 * SECOND;

const PROGRESS_EVERY: u64 = 4096;

// === impl Settings ===

impl Settings {
    /// A server of that kind with that many seats.
    pub fn new(preset: Preset, concurrency: impl Into<Concurrency>) -> Self {
        let borrowing = match preset {
            Preset::Kubernetes => Borrowing::Periodic,
            Preset::Plain | Preset::Llm => Borrowing::Immediate,
        };
        Self {
            preset,
            concurrency: concurrency.into(),
            borrowing,
            newcomer_wait: NEWCOMER_WAIT,
            wait_limit: 15 * SECOND,
            object_numbers: ObjectNumbers::default(),
            routes: None,
        }
    }
}

// === impl Replay ===

impl Replay {
    /// A replay under these configurations, of which there are one or two: before and after. Our classification is compared with
    /// the truth under the first.
    ///
    /// # Panics
    /// If there are no configurations, or more than two.
    pub fn new(settings: Settings, configurations: Vec<Objects>, truth: Option<Truth>) -> Self {
        assert!((1..=SIDES_MAX).contains(&configurations.len()), "one or two configurations can be compared");
        let sides: Vec<Side> = configurations.into_iter().map(|objects| Side::new(&settings, objects)).collect();
        let asked_headers: BTreeSet<Box<str>> = sides.iter().flat_map(Side::asked_headers).map(Into::into).collect();
        Self {
            asks_for_head: !asked_headers.is_empty() || sides.iter().any(Side::asks_for_addresses),
            asked_headers: asked_headers.into_iter().collect(),
            interpreter: Interpreter::new(settings.preset, settings.routes.clone()),
            estimator: Estimator::new(costing(&settings.object_numbers)),
            sides,
            truth,
            users: Users::default(),
            clock: LogClock::default(),
            join: Join::default(),
            service_times: ServiceTimes::default(),
            order: Order::new(),
            flows: Flows::default(),
            timeline: Timeline::default(),
            lines: 0,
            requests: 0,
            damaged: Damaged::default(),
            notes: Notes::default(),
            comparison: Comparison::default(),
            settings,
        }
    }

    /// Reads a log to its end. `progress` is called now and then with the number of lines read so far.
    pub fn read(&mut self, input: &mut Input, mut progress: impl FnMut(u64, &Input)) {
        let format = input.format().clone();
        let (name, unit) = (input.name().to_owned(), input.unit());
        self.notes.add_format(&format);
        while let Some(part) = input.next_part() {
            self.lines += 1;
            let record = part.text.and_then(|text| format.read(text, &mut self.users));
            let taken = record.and_then(|record| record.map_or(Ok(()), |record| self.take(&record)));
            if let Err(damage) = taken {
                self.damaged.note(&name, unit, part.number, damage);
            }
            if self.lines.is_multiple_of(PROGRESS_EVERY) {
                progress(self.lines, input);
            }
        }
    }

    /// Replays the requests of a dump of a flight recorder.
    pub fn read_flight(&mut self, flight: &Flight) {
        self.notes.formats.push("flight recorder".to_owned());
        let users = flight::users_of(flight);
        let notes = FlightNotes::new(flight);
        for (number, record) in flight.records.iter().enumerate() {
            self.lines += 1;
            let record = flight::record_of(flight, &users, &notes, (number, record));
            let taken = record.map_or(Err(Damage::Missing("the request")), |record| self.take(&record));
            if let Err(damage) = taken {
                self.damaged.note("flight", "record", number as u64 + 1, damage);
            }
        }
    }

    /// Lets the last requests end.
    pub fn finish(mut self) -> Report {
        self.flush();
        for (number, side) in self.sides.iter_mut().enumerate() {
            side.drain(&mut Counter { flows: &mut self.flows, side: number });
        }
        self.notes.unfinished = self.join.unfinished();
        self.notes.late = self.order.late();
        let ended = self.flows.ended();
        let mut flows = self.flows.into_rows();
        flows.sort_by_cached_key(|flow| std::cmp::Reverse((flow.difference(self.settings.wait_limit), flow.requests)));
        Report {
            lines: self.lines,
            requests: self.requests,
            damaged: self.damaged,
            comparison: self.comparison,
            flows,
            ended,
            simulators: self.sides.into_iter().map(Side::into_simulator).collect(),
            notes: self.notes,
        }
    }

    /// Takes a record: it is a request to be replayed, a part of one, or one that flow control has nothing to do with.
    fn take(&mut self, record: &Record<'_>) -> Result<(), Damage> {
        match self.clock.tick(record.written) {
            Tick::Near => {}
            Tick::Jump => self.begin_piece(),
            Tick::Far => return Err(Damage::Invalid("the time, which is far from those of the lines around it,")),
        }
        match record.outcome {
            Outcome::Unauthenticated => {
                self.notes.unauthenticated += 1;
                return Ok(());
            }
            Outcome::NotLimited => {
                self.notes.not_limited += 1;
                return Ok(());
            }
            Outcome::Served | Outcome::Rejected(_) => {}
        }
        let key = record.id.as_deref().map(RequestKey::new);
        match (record.stage, key) {
            (Stage::Received, Some(key)) => {
                self.join.received(key);
                return Ok(());
            }
            (Stage::Complete, Some(key)) if self.join.completed(key) == Completion::Replayed => return Ok(()),
            _ => {}
        }
        let Ok(asked) = self.interpreter.interpret(record) else {
            self.notes.not_understood += 1;
            return Ok(());
        };
        if let (Stage::Started, Some(key)) = (record.stage, key) {
            self.join.started(key, |watches| watches.register(&asked.info, Query::of_target(&record.target)));
        }
        match asked.occupancy {
            _ if seats_of(record, &asked).is_some_and(WorkEstimate::is_seatless) => self.notes.seatless += 1,
            Occupancy::None => self.notes.not_limited += 1,
            _ => self.take_request(record, &asked, key),
        }
        Ok(())
    }

    fn take_request(&mut self, record: &Record<'_>, asked: &Interpreted<'_>, key: Option<RequestKey>) {
        let looked_at = LookedAtHead::new(&record.head, &self.asked_headers);
        let with_head;
        let request = if self.asks_for_head {
            with_head = RequestInfo { head: RequestHead::borrowed(&looked_at), ..asked.info.clone() };
            &with_head
        } else {
            &asked.info
        };
        let mut ready = ReplayRequest {
            flow: 0,
            schemas: [0; SIDES_MAX],
            hashes: [0; SIDES_MAX],
            work: [WorkEstimate::ONE_SEAT; SIDES_MAX],
            costs: [ToldCost::default(); SIDES_MAX],
            service: 0,
            patience: asked.wait_limit.unwrap_or(self.settings.wait_limit),
        };
        let mut distinguishers = [""; SIDES_MAX];
        let mut is_narrowed = false;
        for (number, side) in self.sides.iter().enumerate() {
            let Some(class) = side.classify(record, request) else {
                self.notes.unplaced += 1;
                return;
            };
            ready.schemas[number] = u32::try_from(class.index).unwrap_or(u32::MAX);
            ready.hashes[number] = class.flow_hash;
            ready.work[number] = self.work(record, asked, &class);
            is_narrowed |= i64::from(ready.work[number].max_seats()) > side.seats_max(class.index);
            ready.costs[number] = Side::cost(record, request, asked.route, &class);
            distinguishers[number] = class.distinguisher;
            if number == 0 {
                let told = record.placed.clone();
                let found = || self.truth.as_ref().zip(key).and_then(|(truth, key)| truth.find(key));
                if let Some(theirs) = told.or_else(found) {
                    let schema = class.schema;
                    let ours = Placed { schema: (&*schema.name).into(), level: (&*schema.level.name).into() };
                    self.comparison.add(record, &ours, &theirs);
                }
            }
        }
        let depends_on = |header: &str| {
            self.sides.iter().zip(ready.schemas).any(|(side, schema)| side.depends_on(header, schema as usize))
        };
        self.notes.add_untold(&looked_at, depends_on);
        self.notes.narrowed += u64::from(is_narrowed);
        self.notes.untold_costs += u64::from(ready.costs.iter().any(|told| told.is_untold));
        self.notes.unknown_seats += u64::from(!self.interpreter.knows_seats() && record.seats.is_none());
        ready.service = service_time(&mut self.service_times, &mut self.notes, record, asked);
        let key = FlowKey { schemas: ready.schemas, hashes: Some(ready.hashes) };
        let sides = &self.sides;
        ready.flow = self.flows.number(key, sides.len(), || {
            let flows = ready.schemas.into_iter().zip(distinguishers);
            sides.iter().zip(flows).map(|(side, (schema, flow))| side.flow_name(schema, flow)).collect()
        });
        self.note_recorded(ready.flow, record, &asked.info);
        self.requests += 1;
        self.order.push(record.arrived.as_nanos(), record.written.as_nanos(), ready);
        while let Some((at, request)) = self.order.pop() {
            self.arrive(at, request);
        }
    }

    /// The seats that a request takes: those of its route or of the log, or an estimate.
    fn work(&self, record: &Record<'_>, asked: &Interpreted<'_>, class: &Classification<'_>) -> WorkEstimate {
        if let Some(known) = seats_of(record, asked) {
            return known;
        }
        if !self.interpreter.is_kubernetes() {
            return WorkEstimate::ONE_SEAT;
        }
        let circumstances = Circumstances {
            now: Instant::default(),
            level_cap: class.schema.level.seat_cap(),
            objects: &self.settings.object_numbers,
            watches: self.join.watches(),
            consistent_reads_from_cache: false,
        };
        self.estimator.estimate(Some(&asked.info), Query::of_target(&record.target), &circumstances)
    }

    fn note_recorded(&mut self, flow: u32, record: &Record<'_>, request: &RequestInfo<'_>) {
        let row = self.flows.row(flow);
        row.requests += 1;
        row.recorded.rejected += u64::from(matches!(record.outcome, Outcome::Rejected(_)));
        // Requests that were rejected on arrival did not wait for anything.
        let has_waited = match &record.outcome {
            Outcome::Rejected(reason) => {
                [Rejection::TimeOut, Rejection::Cancelled].iter().any(|one| reason.as_deref() == Some(one.as_str()))
            }
            _ => true,
        };
        if let Some(wait) = record.wait.filter(|_| has_waited) {
            row.recorded.wait.record(wait);
        }
        if request.verb == "list" && self.settings.object_numbers.is_empty() && record.seats.is_none() {
            self.notes.lists += 1;
        }
    }

    fn arrive(&mut self, at: Nanos, request: ReplayRequest) {
        let at = self.timeline.map(at);
        let ReplayRequest { flow, schemas, hashes, work, costs, service, patience } = request;
        for (number, side) in self.sides.iter_mut().enumerate() {
            let token = Token { flow, work: work[number] };
            let ToldCost { cost, key, .. } = costs[number];
            let new = NewRequest::new(token, service, work[number]).patience(patience).cost(cost, key);
            let counter = &mut Counter { flows: &mut self.flows, side: number };
            side.arrive(at, (schemas[number], hashes[number]), new, counter);
        }
    }

    /// The times that follow are not related to those before.
    fn begin_piece(&mut self) {
        self.flush();
        self.order.restart();
        self.timeline.begin_piece();
    }

    fn flush(&mut self) {
        while let Some((at, request)) = self.order.pop_any() {
            self.arrive(at, request);
        }
    }
}

/// The seats by the route of a request, or else by the log. They are not capped: a gateway does not cap the seats of its routes,
/// and a level that has fewer seats narrows a request when it starts.
fn seats_of(record: &Record<'_>, asked: &Interpreted<'_>) -> Option<WorkEstimate> {
    asked.work.or(record.seats.map(WorkEstimate::seats))
}

/// The cost of lists: by size as in servers that know it, or else by number as in those that do not.
fn costing(numbers: &ObjectNumbers) -> EstimatorConfig {
    if numbers.has_sizes() || numbers.is_empty() { EstimatorConfig::default() } else { EstimatorConfig::by_count() }
}

/// How long a request holds its seats, by the log or by others of its kind.
fn service_time(times: &mut ServiceTimes, notes: &mut Notes, record: &Record<'_>, asked: &Interpreted<'_>) -> Nanos {
    let kind = RequestKind::of(&asked.info);
    // The end of a watch tells nothing about when its response started.
    let is_told = !(asked.occupancy == Occupancy::ToTheHeaders && record.stage == Stage::Complete);
    if let Some(service) = record.service.filter(|_| is_told) {
        let service = service.clamp(0, SERVICE_MAX);
        notes.unknown_waits += u64::from(record.wait.is_none());
        times.note(kind, service);
        return service;
    }
    match record.outcome {
        Outcome::Rejected(_) => notes.rejected += 1,
        _ => notes.untimed += 1,
    }
    times.assume(kind)
}
