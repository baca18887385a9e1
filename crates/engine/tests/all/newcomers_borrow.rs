//! Seats that are kept for newcomers where levels borrow at once (PF-12).

use evenkeel_api::annotations::{NEWCOMER_SEATS, QUEUING};
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::borrowing::{ExactDivision, SeatDivision};
use evenkeel_engine::controller::{Borrowing, Objects, ServerConfig};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::Arrival;
use evenkeel_engine::time::{Instant, SECOND};
use evenkeel_engine::{Engine, LevelId, Ticket, WorkEstimate};

type TestEngine = Engine<u64, SeatDivision>;

const START: Instant = Instant::from_nanos(0);
const SLOW: u64 = 1;

fn level(name: &str, shares: i32, lendable: i32, kept: &str) -> PriorityLevelConfiguration {
    let mut object = PriorityLevelConfiguration::builder(name)
        .limited(|l| {
            l.shares(shares).lendable_percent(lendable).queue(|q| q.queues(64).hand_size(8).queue_length_limit(50))
        })
        .build();
    object.metadata.annotations.insert(QUEUING.to_owned(), "per-flow".to_owned());
    object.metadata.annotations.insert(NEWCOMER_SEATS.to_owned(), kept.to_owned());
    object
}

/// Two levels of ten seats each, which lend so much.
fn engine(lendable: i32, kept: &str) -> (TestEngine, LevelId, LevelId) {
    let division = SeatDivision::Exact(ExactDivision::default());
    let config = ServerConfig::new(20).division(division).period(None).borrowing(Borrowing::Immediate);
    let mut engine = Engine::with_config(config, START);
    let levels = [level("batch", 50, lendable, kept), level("people", 50, lendable, kept)];
    let objects = Objects { priority_levels: levels.map(Into::into).into(), ..Objects::default() };
    engine.apply(objects.with_mandatory_levels(), START, &mut |_: Ticket, _: &mut u64| {});
    let id = |name| engine.controller().level(name).expect("a level").id();
    let (batch, people) = (id("batch"), id("people"));
    (engine, batch, people)
}

/// Requests of a flow arrive; those that start at once.
fn arrive(engine: &mut TestEngine, level: LevelId, flow: u64, count: usize) -> Vec<Ticket> {
    let new = NewRequest::new(flow, WorkEstimate::ONE_SEAT);
    let mut started = Vec::new();
    for _ in 0..count {
        let note = &mut |ticket: Ticket, _: &mut u64| started.push(ticket);
        let arrival = engine.arrive(START, level, new, flow, note).expect("a level");
        assert!(!matches!(arrival, Arrival::Rejected { .. }), "rejected");
    }
    started
}

fn nominal(engine: &TestEngine, name: &str) -> usize {
    usize::try_from(engine.controller().level(name).expect("a level").limits().nominal).unwrap()
}

#[test]
fn pf_12_a_level_that_has_borrowed_leaves_seats_to_newcomers() {
    for lendable in [0, 50, 100] {
        let (mut engine, batch, _) = engine(lendable, "auto");
        let slow = arrive(&mut engine, batch, SLOW, 60).len();
        let free = usize::try_from(engine.ledger().unwrap().usable(batch.index())).unwrap() - slow;
        assert!((2..=5).contains(&free), "lendable {lendable}: {slow} started, {free} seats are kept");
        for flow in 0..free {
            let newcomer = 100 + u64::try_from(flow).unwrap();
            assert_eq!(arrive(&mut engine, batch, newcomer, 1).len(), 1, "lendable {lendable}, newcomer {flow}");
        }
        assert_eq!(arrive(&mut engine, batch, 99, 1).len(), 0, "all seats are taken");
    }
}

#[test]
fn pf_12_a_newcomer_that_waits_behind_a_slow_flow_gets_the_next_seat() {
    let (mut engine, batch, _) = engine(0, "2");
    let slow = arrive(&mut engine, batch, SLOW, 30);
    let newcomers: Vec<_> = (10..12).flat_map(|flow| arrive(&mut engine, batch, flow, 1)).collect();
    assert_eq!((slow.len(), newcomers.len()), (nominal(&engine, "batch") - 2, 2));
    assert_eq!(arrive(&mut engine, batch, 20, 1).len(), 0);
    let mut started = Vec::new();
    let now = START + SECOND;
    engine.finish(now, newcomers[0], &mut |_: Ticket, flow: &mut u64| started.push(*flow));
    assert_eq!(started, [20], "the slow flow has waited longer, and has used more");
    // Of two seats that become free, the slow flow leaves both to newcomers; of the third, it gets one.
    for ticket in &slow[..3] {
        engine.finish(now, *ticket, &mut |_: Ticket, flow: &mut u64| started.push(*flow));
    }
    assert_eq!(started, [20, SLOW]);
}

#[test]
fn pf_12_kept_seats_are_lent_to_a_level_below_its_nominal_seats() {
    let (mut engine, batch, people) = engine(100, "3");
    // All seats but three, of which none belongs to the level any more.
    let borrowed = arrive(&mut engine, batch, SLOW, 60).len();
    assert!(borrowed > nominal(&engine, "batch"), "{borrowed}");
    for flow in 50..53 {
        assert_eq!(arrive(&mut engine, people, flow, 1).len(), 1, "the other level is below its own seats");
    }
}
