//! The flight recorder: what it keeps, and for how long (FR-1).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::events::{CostKind, Rejection};
use evenkeel::flight::{FlightEnd, FlightFact, FlightRate, RateOutcome};
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};

const ONE: &str = "{levels: {all: {share: 1, queue: 2, perClient: 2, wait: 1s}}, match: [{level: all}]}";

fn flow(clock: &ManualClock) -> FlowControl {
    FlowControl::builder().server_concurrency(1).objects(ONE).manual_clock(clock.clone()).build()
}

fn arrive(flow: &FlowControl, path: &str) -> evenkeel::request::Arrived {
    let (user, request) = (User::new("alice", ["staff"]), RequestInfo::for_path("get", path));
    flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT)
}

#[test]
fn fr_1_every_end_is_recorded() {
    let clock = ManualClock::new();
    let flow = flow(&clock);
    assert!(flow.flight(Duration::MAX, "").is_none(), "nothing is recorded");
    flow.record(1 << 20);
    let first = arrive(&flow, "/a");
    let second = arrive(&flow, "/b");
    let third = arrive(&flow, "/b");
    let refused = arrive(&flow, "/c");
    clock.advance(Duration::from_millis(10));
    drop(third);
    drop(first);
    clock.advance(Duration::from_millis(5));
    flow.set_server_concurrency(3);
    let flight = flow.flight(Duration::from_secs(60), "a test").unwrap();
    let ends: Vec<_> = flight.records.iter().map(|record| (record.waited, record.end)).collect();
    let ms = 1_000_000;
    assert_eq!(
        ends,
        [
            (0, FlightEnd::Finished { ran: 10 * ms }),
            (10 * ms, FlightEnd::Open { has_started: true }),
            (10 * ms, FlightEnd::Rejected(Rejection::Cancelled)),
            (0, FlightEnd::Rejected(Rejection::QueueFull)),
        ]
    );
    let header = &flight.header;
    let paths: Vec<_> = flight.records.iter().map(|record| &*header.requests[record.request as usize].path).collect();
    assert_eq!(paths, ["/a", "/b", "/b", "/c"]);
    assert_eq!((&*header.cause, header.seats, header.is_complete), ("a test", 3, true));
    assert_eq!(header.requests[1].groups, ["staff"]);
    assert_eq!(header.changes[0].what, "1 seats became 3");
    assert!(flight.records.iter().all(|record| header.levels[usize::from(record.level)] == "all"));
    drop((second, refused));

    // Only the last seconds, and nothing without a recorder.
    clock.advance(Duration::from_secs(30));
    assert_eq!(flow.flight(Duration::from_secs(10), "").unwrap().records.len(), 0);
    flow.record(0);
    assert!(flow.flight(Duration::MAX, "").is_none());
}

#[test]
fn fr_1_the_oldest_requests_make_room() {
    let clock = ManualClock::new();
    let flow = flow(&clock);
    flow.record(200_000);
    for number in 0..20_000 {
        drop(arrive(&flow, &format!("/orders/{number}")));
        clock.advance(Duration::from_millis(1));
    }
    let flight = flow.flight(Duration::from_secs(3600), "").unwrap();
    assert!((100..10_000).contains(&flight.records.len()), "{}", flight.records.len());
    assert!(!flight.header.is_complete);
    // The last ones are there, and one flow does not fill the table with its paths.
    assert_eq!(flight.records.last().map(|last| last.at), Some(19_999 * 1_000_000));
    assert!(flight.header.requests.len() < 100, "{}", flight.header.requests.len());
}

/// A request that ended before the recording was full is in the dump as it was, or not at all: never as one that still runs.
#[test]
fn fr_1_a_busy_level_leaves_no_phantoms() {
    let clock = ManualClock::new();
    let flow = flow(&clock);
    flow.record(200_000);
    // Two requests at a time: one has three records, and one that is rejected on arrival has one.
    for _ in 0..5_000 {
        let (first, second) = (arrive(&flow, "/a"), arrive(&flow, "/b"));
        clock.advance(Duration::from_millis(1));
        drop((first, second));
        clock.advance(Duration::from_millis(1));
    }
    let flight = flow.flight(Duration::from_secs(3600), "").unwrap();
    assert!(flight.records.len() > 500, "{}", flight.records.len());
    for record in &flight.records {
        assert!(!matches!(record.end, FlightEnd::Open { .. }), "{record:?}");
    }
}

#[test]
fn fr_1_all_levels_and_threads_are_recorded() {
    let clock = ManualClock::new();
    let levels: Vec<String> = (0..40).map(|number| format!("level-{number}: {{share: 1}}")).collect();
    let matches: Vec<String> = (0..40).map(|number| format!("{{path: /{number}, level: level-{number}}}")).collect();
    let objects = format!("{{levels: {{{}}}, match: [{}, {{level: level-0}}]}}", levels.join(", "), matches.join(", "));
    let flow = FlowControl::builder().server_concurrency(400).objects(objects).manual_clock(clock.clone()).build();
    flow.record(4 << 20);
    // Threads come and go, more than there are processors.
    for _ in 0..10 {
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let flow = &flow;
                scope.spawn(move || (0..5).for_each(|n| drop(arrive(flow, &format!("/{}", thread * 5 + n)))));
            }
        });
        clock.advance(Duration::from_millis(1));
    }
    let flight = flow.flight(Duration::from_secs(60), "").unwrap();
    assert_eq!((flight.records.len(), flight.header.missed, flight.header.is_complete), (400, 0, true));
    assert!(flight.records.iter().all(|record| record.end == FlightEnd::Finished { ran: 0 }));
    assert_eq!(flight.header.levels.len(), 40);
}

/// A level that comes later has the index of one that is gone, and other requests.
#[test]
fn fr_1_levels_that_are_gone_keep_their_names() {
    let clock = ManualClock::new();
    let flow = flow(&clock);
    flow.record(1 << 20);
    for name in ["all", "second", "third", "all"] {
        let objects = format!("{{levels: {{{name}: {{share: 1}}}}, match: [{{level: {name}}}]}}");
        flow.apply(objects.as_str()).unwrap();
        let running = arrive(&flow, &format!("/{name}"));
        clock.advance(Duration::from_millis(3));
        drop(running);
    }
    let flight = flow.flight(Duration::from_secs(60), "").unwrap();
    let found: Vec<_> =
        (flight.records.iter()).map(|record| (&*flight.header.levels[usize::from(record.level)], record.end)).collect();
    let end = FlightEnd::Finished { ran: 3_000_000 };
    assert_eq!(found, [("all", end), ("second", end), ("third", end), ("all", end)]);
}

#[test]
fn fr_1_settings_that_change_are_told() {
    let clock = ManualClock::new();
    let flow = flow(&clock);
    flow.record(1 << 20);
    for _ in 0..2 {
        // The second time nothing changes.
        flow.set_borrowing(evenkeel::division::Borrowing::Periodic);
        flow.set_wait_limit(Duration::from_secs(3));
        flow.apply(ONE).unwrap();
    }
    let flight = flow.flight(Duration::MAX, "").unwrap();
    let changes: Vec<_> = flight.header.changes.iter().map(|change| &*change.what).collect();
    assert_eq!(changes, ["borrowing became periodic, and was immediate", "requests wait for 3s at most"]);
}

/// Of two recorders that follow each other, only the last one has what happened.
#[test]
fn fr_1_a_recorder_takes_the_place_of_another_one() {
    let clock = ManualClock::new();
    let flow = flow(&clock);
    for number in 0..3 {
        flow.record(1 << 20);
        flow.record(1 << 20);
        drop(arrive(&flow, &format!("/{number}")));
        let flight = flow.flight(Duration::MAX, "").unwrap();
        assert_eq!((flight.records.len(), flight.header.missed), (1, 0));
        flow.record(0);
        flow.record(0);
        drop(arrive(&flow, "/not-recorded"));
    }
}

#[test]
fn fr_1_an_idle_level_that_goes_is_no_change_of_the_objects() {
    let clock = ManualClock::new();
    let flow = flow(&clock);
    flow.record(1 << 20);
    let runs = arrive(&flow, "/a");
    flow.apply(evenkeel::objects::Objects::default()).unwrap();
    drop(runs);
    flow.tick();
    assert!(flow.status().iter().all(|level| level.name != "all"), "the level is gone");
    flow.set_newcomer_wait(Duration::from_secs(3));
    let flight = flow.flight(Duration::MAX, "").unwrap();
    let changes: Vec<_> = flight.header.changes.iter().map(|change| &*change.what).collect();
    let [change, wait] = changes[..] else { panic!("{changes:?}") };
    assert_eq!(wait, "seats are kept for newcomers that would wait for 3s");
    assert!(change.starts_with("other objects came into effect: "), "{change}");
    assert!(change.contains("level all removed"), "{change}");
}

/// What a request cost is noted with it when it ends, and so are its other seats.
#[test]
fn fr_1_costs_are_noted() {
    let clock = ManualClock::new();
    let objects = "{levels: {all: {share: 1}}, match: [{level: all, cost: bytes, seats: learnt, costPerSeat: 100}]}";
    let flow = FlowControl::builder().server_concurrency(9).objects(objects).manual_clock(clock.clone()).build();
    flow.record(1 << 20);
    let permits = [arrive(&flow, "/a"), arrive(&flow, "/b"), arrive(&flow, "/c")].map(|mut arrived| {
        match Pin::new(&mut arrived).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit.unwrap(),
            Poll::Pending => panic!("there are seats"),
        }
    });
    clock.advance(Duration::from_millis(2));
    permits[0].add_cost(250.5);
    permits[2].add_cost(1.0);
    clock.advance(Duration::from_millis(3));
    let [costly, free, open] = permits;
    drop((costly, free));
    let flight = flow.flight(Duration::MAX, "").unwrap();
    let costs = |record| {
        let of = flight.notes.iter().filter(move |note| note.record == record);
        of.filter(|note| matches!(note.fact, FlightFact::Cost { .. })).map(|note| note.fact).collect::<Vec<_>>()
    };
    let bytes = |thousandths| vec![FlightFact::Cost { thousandths, unit: CostKind::Bytes }];
    assert_eq!([costs(0), costs(1), costs(2)], [bytes(250_500), bytes(0), vec![]]);
    let resized = flight.notes.iter().find(|note| matches!(note.fact, FlightFact::Seats { .. })).unwrap();
    assert_eq!((resized.record, resized.fact), (0, FlightFact::Seats { at: 2_000_000, seats: 3 }));
    drop(open);
}

/// A request that waits for the rate of its flow is in the dump, whether it comes to its level or leaves before.
#[test]
fn fr_1_requests_that_wait_for_a_rate_are_recorded() {
    let clock = ManualClock::new();
    let objects = "{levels: {all: {share: 1, wait: 3s}}, match: [{level: all, rate: 1/s}]}";
    let flow = FlowControl::builder().server_concurrency(9).objects(objects).manual_clock(clock.clone()).build();
    flow.record(1 << 20);
    let first = arrive(&flow, "/a");
    clock.advance(Duration::from_millis(100));
    let mut second = arrive(&flow, "/b");
    let third = arrive(&flow, "/c");
    clock.advance(Duration::from_millis(200));
    drop(third);
    clock.advance(Duration::from_millis(800));
    let running = Pin::new(&mut second).poll(&mut Context::from_waker(Waker::noop()));
    assert!(running.is_ready());
    let flight = flow.flight(Duration::MAX, "").unwrap();
    assert_eq!(flight.records.len(), 3);
    let rates: Vec<_> = (flight.notes.iter())
        .filter_map(|note| match note.fact {
            FlightFact::Rate(FlightRate { at, amount, outcome, .. }) => Some((note.record, at, amount, outcome)),
            _ => None,
        })
        .collect();
    let ms = 1_000_000;
    assert_eq!(
        rates,
        [(0, 0, 1, RateOutcome::AtOnce), (1, 100 * ms, 1, RateOutcome::Left), (2, 100 * ms, 1, RateOutcome::Waited),]
    );
    let ends: Vec<_> = flight.records.iter().map(|record| (record.at, record.end)).collect();
    assert_eq!(
        ends[1..],
        [(300 * ms, FlightEnd::Rejected(Rejection::Cancelled)), (1100 * ms, FlightEnd::Open { has_started: true }),]
    );
    drop((first, running));
}
