//! Queues per flow and borrowing at once together (chapters 1 to 3 of `docs/spec/beyond.md`): the engine beside a plain account of
//! who waits, who runs and what each level may use. Everything changes under load: the modes (BM-3), objects, seats.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::annotations::QUEUING;
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::borrowing::Stake;
use evenkeel_engine::controller::{Borrowing, ControlledLevel, Objects, ServerConfig};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::{Arrival, Ended, Finish, Mode, Phase, QueuingDiscipline};
use evenkeel_engine::time::{Instant, MILLISECOND};
use evenkeel_engine::{Engine, EngineEffects, Flow, LevelId, Ticket, WorkEstimate};

const NAMES: [&str; 4] = ["batch", "people", "reports", "tenants"];
/// What seven flows send, in turn: some are heavy, and some have a weight.
const FLOWS: usize = 7;

/// A small generator of random numbers (SplitMix64): the same run for the same seed everywhere.
struct Random(u64);

/// A request that the engine has.
#[derive(Debug, Clone, Copy)]
struct Alive {
    level: LevelId,
    flow: usize,
    ticket: Ticket,
    phase: Phase,
}

/// What an event has brought about.
#[derive(Default)]
struct Happened {
    started: Vec<(Ticket, u64)>,
    displaced: Vec<u64>,
}

/// Which events may reject requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rejects {
    /// An arrival at a level that is full.
    Yes,
    Never,
}

struct Run {
    random: Random,
    seed: u64,
    event: u64,
    now: Instant,
    engine: Engine<u64>,
    borrowing: Borrowing,
    /// All requests by number, which grows with every arrival.
    alive: BTreeMap<u64, Alive>,
    requests: u64,
    widest: usize,
    /// What has been seen, so that a run which never gets there fails.
    reached: BTreeSet<&'static str>,
}

// === impl Random ===

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(end).unwrap()).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

// === impl Happened ===

impl EngineEffects<u64> for Happened {
    fn started(&mut self, ticket: Ticket, number: &mut u64) {
        self.started.push((ticket, *number));
    }

    fn displaced(&mut self, _level: LevelId, ended: Ended<u64>) {
        self.displaced.push(ended.payload);
    }
}

// === impl Run ===

impl Run {
    fn new(seed: u64) -> Self {
        let (mut random, now) = (Random(seed), Instant::from_nanos(0));
        let config = ServerConfig::new(random.of(&[5, 20, 60])).period(None).borrowing(Borrowing::Immediate);
        let widest = random.of(&[1, 1, 4, 12]);
        let (engine, borrowing) = (Engine::with_config(config, now), Borrowing::Immediate);
        let (alive, reached) = (BTreeMap::new(), BTreeSet::new());
        let mut run = Self { random, seed, event: 0, now, engine, borrowing, alive, requests: 0, widest, reached };
        run.reconfigure();
        run
    }

    fn step(&mut self) {
        self.event += 1;
        self.now = self.now + self.random.of(&[0, 1, MILLISECOND / 7, MILLISECOND]);
        match self.random.below(1000) {
            0..480 => {
                let name = self.random.of(&NAMES);
                self.arrive(name);
            }
            480..860 => self.end_one(Phase::Executing),
            860..900 => self.end_one(Phase::Lingering),
            900..965 => self.end_one(Phase::Waiting),
            // Everybody gives up.
            965..967 => (0..self.alive.len()).for_each(|_| self.end_one(Phase::Waiting)),
            // Exempt requests come all at once (LB-7).
            967..972 => (0..self.random.below(12)).for_each(|_| self.arrive("exempt")),
            972..982 => self.reconfigure(),
            982..991 => self.resize(),
            _ => self.change_borrowing(),
        }
    }

    fn arrive(&mut self, name: &str) {
        let Some(level) = self.engine.controller().level(name).map(ControlledLevel::id) else { return };
        let number = self.requests;
        self.requests += 1;
        // Low numbers are frequent: their flows are greedy.
        let flow = self.random.below(FLOWS).min(self.random.below(FLOWS));
        let seats = u32::try_from(1 + self.random.below(self.widest)).unwrap();
        let additional_latency = if self.random.one_in(8) { MILLISECOND } else { 0 };
        let work = WorkEstimate { additional_latency, ..WorkEstimate::seats(seats) };
        let identity = Flow::from(u64::try_from(flow).unwrap()).with_weight(u16::try_from(1 + flow % 3).unwrap());
        let mut new = NewRequest::new(identity, work);
        if self.widest > 1 && self.random.one_in(8) {
            new = new.long_running();
        }
        let mut happened = Happened::default();
        match self.engine.arrive(self.now, level, new, number, &mut happened).expect("a level") {
            Arrival::Started { id, .. } => {
                self.note(number, Alive { level, flow, ticket: Ticket { level, id }, phase: Phase::Executing });
            }
            Arrival::Waiting { id, .. } => {
                self.note(number, Alive { level, flow, ticket: Ticket { level, id }, phase: Phase::Waiting });
            }
            Arrival::Rejected { .. } => {
                self.reached.insert("a request is rejected on arrival");
            }
        }
        self.take_over(&happened, Rejects::Yes);
    }

    fn note(&mut self, number: u64, alive: Alive) {
        assert!(self.alive.insert(number, alive).is_none());
    }

    /// One of those that run, linger or wait ends, if there is any.
    fn end_one(&mut self, phase: Phase) {
        let numbers: Vec<_> =
            self.alive.iter().filter(|(_, alive)| alive.phase == phase).map(|(number, _)| *number).collect();
        if numbers.is_empty() {
            return;
        }
        let number = self.random.of(&numbers);
        let (ticket, mut happened) = (self.alive[&number].ticket, Happened::default());
        let lingers = match phase {
            Phase::Executing => {
                let finish = self.engine.finish(self.now, ticket, &mut happened).expect("it runs");
                matches!(finish, Finish::Lingering { .. })
            }
            Phase::Lingering => {
                assert_eq!(self.engine.release(self.now, ticket, &mut happened), Some(number));
                false
            }
            Phase::Waiting => {
                assert_eq!(self.engine.cancel(self.now, ticket, &mut happened), Some(number));
                false
            }
        };
        if lingers {
            self.alive.get_mut(&number).unwrap().phase = Phase::Lingering;
        } else {
            self.alive.remove(&number);
        }
        self.take_over(&happened, Rejects::Never);
    }

    /// New objects: levels come, go, and have other seats, other limits and another discipline (BM-3).
    fn reconfigure(&mut self) {
        let mut objects = Objects::default();
        for name in NAMES {
            // A level of which something lingers only would go, and its requests with it.
            if self.random.one_in(6) && !self.has_requests(name) {
                continue;
            }
            let random = &mut self.random;
            let (shares, lendable) = (random.of(&[1, 5, 10, 30, 100]), random.of(&[0, 25, 50, 90, 100]));
            let limit = random.of(&[None, None, Some(0), Some(50), Some(200)]);
            let (queues, hand, length) = random.of(&[(4, 2, 2), (16, 4, 10), (64, 6, 50)]);
            let mut level = PriorityLevelConfiguration::builder(name).limited(|l| {
                let l = l.shares(shares).lendable_percent(lendable);
                let l = if let Some(percent) = limit { l.borrowing_limit_percent(percent) } else { l };
                l.queue(|q| q.queues(queues).hand_size(hand).queue_length_limit(length))
            });
            if !random.one_in(3) {
                level = level.annotation(QUEUING, "per-flow");
            }
            objects.priority_levels.push(level.build().into());
        }
        let mut happened = Happened::default();
        self.engine.apply(objects.with_mandatory_levels(), self.now, &mut happened);
        self.take_over(&happened, Rejects::Never);
    }

    /// In the end everybody gets through.
    fn drain(&mut self) {
        self.borrowing = Borrowing::Immediate;
        let mut happened = Happened::default();
        self.engine.set_borrowing(self.borrowing, self.now, &mut happened);
        self.take_over(&happened, Rejects::Never);
        let mut happened = Happened::default();
        self.engine.set_server_limit(60, self.now, &mut happened);
        self.take_over(&happened, Rejects::Never);
        while !self.alive.is_empty() {
            let before = self.alive.len();
            for phase in [Phase::Executing, Phase::Lingering] {
                self.end_one(phase);
            }
            let holds = self.alive.values().any(|alive| alive.phase != Phase::Waiting);
            if !holds && self.alive.len() == before {
                let levels = self.engine.levels().map(|view| (view.name.to_owned(), stake_of(view.control)));
                let levels: BTreeMap<_, _> = levels.collect();
                panic!("seed {}: {:?} wait, and nobody runs: {levels:?}", self.seed, self.alive);
            }
        }
    }

    fn has_requests(&self, name: &str) -> bool {
        let level = self.engine.controller().level(name).map(ControlledLevel::id);
        self.alive.values().any(|alive| Some(alive.level) == level)
    }

    /// The server has more or fewer seats (LB-7).
    fn resize(&mut self) {
        let (seats, mut happened) = (self.random.of(&[0, 1, 4, 10, 20, 40, 60]), Happened::default());
        self.engine.set_server_limit(seats, self.now, &mut happened);
        self.take_over(&happened, Rejects::Never);
    }

    fn change_borrowing(&mut self) {
        self.borrowing = self.random.of(&[Borrowing::Periodic, Borrowing::Immediate, Borrowing::Immediate]);
        let mut happened = Happened::default();
        self.engine.set_borrowing(self.borrowing, self.now, &mut happened);
        self.take_over(&happened, Rejects::Never);
    }

    /// Takes over what has started and who had to give way, and checks everything.
    fn take_over(&mut self, happened: &Happened, rejects: Rejects) {
        let context = format!("seed {}, event {}", self.seed, self.event);
        for number in &happened.displaced {
            assert_eq!(rejects, Rejects::Yes, "{context}: request {number} is rejected");
            let gone = self.alive.remove(number).expect("it waited");
            assert_eq!(gone.phase, Phase::Waiting, "{context}");
            self.reached.insert("a waiting request gives way");
        }
        for (ticket, number) in &happened.started {
            let Some(found) = self.alive.get(number).copied() else { panic!("{context}: {number} is unknown") };
            assert_eq!(found.ticket, *ticket, "{context}");
            // Whoever starts on arrival has been noted as running.
            if found.phase == Phase::Waiting {
                if self.discipline(found.level) == Some(QueuingDiscipline::PerFlow) {
                    let older = self.alive.range(..number).find(|(_, other)| {
                        (other.level, other.flow, other.phase) == (found.level, found.flow, Phase::Waiting)
                    });
                    assert!(older.is_none(), "{context}: {number} overtakes {older:?} of its flow");
                }
                self.alive.get_mut(number).unwrap().phase = Phase::Executing;
            }
        }
        self.check(&context, !happened.started.is_empty());
    }

    fn discipline(&self, id: LevelId) -> Option<QueuingDiscipline> {
        let mut levels = self.engine.controller().levels();
        levels.find(|(_, level)| level.id() == id).and_then(|(_, level)| level.mode().discipline())
    }

    /// What must hold after every event.
    fn check(&mut self, context: &str, has_started: bool) {
        let mut in_use_by_all = 0;
        for view in self.engine.levels() {
            let (id, set) = (view.control.id(), view.queue_set);
            let of = |phase| self.alive.values().filter(move |alive| alive.level == id && alive.phase == phase);
            // Nobody is lost, and nobody is there twice.
            let counts = (set.waiting(), set.executing(), set.requests().count());
            let expected = (of(Phase::Waiting).count(), of(Phase::Executing).count());
            let all = expected.0 + expected.1 + of(Phase::Lingering).count();
            assert_eq!(counts, (expected.0, expected.1, all), "{context}: {}", view.name);
            for alive in self.alive.values().filter(|alive| alive.level == id) {
                assert_eq!(set.phase(alive.ticket.id), Some(alive.phase), "{context}: {}", view.name);
            }
            // Seats are conserved.
            let holding = set.requests().filter(|request| request.phase != Phase::Waiting);
            let seats: i64 = holding.map(|request| i64::from(request.work.max_seats())).sum();
            assert_eq!(set.seats_in_use(), seats, "{context}: {}", view.name);
            // Of an exempt level, at most its own seats count (LB-1).
            let counted =
                if view.control.mode() == Mode::Exempt { seats.min(view.control.limits().nominal) } else { seats };
            in_use_by_all += counted;
            if view.control.mode().is_per_flow() && expected.0 > 0 {
                self.reached.insert("requests wait in queues per flow");
            }
            if let Some(ledger) = self.engine.ledger() {
                assert_eq!(ledger.in_use(id.index()), seats, "{context}: {}", view.name);
            }
        }
        let Some(ledger) = self.engine.ledger() else { return };
        assert_eq!(self.borrowing, Borrowing::Immediate);
        let controller = self.engine.controller();
        let seats = controller.server_limit().max(controller.nominal_sum());
        assert_eq!(ledger.free(), seats - in_use_by_all, "{context}");
        if ledger.free() < 0 {
            self.reached.insert("more seats are in use than there are");
        }
        let exempt_only =
            |(_, alive): (&u64, &Alive)| Some(alive.level) == controller.level("exempt").map(ControlledLevel::id);
        let newest_is_exempt = self.alive.last_key_value().is_some_and(exempt_only);
        assert!(!has_started || newest_is_exempt || ledger.free() >= 0, "{context}: started without a seat");
        self.check_floors(context);
    }

    /// Nobody below its floor waits while there are seats, and no seat is left that anybody may use (LB-2). Exact if all
    /// requests have one seat; a wide one may be what others wait for (PF-8, LB-6).
    fn check_floors(&self, context: &str) {
        let ledger = self.engine.ledger().expect("a ledger");
        let stakes: BTreeMap<LevelId, Stake> =
            self.engine.controller().levels().map(|(_, level)| (level.id(), stake_of(level))).collect();
        let lack = |id: LevelId| (stakes[&id].floor - ledger.in_use(id.index())).max(0);
        for view in self.engine.levels() {
            let (id, set) = (view.control.id(), view.queue_set);
            if set.waiting() == 0 || !matches!(view.control.mode(), Mode::Queue(_)) {
                continue;
            }
            let (stake, in_use, free) = (stakes[&id], ledger.in_use(id.index()), ledger.free());
            let waiting = set.requests().filter(|request| request.phase == Phase::Waiting);
            let widest = waiting.map(|request| i64::from(request.work.max_seats())).max().unwrap_or(1);
            let widest = widest.min(ledger.widest(id.index()));
            // The most seats that the level leaves to newcomers (PF-10).
            let kept = if view.control.mode().is_per_flow() { stake.nominal.max(in_use) / 4 } else { 0 };
            let crosses_floor = in_use + widest + kept > stake.floor;
            assert!(crosses_floor || free < widest + kept, "{context}: {} is below its floor and waits", view.name);
            if self.widest == 1 {
                let others: i64 = stakes.keys().filter(|&&other| other != id).map(|&other| lack(other)).sum();
                let may_start = in_use + kept < stake.max && free > others + kept;
                assert!(!may_start, "{context}: {} waits although {free} seats are free", view.name);
            }
        }
    }
}

fn stake_of(level: &ControlledLevel) -> Stake {
    let limits = level.limits();
    let (floor, max) = (limits.nominal - limits.lendable, limits.nominal + limits.borrowing);
    Stake { floor, nominal: limits.nominal, max, weight: 1, is_exempt: level.mode() == Mode::Exempt }
}

fn run(seeds: std::ops::Range<u64>, events: u64) -> BTreeSet<&'static str> {
    let mut reached = BTreeSet::new();
    for seed in seeds {
        let mut run = Run::new(seed);
        (0..events).for_each(|_| run.step());
        run.drain();
        reached.append(&mut run.reached);
    }
    reached
}

#[test]
fn bm_3_pf_1_lb_2_seats_floors_and_order_hold_in_all_modes_together() {
    let reached = run(0..24, 500);
    let expected = [
        "a request is rejected on arrival",
        "a waiting request gives way",
        "more seats are in use than there are",
        "requests wait in queues per flow",
    ];
    assert_eq!(reached, expected.into(), "the runs do not get everywhere");
}

/// `cargo test --release -p evenkeel-engine --test all modes_together -- --ignored` takes some minutes.
#[test]
#[ignore = "ten million events"]
fn bm_3_pf_1_lb_2_the_same_ten_million_times() {
    run(1_000..11_000, 1_000);
}
