//! The flight recorder: what it keeps, and for how long (FR-1).

use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::events::Rejection;
use evenkeel::flight::FlightEnd;
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
