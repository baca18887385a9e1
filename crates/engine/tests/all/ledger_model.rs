//! Borrowing at once (LB-1 to LB-7): the engine beside a plain model, event by event.

use crate::plain_ledger;

use std::collections::BTreeMap;

use evenkeel_api::annotations::{BORROWING_WEIGHT, borrowing_weight};
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::borrowing::{ExactDivision, Ledger, SeatDivision, Stake, Wish};
use evenkeel_engine::controller::{Borrowing, ControlledLevel, Objects, ServerConfig};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::{Arrival, Finish, Mode};
use evenkeel_engine::time::{Instant, MILLISECOND};
use evenkeel_engine::{Engine, LevelId, Ticket, WorkEstimate};
use plain_ledger::{PlainLedger, PlainLevel, PlainRequest, assert_same};

/// Levels that come, go and change. The last one rejects instead of queuing.
const NAMES: [&str; 5] = ["batch", "people", "reports", "system", "tenants"];

/// A small generator of random numbers (SplitMix64): the same run for the same seed everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).expect("a small number")).expect("a small number")
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A request that the engine has.
#[derive(Debug, Clone)]
struct Alive {
    number: u64,
    level: String,
    ticket: Ticket,
}

/// An engine and a model that see the same events.
struct Pair {
    random: Random,
    seed: u64,
    now: Instant,
    engine: Engine<u64, SeatDivision>,
    model: PlainLedger,
    waiting: Vec<Alive>,
    running: Vec<Alive>,
    lingering: Vec<Alive>,
    requests: u64,
    events: u64,
    /// How wide requests are at most.
    widest: usize,
}

fn level(random: &mut Random, name: &str) -> PriorityLevelConfiguration {
    let (shares, lendable) = (random.of(&[0, 1, 5, 10, 30, 100]), random.of(&[0, 0, 25, 50, 90, 100]));
    let limit = random.of(&[None, None, Some(0), Some(50), Some(200)]);
    let rejects = name == NAMES[4];
    let mut object = PriorityLevelConfiguration::builder(name)
        .limited(|l| {
            let l = l.shares(shares).lendable_percent(lendable);
            let l = if let Some(percent) = limit { l.borrowing_limit_percent(percent) } else { l };
            if rejects { l.reject() } else { l.queue(|q| q.queues(1).hand_size(1).queue_length_limit(1_000_000)) }
        })
        .build();
    if random.one_in(3) {
        let weight = random.of(&["1", "7", "10000", "0", "many"]);
        object.metadata.annotations.insert(BORROWING_WEIGHT.to_owned(), weight.to_owned());
    }
    object
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let now = Instant::from_nanos(0);
        let is_exact = random.one_in(2);
        let division = if is_exact {
            SeatDivision::Exact(ExactDivision::default())
        } else {
            SeatDivision::Faithful(evenkeel_engine::borrowing::FaithfulDivision::default())
        };
        let seats = random.of(&[0, 1, 5, 20, 60]);
        let config = ServerConfig::new(seats).division(division).period(None).borrowing(Borrowing::Immediate);
        let widest = random.of(&[1, 1, 3, 12]);
        let mut pair = Self {
            random,
            seed,
            now,
            engine: Engine::with_config(config, now),
            model: PlainLedger::default(),
            waiting: Vec::new(),
            running: Vec::new(),
            lingering: Vec::new(),
            requests: 0,
            events: 0,
            widest,
        };
        pair.reconfigure();
        pair
    }

    fn step(&mut self) {
        self.events += 1;
        self.now = self.now + self.random.of(&[0, 1, MILLISECOND]);
        match self.random.below(1000) {
            0..460 => self.arrive(),
            460..860 => self.finish(),
            860..900 => self.release(),
            900..980 => self.cancel(1),
            980..984 => self.cancel(self.waiting.len()),
            984..988 => self.surge(),
            988..994 => self.reconfigure(),
            994..998 => self.resize(),
            _ => self.change_mode(),
        }
        self.check();
    }

    fn arrive(&mut self) {
        let name = self.random.of(&NAMES).to_owned();
        let (seats, is_long) = (1 + self.random.below(self.widest), self.random.one_in(8));
        self.arrive_at(&name, u32::try_from(seats).expect("a small number"), is_long);
    }

    fn arrive_at(&mut self, name: &str, seats: u32, is_long: bool) {
        let Some(level) = self.engine.controller().level(name).map(ControlledLevel::id) else { return };
        let number = self.requests;
        self.requests += 1;
        let additional_latency = if self.random.one_in(8) { MILLISECOND } else { 0 };
        let work = WorkEstimate { additional_latency, ..WorkEstimate::seats(seats) };
        let new = NewRequest::new(7, work);
        let new = if is_long { new.long_running() } else { new };
        let expected = self.model.arrive(
            name,
            PlainRequest { number, seats: seats.into(), long_seats: if is_long { seats.into() } else { 0 } },
        );
        let mut started = Vec::new();
        let mut note = |ticket: Ticket, number: &mut u64| started.push((ticket, *number));
        let arrival = self.engine.arrive(self.now, level, new, number, &mut note).expect("a level");
        let alive = |id| Alive { number, level: name.to_owned(), ticket: Ticket { level, id } };
        match arrival {
            Arrival::Started { .. } | Arrival::Rejected { .. } => {}
            Arrival::Waiting { id, .. } => self.waiting.push(alive(id)),
        }
        if let Arrival::Started { id, .. } = arrival {
            self.running.push(alive(id));
        }
        self.started(&started, &expected, "arrive");
    }

    fn finish(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let index = self.random.below(self.running.len());
        let alive = self.running.swap_remove(index);
        let mut started = Vec::new();
        let mut note = |ticket: Ticket, number: &mut u64| started.push((ticket, *number));
        let finish = self.engine.finish(self.now, alive.ticket, &mut note).expect("it runs");
        let expected = match finish {
            Finish::Released(_) => self.model.end(&alive.level, alive.number),
            Finish::Lingering { .. } => Vec::new(),
        };
        if matches!(finish, Finish::Lingering { .. }) {
            self.lingering.push(alive);
        }
        self.started(&started, &expected, "finish");
    }

    fn release(&mut self) {
        if self.lingering.is_empty() {
            return;
        }
        let index = self.random.below(self.lingering.len());
        let alive = self.lingering.swap_remove(index);
        let mut started = Vec::new();
        let mut note = |ticket: Ticket, number: &mut u64| started.push((ticket, *number));
        let is_there = self.engine.release(self.now, alive.ticket, &mut note).is_some();
        let expected = if is_there { self.model.end(&alive.level, alive.number) } else { Vec::new() };
        self.started(&started, &expected, "release");
    }

    fn cancel(&mut self, count: usize) {
        for _ in 0..count {
            // Who gives up may let others start.
            if self.waiting.is_empty() {
                return;
            }
            let index = self.random.below(self.waiting.len());
            let alive = self.waiting.swap_remove(index);
            let mut started = Vec::new();
            let mut note = |ticket: Ticket, number: &mut u64| started.push((ticket, *number));
            assert!(self.engine.cancel(self.now, alive.ticket, &mut note).is_some());
            let expected = self.model.end(&alive.level, alive.number);
            self.started(&started, &expected, "cancel");
        }
    }

    /// Exempt requests come all at once (LB-7).
    fn surge(&mut self) {
        for _ in 0..self.random.below(30) {
            self.arrive_at("exempt", 1, false);
        }
    }

    /// New objects: levels come, go and have other seats.
    fn reconfigure(&mut self) {
        let mut objects = Objects::default();
        for name in NAMES {
            if !self.random.one_in(6) {
                objects.priority_levels.push(level(&mut self.random, name).into());
            }
        }
        let mut started = Vec::new();
        let mut note = |ticket: Ticket, number: &mut u64| started.push((ticket, *number));
        self.engine.apply(objects.with_mandatory_levels(), self.now, &mut note);
        let expected = self.take_over_terms();
        self.started(&started, &expected, "reconfigure");
    }

    /// The server has more or fewer seats (LB-7).
    fn resize(&mut self) {
        let seats = self.random.of(&[0, 1, 4, 10, 20, 40, 60]);
        let mut started = Vec::new();
        let mut note = |ticket: Ticket, number: &mut u64| started.push((ticket, *number));
        self.engine.set_server_limit(seats, self.now, &mut note);
        let expected = self.take_over_terms();
        self.started(&started, &expected, "resize");
    }

    /// To periodic borrowing and back (BM-3): nobody is rejected, nothing that runs ends, and order is kept.
    fn change_mode(&mut self) {
        let before: usize =
            self.engine.levels().map(|level| level.queue_set.waiting() + level.queue_set.executing()).sum();
        let mut by_limit = Vec::new();
        let note = &mut |ticket: Ticket, number: &mut u64| by_limit.push((ticket, *number));
        self.engine.set_borrowing(Borrowing::Periodic, self.now, note);
        assert!(self.engine.ledger().is_none());
        let mut started = Vec::new();
        let note = &mut |ticket: Ticket, number: &mut u64| started.push((ticket, *number));
        self.engine.set_borrowing(Borrowing::Immediate, self.now, note);
        let after: usize =
            self.engine.levels().map(|level| level.queue_set.waiting() + level.queue_set.executing()).sum();
        assert_eq!(before, after);
        // What started by the limits of the periodic mode has started: the model takes that over, level by level in order.
        for (_, number) in &by_limit {
            let alive = self.waiting.iter().find(|alive| alive.number == *number).expect("it waited").clone();
            let model = self.model.levels.get_mut(&alive.level).expect("a level");
            let head = model.waiting.pop_front().expect("somebody waits");
            assert_eq!(head.number, *number, "not in the order of arrival");
            let seats = self.engine.levels().find(|level| level.name == alive.level).and_then(|level| {
                level.queue_set.request(alive.ticket.id).map(|request| i64::from(request.work.max_seats()))
            });
            model.running.push(PlainRequest { seats: seats.expect("it runs"), ..head });
        }
        let numbers: Vec<_> = by_limit.iter().map(|(_, number)| *number).collect();
        self.started(&by_limit, &numbers, "change to periodic");
        self.model.forget_grants();
        let expected = self.model.settle();
        self.started(&started, &expected, "change to immediate");
    }

    /// The model goes by the limits that the controller has found.
    fn take_over_terms(&mut self) -> Vec<u64> {
        let controller = self.engine.controller();
        self.model.seats = controller.server_limit().max(controller.nominal_sum());
        let mut before = std::mem::take(&mut self.model.levels);
        let mut known = BTreeMap::new();
        for (name, level) in controller.levels() {
            let limits = level.limits();
            let shares = i64::from(evenkeel_engine::limits::shares(&level.object().spec)).max(1);
            let stake = Stake {
                floor: limits.nominal - limits.lendable,
                nominal: limits.nominal,
                max: limits.nominal + limits.borrowing,
                weight: borrowing_weight(&level.object().metadata.annotations).map_or(shares, i64::from),
                is_exempt: name == "exempt",
            };
            let queues = matches!(level.mode(), Mode::Queue(_));
            let plain = before.remove(name).unwrap_or_default();
            known.insert(name.to_owned(), PlainLevel { stake, queues, index: level.id().index(), ..plain });
        }
        // Levels that are gone were idle, or only lingered.
        self.lingering.retain(|alive| known.contains_key(&alive.level));
        self.model.levels = known;
        self.model.settle()
    }

    /// The engine started the same requests as the model, in the same order.
    fn started(&mut self, started: &[(Ticket, u64)], expected: &[u64], event: &str) {
        let numbers: Vec<_> = started.iter().map(|(_, number)| *number).collect();
        let (seed, events) = (self.seed, self.events);
        assert_same(&numbers, expected, || format!("seed {seed}, event {events}, {event}"));
        for (ticket, number) in started {
            if let Some(index) = self.waiting.iter().position(|alive| alive.number == *number) {
                let alive = self.waiting.swap_remove(index);
                self.running.push(Alive { ticket: *ticket, ..alive });
            }
        }
    }

    fn check(&self) {
        self.model.check();
        let ledger = self.engine.ledger().expect("a ledger");
        assert_eq!(ledger.free(), self.model.free(), "seed {}, event {}", self.seed, self.events);
        for level in self.engine.levels() {
            let model = &self.model.levels[level.name];
            let in_use = level.queue_set.seats_in_use();
            assert_eq!((in_use, level.queue_set.waiting()), (model.in_use(), model.waiting.len()), "{}", level.name);
            assert_eq!(ledger.in_use(level.control.id().index()), in_use, "{}", level.name);
        }
    }
}

/// Runs that many events, in runs of a thousand from seeds of their own.
fn run(events: u64, first_seed: u64) {
    for seed in first_seed..first_seed + events / 1000 {
        let mut pair = Pair::new(seed);
        (0..1000).for_each(|_| pair.step());
    }
}

#[test]
fn lb_5_a_long_running_request_that_is_wider_than_its_level_runs_alone() {
    let stake = Stake { floor: 0, nominal: 5, max: 20, weight: 1, is_exempt: false };
    let mut ledger = Ledger::new(20, [(0, stake), (1, stake)]);
    let wide = Wish::long_running(12, 0);
    assert!(ledger.try_start(0, Wish::new(1)));
    assert!(!ledger.try_start(0, wide), "it would borrow while others run");
    ledger.set_wish(0, Some(wide));
    assert_eq!(ledger.grant_next(), None);
    ledger.give_back(0, 1);
    assert_eq!(
        ledger.grant_next().map(|(level, granted)| (level, granted.seats)),
        Some((0, 12)),
        "it would wait for ever"
    );
    assert!(!ledger.try_start(0, Wish::long_running(1, 12)));
}

const START: Instant = Instant::from_nanos(0);

/// A level that can borrow most seats of another, with its nominal seats.
fn level_that_borrows() -> (Engine<u64, SeatDivision>, LevelId, i64) {
    let division = SeatDivision::Exact(ExactDivision::default());
    let config = ServerConfig::new(20).division(division).period(None).borrowing(Borrowing::Immediate);
    let mut engine = Engine::with_config(config, START);
    let level = |name, shares| {
        let object = PriorityLevelConfiguration::builder(name);
        object.limited(|l| l.shares(shares).lendable_percent(80).queue(|q| q.queues(1).hand_size(1))).build().into()
    };
    let objects = Objects { priority_levels: vec![level("batch", 25), level("people", 70)], ..Objects::default() };
    engine.apply(objects.with_mandatory_levels(), START, &mut |_: Ticket, _: &mut u64| {});
    let batch = engine.controller().level("batch").expect("a level");
    let (id, nominal) = (batch.id(), batch.limits().nominal);
    (engine, id, nominal)
}

/// Requests arrive until one has to wait, which gives up.
fn fill(engine: &mut Engine<u64, SeatDivision>, level: LevelId, request: NewRequest<'_>) -> Vec<Ticket> {
    let mut running = Vec::new();
    loop {
        match engine.arrive(START, level, request, 0, &mut |_: Ticket, _: &mut u64| {}).expect("a level") {
            Arrival::Started { id, .. } => running.push(Ticket { level, id }),
            Arrival::Waiting { id, .. } => {
                assert!(engine.cancel(START, Ticket { level, id }, &mut |_: Ticket, _: &mut u64| {}).is_some());
                return running;
            }
            Arrival::Rejected { reason, .. } => panic!("a request is rejected: {reason:?}"),
        }
    }
}

#[test]
fn lb_5_long_running_requests_hold_no_more_than_the_nominal_seats() {
    let (mut engine, level, nominal) = level_that_borrows();
    let short = NewRequest::new(7, WorkEstimate::ONE_SEAT);
    // Whether they come before the short requests or after them.
    let long = fill(&mut engine, level, short.long_running());
    assert_eq!(i64::try_from(long.len()), Ok(nominal));
    let mut short = fill(&mut engine, level, short);
    assert!(i64::try_from(short.len()).expect("a small number") > nominal, "the short ones borrow");
    for ticket in long {
        engine.finish(START, ticket, &mut |_: Ticket, _: &mut u64| {});
    }
    engine.finish(START, short.pop().expect("it runs"), &mut |_: Ticket, _: &mut u64| {});
    let long = fill(&mut engine, level, NewRequest::new(7, WorkEstimate::ONE_SEAT).long_running());
    assert_eq!(i64::try_from(long.len()), Ok(nominal));
}

#[test]
fn lb_5_a_long_running_request_does_not_keep_its_level_from_borrowing() {
    let (mut engine, level, nominal) = level_that_borrows();
    let short = NewRequest::new(7, WorkEstimate::ONE_SEAT);
    let mut running = fill(&mut engine, level, short);
    assert!(i64::try_from(running.len()).expect("a small number") > nominal + 1);
    for request in [short.long_running(), short] {
        let arrival = engine.arrive(START, level, request, 0, &mut |_: Ticket, _: &mut u64| {});
        assert!(matches!(arrival, Some(Arrival::Waiting { .. })));
    }
    // Each seat that becomes free is used at once, although the level uses more than its nominal seats.
    for what in ["long-running", "short"] {
        let mut started = 0;
        engine.finish(START, running.pop().expect("it runs"), &mut |_: Ticket, _: &mut u64| started += 1);
        assert_eq!(started, 1, "the {what} request waits until the borrowed seats are given back");
    }
}

#[test]
fn lb_1_to_7_the_engine_decides_as_the_plain_ledger() {
    run(100_000, 0);
}

/// `cargo test --release -p evenkeel-engine --test all ledger_model -- --ignored` takes some minutes.
#[test]
#[ignore = "ten million events"]
fn lb_1_to_7_the_engine_decides_as_the_plain_ledger_ten_million_times() {
    run(10_000_000, 1_000_000);
}
