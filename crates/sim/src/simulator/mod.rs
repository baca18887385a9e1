//! `Simulator`: the engine with a virtual clock, and the service behind it.

mod changes;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use evenkeel_api::Preset;
use evenkeel_engine::auto_limit::{AutoLimit, Totals};
use evenkeel_engine::borrowing::SeatDivision;
use evenkeel_engine::controller::{Objects, ServerConfig};
use evenkeel_engine::cost::route_key;
use evenkeel_engine::digest::Query;
use evenkeel_engine::drain::DrainMeter;
use evenkeel_engine::level;
use evenkeel_engine::queue_set::{Arrival, Ended, Finish, Phase, Rejection};
use evenkeel_engine::time::{Instant, Nanos, SECOND};
use evenkeel_engine::work::{Circumstances, Estimator, WatchCounts};
use evenkeel_engine::{
    Attributes, Classification, Configuration, Engine, EngineEffects, Flow, LevelId, Ticket, WorkEstimate,
};
use evenkeel_fleet::{RateLoad, RateShares};

use crate::accounts::{AccountId, AccountKey, Accounts, retry_after};
use crate::auto_seats::AutoSeats;
use crate::delayed::Delayed;
use crate::known_objects::KnownObjects;
use crate::level_record::{LevelNumber, LevelRecord};
use crate::new_request::{Class, NewRequest};
use crate::outcome::{End, Outcome, Outcomes, RunningChange};
use crate::server_settings::ServerSettings;
use crate::service::{Done, Service, Task};

/// The engine under a virtual clock, with a service behind it. `T` is what the caller keeps with each request.
///
/// # How it is called
///
/// A request is [classified](Self::classify), and then it [arrives](Self::arrive) at a time that is not before that of any
/// earlier call. [`run_until`](Self::run_until) lets time pass: requests end, queues move, seats are divided.
/// [`next_event`](Self::next_event) is when something happens by itself. All of them tell an [`Outcomes`] what becomes of the requests.
///
/// ```
/// use evenkeel_engine::controller::Objects;
/// use evenkeel_engine::time::{MILLISECOND, SECOND};
/// use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
/// use evenkeel_sim::{NewRequest, Outcome, ServerSettings, Simulator};
///
/// let mut simulator: Simulator<u32> = Simulator::new(ServerSettings::new(600), Objects::bootstrap());
/// let user = User::new("alice", ["system:authenticated"]);
/// let request = RequestInfo { path: "/orders".into(), verb: "get".into(), ..RequestInfo::default() };
/// let class = simulator.classify(Attributes { user: &user, request: &request });
///
/// let mut ends = Vec::new();
/// let mut note = |outcome: Outcome<u32>| ends.push((outcome.token, outcome.ended));
/// let new = NewRequest::new(1, 10 * MILLISECOND, WorkEstimate::ONE_SEAT);
/// simulator.arrive(5 * MILLISECOND, class, new, &mut note);
/// simulator.run_until(SECOND, &mut note);
/// assert_eq!(ends, [(1, 15 * MILLISECOND)]);
/// ```
#[derive(Debug)]
pub struct Simulator<T> {
    engine: Engine<Job<T>, SeatDivision>,
    configuration: Arc<Configuration>,
    generation: u32,
    estimator: Estimator,
    objects: KnownObjects,
    watches: WatchCounts,
    service: Service,
    accounts: Accounts,
    /// Requests that wait for the rates of their flows.
    delayed: BinaryHeap<Reverse<Delayed<T>>>,
    auto: Option<AutoSeats>,
    now: Nanos,
    /// No timer of the engine is due before this time.
    timeout_at: Nanos,
    levels: Vec<LevelRecord>,
    /// The numbers of the engine's levels, by their indexes.
    numbers: Vec<LevelNumber>,
    preset: Preset,
    /// How fast each level drains, where rejected clients are told by that.
    meters: Vec<DrainMeter>,
    bucket_width: Nanos,
    events: u64,
    happened: EngineEvents<T>,
    /// The request that came to its level last, if it was not rejected.
    entered: Option<Ticket>,
    /// The level whose state has been recorded since the last event.
    recorded: Option<LevelId>,
}

/// A request inside of the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<T> {
    token: T,
    service: Nanos,
    delay: Nanos,
    schema: usize,
    arrived: Nanos,
    started: Nanos,
    account: Option<AccountId>,
}

/// The effects of one event of the engine.
#[derive(Debug)]
struct EngineEvents<T> {
    now: Nanos,
    started: Vec<Ticket>,
    rejected: Vec<(LevelId, Rejection, Job<T>)>,
    /// The levels of requests that have lingered, and their seats.
    released: Vec<(LevelId, u32)>,
}

/// Requests that take longer than this are not waited for at the end.
const DRAIN_MAX: Nanos = 24 * 3600 * SECOND;
/// A request whose patience has no end waits for its rate for so long at most.
const PATIENCE_MAX: Nanos = 24 * 3600 * SECOND;

// === impl Simulator ===

impl<T: Copy> Simulator<T> {
    /// A server that follows these objects, at time zero.
    pub fn new(settings: ServerSettings, objects: Objects) -> Self {
        let ServerSettings { preset, seats, borrowing, newcomer_wait, auto, service, .. } = settings;
        let ServerSettings { objects: counts, bucket_width, .. } = settings;
        let auto = auto.map(AutoSeats::new);
        let seats = auto.as_ref().map_or(seats, AutoSeats::seats);
        let config = ServerConfig::new(seats).division(SeatDivision::from(preset)).borrowing(borrowing);
        let config = config.newcomer_wait(newcomer_wait);
        let engine = Engine::with_config(config, Instant::from_nanos(0));
        let configuration = engine.configuration();
        let mut simulator = Self {
            engine,
            configuration,
            generation: 0,
            estimator: Estimator::default(),
            objects: counts,
            watches: WatchCounts::default(),
            service: Service::new(service),
            accounts: Accounts::default(),
            delayed: BinaryHeap::new(),
            auto,
            now: 0,
            timeout_at: 0,
            levels: Vec::new(),
            numbers: Vec::new(),
            preset,
            meters: Vec::new(),
            bucket_width,
            events: 0,
            happened: EngineEvents { now: 0, started: Vec::new(), rejected: Vec::new(), released: Vec::new() },
            entered: None,
            recorded: None,
        };
        simulator.engine.apply(objects, Instant::from_nanos(0), &mut simulator.happened);
        simulator.follow_configuration();
        simulator
    }

    /// The time: that of the last event.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// How many events there were: arrivals, starts, ends, rejections, divisions of seats, and changes from outside.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// All levels that there have been.
    pub fn levels(&self) -> &[LevelRecord] {
        &self.levels
    }

    /// A level by its number.
    pub fn level(&self, number: LevelNumber) -> &LevelRecord {
        &self.levels[number.0 as usize]
    }

    /// The configuration that governs requests now.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Where a request belongs.
    pub fn classify(&self, attributes: Attributes<'_>) -> Class {
        self.class_of(&self.configuration.classify(attributes))
    }

    /// The class of a request that [`configuration`](Self::configuration) has classified, for callers that want to know the
    /// names too.
    pub fn class_of(&self, classification: &Classification<'_>) -> Class {
        let level = &classification.schema.level;
        Class {
            id: level.id,
            generation: self.generation,
            level: self.number_of(level.id),
            schema: classification.index,
            flow_hash: classification.flow_hash,
            flow_weight: classification.schema.flow_weight,
            seat_cap: level.seat_cap(),
            seats: classification.schema.seats,
            wait_limit: level.wait_limit,
            is_settled: false,
        }
    }

    /// The key of a request where costs are learnt and flows have rates; the default key where its flow schema says nothing of
    /// either.
    pub fn account_key(&self, attributes: Attributes<'_>, class: Class) -> AccountKey {
        match self.configuration.schemas().get(class.schema).filter(|_| self.accounts.count(class.schema)) {
            Some(schema) => AccountKey { flow: schema.flow_key(attributes), route: route_key(attributes.request) },
            None => AccountKey::default(),
        }
    }

    /// Whether a class belongs to the current configuration. Otherwise the request has to be classified again.
    #[inline]
    pub fn is_current(&self, class: Class) -> bool {
        class.generation == self.generation
    }

    /// How many seats a request takes, by what the engine knows of it. The query is that of its URL.
    pub fn estimate(&self, request: &evenkeel_engine::RequestInfo<'_>, query: &str, class: Class) -> WorkEstimate {
        let circumstances = Circumstances {
            now: Instant::from_nanos(self.now),
            level_cap: class.seat_cap,
            objects: &self.objects,
            watches: &self.watches,
            consistent_reads_from_cache: false,
        };
        self.estimator.estimate(Some(request), Query::new(query), &circumstances)
    }

    /// A request arrives. Everything that happens by then happens first. If it has to wait, its ticket is there to
    /// [cancel](Self::cancel) it.
    ///
    /// # Panics
    ///
    /// If the class is not [current](Self::is_current) after that. Configurations change by themselves only when a level
    /// without an object has become idle.
    pub fn arrive(
        &mut self,
        at: Nanos,
        class: Class,
        request: NewRequest<T>,
        outcomes: &mut impl Outcomes<T>,
    ) -> Option<Ticket> {
        self.run_until(at, outcomes);
        let now = self.begin_event(at);
        let work = class.seats.map_or(request.work, WorkEstimate::seats);
        let request = NewRequest { work, patience: class.wait_limit.or(request.patience), ..request };
        if class.is_settled || !self.accounts.count(class.schema) {
            return self.enter(now, now, class, request, None, outcomes);
        }
        let (id, seats) = self.accounts.open(class.schema, request.key, request.cost, work.max_seats())?;
        let mut request = if seats == work.max_seats() {
            request
        } else {
            NewRequest { work: WorkEstimate::seats(seats), ..request }
        };
        let latest = now + request.patience.map_or(PATIENCE_MAX, |patience| patience.clamp(0, PATIENCE_MAX));
        match self.accounts.take(id, now, latest) {
            Ok(until) if until <= now => self.enter(now, now, class, request, Some(id), outcomes),
            Ok(until) => {
                outcomes.waits(self.now, &mut request.token);
                let (at, latest, sequence, arrived) = (until.as_nanos(), latest.as_nanos(), self.events, self.now);
                self.delayed.push(Reverse(Delayed { at, latest, sequence, arrived, class, request, account: id }));
                None
            }
            Err(over) => {
                self.reject_over_rate(now, self.now, class, request.token, (id, over.conforms_at), outcomes);
                None
            }
        }
    }

    /// A request would have to wait for its rate for too long.
    fn reject_over_rate(
        &mut self,
        now: Instant,
        arrived: Nanos,
        class: Class,
        token: T,
        (account, conforms_at): (AccountId, Instant),
        outcomes: &mut impl Outcomes<T>,
    ) {
        self.accounts.refuse(account, now);
        self.levels[class.level.index()].count_rejection(Rejection::RateLimit);
        let end = End::Rejected { reason: Rejection::RateLimit, retry_after: retry_after(conforms_at - now) };
        outcomes.ended(Outcome { token, level: class.level, arrived, ended: self.now, end });
    }

    /// The demand for rates that other servers may share (RL-6).
    pub(crate) fn rates(&mut self, now: Instant) -> Vec<RateLoad> {
        self.accounts.rates(now)
    }

    /// From now on flows have these parts of their rates.
    pub(crate) fn share_rates(&mut self, shares: &RateShares, now: Instant) {
        self.accounts.share_rates(shares, now);
    }

    /// A request comes to its level.
    fn enter(
        &mut self,
        now: Instant,
        arrived: Instant,
        class: Class,
        request: NewRequest<T>,
        account: Option<AccountId>,
        outcomes: &mut impl Outcomes<T>,
    ) -> Option<Ticket> {
        let NewRequest { token, service, delay, work, patience, is_long_running, .. } = request;
        let flow = Flow::from(class.flow_hash).with_weight(class.flow_weight);
        let mut new = level::NewRequest::new(flow, work);
        if work.is_seatless() {
            new = new.seatless();
        }
        new.is_long_running = is_long_running;
        if let Some(patience) = patience {
            new = new.wait_until(now.max(arrived + patience.max(0)));
        }
        let (arrived, started) = (arrived.as_nanos(), self.now);
        let job = Job { token, service, delay, schema: class.schema, arrived, started, account };
        let arrival = self.engine.arrive(now, class.id, new, job, &mut self.happened);
        let mut waits = None;
        self.entered = None;
        match arrival {
            Some(Arrival::Started { id, .. }) => self.entered = Some(Ticket { level: class.id, id }),
            Some(Arrival::Waiting { id, .. }) => {
                waits = Some(Ticket { level: class.id, id });
                self.entered = waits;
                if let Some(until) = new.wait_until {
                    self.timeout_at = self.timeout_at.min(until.as_nanos());
                }
                if let Some(job) =
                    self.engine.payload_mut(Ticket { level: class.id, id }).filter(|_| arrived == self.now)
                {
                    outcomes.waits(self.now, &mut job.token);
                }
            }
            Some(Arrival::Rejected { reason, payload, .. }) => {
                if let Some(id) = account {
                    self.accounts.refuse(id, now);
                }
                self.happened.rejected.push((class.id, reason, Job { account: None, ..payload }));
            }
            None if account.is_some() => {
                // The level is gone that it should have come to after it had waited for its rate.
                if let Some(id) = account {
                    self.accounts.refuse(id, now);
                }
                let end = End::Rejected { reason: Rejection::RateLimit, retry_after: SECOND };
                outcomes.ended(Outcome { token, level: class.level, arrived, ended: self.now, end });
                return None;
            }
            None => unreachable!("a class of an old configuration"),
        }
        self.look_at(class.id, 0);
        self.settle(outcomes);
        waits
    }

    /// Cancels a waiting request, and returns the caller's token; there is no outcome. `None` if the request no longer waits.
    /// Everything that is due by then happens first.
    pub fn cancel(&mut self, at: Nanos, ticket: Ticket, outcomes: &mut impl Outcomes<T>) -> Option<T> {
        self.run_until(at, outcomes);
        let now = self.begin_event(at);
        let job = self.engine.cancel(now, ticket, &mut self.happened)?;
        if let Some(id) = job.account {
            self.accounts.abandon(id, now);
        }
        self.look_at(ticket.level, 0);
        self.settle(outcomes);
        Some(job.token)
    }

    /// The request that came to its level last, whether it waits or runs; `None` if it was rejected.
    pub fn entered(&self) -> Option<Ticket> {
        self.entered
    }

    /// When the next timer is due or the next request ends; `None` if never.
    pub fn next_event(&self) -> Option<Nanos> {
        let tick = self.auto.as_ref().map(|auto| auto.next_tick).filter(|tick| *tick < Nanos::MAX);
        self.next_of_requests().into_iter().chain(tick).min()
    }

    pub(crate) fn engine(&self) -> &Engine<Job<T>, SeatDivision> {
        &self.engine
    }

    /// The limit that finds itself, if the server has one.
    pub fn auto_limit(&self) -> Option<&AutoLimit> {
        self.auto.as_ref().and_then(|auto| auto.limit.as_ref())
    }

    /// From now on it sums up what happens, for the instance of the fleet that finds the limit.
    pub(crate) fn sum_up(&mut self) {
        self.auto = Some(AutoSeats::summing());
    }

    /// What has happened since then.
    pub(crate) fn totals(&self, now: Nanos) -> Option<Totals> {
        self.auto.as_ref().filter(|auto| auto.limit.is_none()).map(|auto| auto.totals(now, &self.engine))
    }

    /// How many of its requests the service works on.
    pub(crate) fn in_work(&self) -> u32 {
        self.service.in_work()
    }

    /// The service works on so many requests of other servers.
    pub(crate) fn set_others_in_work(&mut self, at: Nanos, others: u32) {
        self.service.set_others(at, others);
    }

    /// When something happens to a request by itself.
    fn next_of_requests(&self) -> Option<Nanos> {
        let end = self.service.next_end();
        let timeout = (self.timeout_at < Nanos::MAX).then_some(self.timeout_at);
        let delayed = self.delayed.peek().map(|Reverse(next)| next.at);
        end.into_iter().chain(timeout).chain(delayed).min()
    }

    /// Lets time pass.
    #[inline]
    pub fn run_until(&mut self, until: Nanos, outcomes: &mut impl Outcomes<T>) {
        while self.step(until, outcomes) {}
        self.now = self.now.max(until);
    }

    /// Processes the next event, if it is due by this time, and returns whether there was one. For callers whose requests
    /// arrive because of earlier outcomes.
    #[inline]
    pub fn step(&mut self, until: Nanos, outcomes: &mut impl Outcomes<T>) -> bool {
        let end = self.service.next_end().unwrap_or(Nanos::MAX);
        let tick = self.auto.as_ref().map_or(Nanos::MAX, |auto| auto.next_tick);
        let delayed = self.delayed.peek().map_or(Nanos::MAX, |Reverse(next)| next.at);
        let next = end.min(self.timeout_at).min(tick).min(delayed);
        if next > until || next == Nanos::MAX {
            return false;
        }
        // Requests that end at the time of a timer end before it.
        if end == next {
            self.end_next(end, outcomes);
        } else if delayed == next {
            self.go_on(outcomes);
        } else if self.timeout_at == next {
            self.handle_timeout(outcomes);
        } else {
            self.tick(next, outcomes);
        }
        true
    }

    /// Lets time pass until every request has ended, or none of them can end any more.
    pub fn drain(&mut self, outcomes: &mut impl Outcomes<T>) {
        while !self.delayed.is_empty() || self.engine.levels().any(|level| !level.queue_set.is_idle()) {
            let Some(next) = self.next_of_requests().filter(|next| *next < self.now.saturating_add(DRAIN_MAX)) else {
                break;
            };
            self.run_until(next.saturating_add(SECOND), outcomes);
        }
        self.close_records();
    }

    /// Starts counting; earlier events are only in the series of the levels.
    pub fn reset_counts(&mut self) {
        self.levels.iter_mut().for_each(|level| level.reset(self.now));
    }

    /// The run is over: takes the time up to now into account in the records of levels.
    pub fn close_records(&mut self) {
        self.levels.iter_mut().for_each(|level| level.close(self.now));
    }

    /// The records of all levels, at the end.
    pub fn into_levels(self) -> Vec<LevelRecord> {
        self.levels
    }

    fn begin_event(&mut self, at: Nanos) -> Instant {
        self.now = self.now.max(at);
        if let Some(auto) = &mut self.auto {
            auto.pass(self.now, &self.engine);
        }
        self.happened.now = self.now;
        self.recorded = None;
        self.events += 1;
        Instant::from_nanos(self.now)
    }

    /// The next request that has waited for its rate goes on to its level.
    fn go_on(&mut self, outcomes: &mut impl Outcomes<T>) {
        let Some(Reverse(delayed)) = self.delayed.pop() else { return };
        let now = self.begin_event(delayed.at);
        // In a fleet, the part of the rate that this server has may have changed.
        let again = self.accounts.look_again(delayed.account, now);
        if let Some(next) = again.filter(|_| delayed.at < delayed.latest) {
            let at = next.as_nanos().min(delayed.latest);
            self.delayed.push(Reverse(Delayed { at, ..delayed }));
            return;
        }
        let Delayed { arrived, class, request, account, .. } = delayed;
        if let Some(conforms_at) = again {
            self.reject_over_rate(now, arrived, class, request.token, (account, conforms_at), outcomes);
            return;
        }
        self.accounts.end_wait(account);
        self.enter(now, Instant::from_nanos(arrived), class, request, Some(account), outcomes);
    }

    fn end_next(&mut self, at: Nanos, outcomes: &mut impl Outcomes<T>) {
        let Some(Done { ticket, is_good }) = self.service.end_next(at) else { return };
        let now = self.begin_event(at);
        let level = self.engine.queue_set(ticket.level);
        let Some(view) = level.and_then(|set| set.request(ticket.id)) else { return };
        let (mut job, mut work) = (*view.payload, view.work);
        let settled = job.account.map(|id| (id, self.accounts.settle(id, Instant::from_nanos(job.started), now)));
        let mut charge = settled.map_or(0, |(_, settlement)| settlement.charge);
        let mut changes = outcomes.last_changes(&mut job.token);
        // What is left of a cost is charged together with the end.
        if let Some(RunningChange::Charge(last)) = changes.pop_if(|last| matches!(last, RunningChange::Charge(_))) {
            charge = charge.saturating_add(last);
        }
        for change in changes {
            self.change_running(now, ticket, change);
            let set = self.engine.queue_set(ticket.level);
            work = set.and_then(|set| set.request(ticket.id)).map_or(work, |view| view.work);
        }
        match self.engine.finish_charged(now, ticket, charge, &mut self.happened) {
            Some(Finish::Released(_)) => self.look_at(ticket.level, u64::from(!work.is_seatless())),
            Some(Finish::Lingering { until }) => self.timeout_at = self.timeout_at.min(until.as_nanos()),
            None => return,
        }
        if let Some((id, settlement)) = settled {
            self.accounts.close(id, &settlement, !is_good, now);
        }
        let (seats, lingers) = (work.max_seats(), work.additional_latency);
        if let Some(auto) = &mut self.auto {
            auto.ended(job.schema, self.now - job.started, seats, is_good);
            if lingers > 0 {
                auto.lingers(seats);
            }
        }
        let end = End::Completed { started: job.started, seats, lingers, has_failed: !is_good };
        outcomes.ended(self.outcome(job, ticket.level, end));
        self.settle(outcomes);
    }

    #[cold]
    fn handle_timeout(&mut self, outcomes: &mut impl Outcomes<T>) {
        let now = self.begin_event(self.timeout_at);
        self.engine.handle_timeout(now, &mut self.happened);
        self.timeout_at = self.engine.next_timeout().map_or(Nanos::MAX, Instant::as_nanos);
        // Seats may have been divided, and a level that was on its way out may be gone.
        self.follow_configuration();
        self.settle(outcomes);
    }

    /// The limit that finds itself looks at what has happened.
    fn tick(&mut self, at: Nanos, outcomes: &mut impl Outcomes<T>) {
        let now = self.begin_event(at);
        let Some(seats) = self.auto.as_mut().and_then(|auto| auto.tick(now, &self.engine)) else { return };
        self.engine.set_server_limit(seats, now, &mut self.happened);
        self.follow_configuration();
        self.settle(outcomes);
    }

    /// Processes the effects of the engine.
    fn settle(&mut self, outcomes: &mut impl Outcomes<T>) {
        // A rejection starts no request, so that nothing is added meanwhile.
        while let Some((level, seats)) = self.happened.released.pop() {
            if let Some(auto) = &mut self.auto {
                auto.released(seats);
            }
            self.look_at(level, 1);
        }
        // A request that takes fewer seats than it waited for may let others start.
        let mut index = 0;
        while let Some(&ticket) = self.happened.started.get(index) {
            index += 1;
            self.events += 1;
            self.expect_anew(ticket);
            let set = self.engine.queue_set(ticket.level);
            let Some(seats) = set.and_then(|set| set.request(ticket.id)).map(|view| view.work.max_seats()) else {
                continue;
            };
            self.look_at(ticket.level, 0);
            if let Some(job) = self.engine.payload_mut(ticket) {
                outcomes.started(self.now, &mut job.token, seats);
                let service = outcomes.service(&mut job.token, job.service);
                let delay = outcomes.delay(&mut job.token, job.delay);
                self.service.begin(self.now, Task { ticket, work: service, delay });
            }
        }
        self.happened.started.clear();
        for index in 0..self.happened.rejected.len() {
            let (level, reason, job) = self.happened.rejected[index];
            self.events += 1;
            self.look_at(level, 0);
            let number = self.number_of(level);
            self.levels[number.index()].count_rejection(reason);
            let retry_after = self.retry_after(level, number);
            if let Some(id) = job.account {
                self.accounts.abandon(id, Instant::from_nanos(self.now));
            }
            let end = match reason {
                Rejection::TimeOut => End::TimedOut { retry_after },
                _ => End::Rejected { reason, retry_after },
            };
            outcomes.ended(self.outcome(job, level, end));
        }
        self.happened.rejected.clear();
    }

    /// A request starts that has waited: its seats follow what was learnt meanwhile.
    fn expect_anew(&mut self, ticket: Ticket) {
        let waited = |job: &&mut Job<T>| job.started > job.arrived;
        let Some(id) = self.engine.payload_mut(ticket).filter(waited).and_then(|job| job.account) else { return };
        let Some(seats) = self.accounts.expect_anew(id) else { return };
        let now = Instant::from_nanos(self.now);
        self.engine.set_seats(now, ticket, seats, &mut self.happened);
        let set = self.engine.queue_set(ticket.level);
        if let Some(view) = set.and_then(|set| set.request(ticket.id)) {
            self.accounts.set_seats(id, now, view.work.max_seats());
        }
        self.recorded = None;
    }

    fn outcome(&self, job: Job<T>, level: LevelId, end: End) -> Outcome<T> {
        Outcome { token: job.token, level: self.number_of(level), arrived: job.arrived, ended: self.now, end }
    }

    /// Records the state of a level. This many of its requests have released their seats.
    #[inline]
    fn look_at(&mut self, level: LevelId, released: u64) {
        // The engine has applied all effects of an event before the level is read.
        if self.recorded == Some(level) && released == 0 {
            return;
        }
        self.recorded = Some(level);
        let Some(set) = self.engine.queue_set(level) else { return };
        let number = self.number_of(level);
        self.levels[number.index()].note(self.now, set.seats_in_use(), set.waiting() as u64);
        if let Some(meter) = self.meters.get_mut(number.index()) {
            let usable = || self.engine.ledger().map_or(set.concurrency_limit(), |ledger| ledger.usable(level.index()));
            meter.look(Instant::from_nanos(self.now), set, usable, released);
        }
    }

    /// The `Retry-After` of a response that the level rejects now.
    fn retry_after(&mut self, level: LevelId, number: LevelNumber) -> Nanos {
        let now = Instant::from_nanos(self.now);
        match (self.meters.get_mut(number.index()), self.engine.queue_set(level)) {
            (Some(meter), Some(set)) => {
                let advice = meter.advise(now, set);
                Nanos::try_from(advice.retry_after.as_nanos()).unwrap_or(Nanos::MAX)
            }
            _ => Nanos::from(self.engine.retry_after(level, self.now / SECOND)) * SECOND,
        }
    }

    #[inline]
    fn number_of(&self, level: LevelId) -> LevelNumber {
        self.numbers[level.index()]
    }

    /// Takes over the configuration and the limits of the engine.
    fn follow_configuration(&mut self) {
        let configuration = self.engine.configuration();
        if !Arc::ptr_eq(&configuration, &self.configuration) || self.levels.is_empty() {
            self.accounts.follow(&configuration);
            self.configuration = configuration;
            self.generation += 1;
        }
        self.timeout_at = self.engine.next_timeout().map_or(Nanos::MAX, Instant::as_nanos);
        let is_immediate = self.engine.ledger().is_some();
        for view in self.engine.levels() {
            let position = self.levels.iter().position(|level| level.name() == view.name).unwrap_or_else(|| {
                self.levels.push(LevelRecord::new(view.name, self.now, self.bucket_width));
                self.levels.len() - 1
            });
            let number = LevelNumber(u32::try_from(position).unwrap_or(u32::MAX));
            let index = view.control.id().index();
            if self.numbers.len() <= index {
                self.numbers.resize(index + 1, number);
            }
            self.numbers[index] = number;
            let limits = view.control.limits();
            let limit = if is_immediate { limits.max } else { view.control.current_limit() };
            self.levels[position].set_limits(self.now, limits, limit);
            self.levels[position].note(self.now, view.queue_set.seats_in_use(), view.queue_set.waiting() as u64);
        }
        if !self.preset.is_kubernetes() {
            for number in self.meters.len()..self.levels.len() {
                // Each level spreads its clients with a seed of its own.
                self.meters.push(DrainMeter::new(Instant::from_nanos(self.now), number as u64));
            }
        }
    }
}

// === impl EngineEvents ===

impl<T: Copy> EngineEffects<Job<T>> for EngineEvents<T> {
    #[inline]
    fn started(&mut self, ticket: Ticket, job: &mut Job<T>) {
        job.started = self.now;
        self.started.push(ticket);
    }

    fn displaced(&mut self, level: LevelId, ended: Ended<Job<T>>) {
        self.rejected.push((level, Rejection::QueueFull, ended.payload));
    }

    fn timed_out(&mut self, level: LevelId, ended: Ended<Job<T>>) {
        match ended.phase {
            Phase::Waiting => self.rejected.push((level, Rejection::TimeOut, ended.payload)),
            Phase::Executing | Phase::Lingering => self.released.push((level, ended.work.max_seats())),
        }
    }
}
