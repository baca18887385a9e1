//! Seats that are kept for newcomers, and how many one flow may hold (PF-10, PF-11), one by one.

use std::time::Duration;

use evenkeel_api::annotations::{NewcomerSeats, SeatShare};
use evenkeel_engine::drain::DrainMeter;
use evenkeel_engine::queue_set::{
    Arrival, FlowLimits, Mode, NoEffects, QueueSet, QueueSetConfig, QueuingDiscipline, RequestId,
};
use evenkeel_engine::time::{Instant, MILLISECOND};
use evenkeel_engine::{Flow, WorkEstimate};

type Set = QueueSet<()>;

const SLOW: u64 = 1;
const QUICK: u64 = 2;

fn at(ms: i64) -> Instant {
    Instant::from_nanos(ms * MILLISECOND)
}

fn config(seats: i64, limits: FlowLimits) -> QueueSetConfig {
    let mode = Mode::queue(64, 8, 50).unwrap().with_discipline(QueuingDiscipline::PerFlow).with_flow_limits(limits);
    QueueSetConfig { mode, concurrency_limit: seats }
}

fn set(seats: i64, limits: FlowLimits) -> Set {
    QueueSet::new(config(seats, limits), at(0))
}

/// Requests of a flow arrive; those that start at once.
fn arrive(set: &mut Set, ms: i64, flow: u64, count: usize) -> Vec<RequestId> {
    let mut arrive = || set.arrive(at(ms), Flow::from(flow), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
    let started = (0..count).filter_map(|_| match arrive() {
        Arrival::Started { id, .. } => Some(id),
        Arrival::Waiting { .. } => None,
        Arrival::Rejected { .. } => panic!("rejected"),
    });
    started.collect()
}

/// Requests end; those that start because of it.
fn finish(set: &mut Set, ms: i64, ended: impl IntoIterator<Item = RequestId>) -> Vec<RequestId> {
    let mut started = Vec::new();
    for id in ended {
        set.finish(at(ms), id, &mut |id: RequestId, (): &mut ()| started.push(id)).expect("it runs");
    }
    started
}

#[test]
fn pf_10_the_first_burst_of_a_flow_leaves_seats_to_newcomers() {
    let mut set = set(10, FlowLimits::AUTO);
    assert_eq!(arrive(&mut set, 0, SLOW, 30).len(), 8, "a quarter of ten seats");
    assert_eq!(set.kept_seats(), 2);
    // Others get in at once, again and again.
    for round in 1..50 {
        let running = arrive(&mut set, 100 * round, QUICK, 1);
        assert_eq!(running.len(), 1, "round {round}");
        assert_eq!(finish(&mut set, 100 * round + 10, running), [], "the flow that waits does not take the seats");
    }
    // They may use all seats that are kept as soon as they are known to be quick.
    let first = arrive(&mut set, 5000, QUICK, 2);
    assert_eq!(first.len(), 1, "it has been away, and nothing is known of it");
    let mut running = finish(&mut set, 5010, first);
    running.extend(arrive(&mut set, 5010, QUICK, 1));
    assert_eq!(running.len(), 2);
    // Each newcomer gets a seat while there is one.
    finish(&mut set, 5020, running);
    assert_eq!([3, 4, 5].map(|flow| arrive(&mut set, 5021, flow, 1).len()), [1, 1, 0]);
}

/// Newcomers pass those that wait. However many they are, a rejected client is told how long those take that it would wait behind.
#[test]
fn pf_10_the_expected_wait_goes_by_those_that_wait() {
    let (mut set, mut meter) = (set(8, FlowLimits::AUTO), DrainMeter::new(at(0), 7));
    let look = |set: &Set, meter: &mut DrainMeter, now, ended| meter.look(at(now), set, || 8, ended);
    let mut slow = arrive(&mut set, 0, SLOW, 120);
    look(&set, &mut meter, 0, 0);
    assert_eq!(slow.len(), 6);
    let mut now = 0;
    for round in 1..=360 {
        now = 100 * round;
        // From the sixth second on, one of the slow requests ends in each.
        if now >= 6000 && now % 1000 == 0 {
            let ended = slow.remove(0);
            slow.extend(finish(&mut set, now, [ended]));
            look(&set, &mut meter, now, 1);
        }
        let newcomer = arrive(&mut set, now, 1000 + round.unsigned_abs(), 1);
        look(&set, &mut meter, now, 0);
        assert_eq!(newcomer.len(), 1, "round {round}");
        finish(&mut set, now + 10, newcomer);
        look(&set, &mut meter, now + 10, 1);
    }
    assert_eq!((set.waiting(), slow.len()), (83, 6));
    let advice = meter.advise(at(now + 10), &set);
    let expected = advice.expected_wait.unwrap().as_secs();
    assert!((75..=100).contains(&expected), "84 at one a second, not at eleven: {advice:?}");
    assert!(advice.retry_after >= advice.expected_wait.unwrap());
}

#[test]
fn pf_10_quick_requests_use_all_seats() {
    let mut set = set(10, FlowLimits::AUTO);
    let mut running = arrive(&mut set, 0, QUICK, 30);
    assert_eq!(running.len(), 8, "nothing is known yet");
    let started = finish(&mut set, 10, running.drain(..1));
    assert_eq!(started.len(), 3, "the seat that became free, and those that were kept");
    running.extend(started);
    assert_eq!((running.len(), set.kept_seats()), (10, 0));
    // They hang: whoever comes back later waits for that, but no further seat goes to them once one is free.
    let outlook = set.outlook(QUICK, Duration::from_millis(10)).unwrap();
    assert_eq!(outlook.kept, 0);
    finish(&mut set, 4000, running.drain(..1));
    assert_eq!(set.seats_in_use(), 9, "the flow has become slow");
    assert_eq!(set.outlook(QUICK, Duration::from_millis(10)).unwrap().kept, 2);
}

#[test]
fn pf_10_a_slow_flow_is_limited_in_a_level_that_knows_quick_requests_only() {
    let mut set = set(10, FlowLimits::AUTO);
    for round in 0..100 {
        let running = arrive(&mut set, 10 * round, QUICK, 4);
        assert_eq!(running.len(), 4);
        finish(&mut set, 10 * round + 9, running);
    }
    assert_eq!(arrive(&mut set, 1000, SLOW, 30).len(), 8);
    assert_eq!(arrive(&mut set, 1001, QUICK, 1).len(), 1);
}

#[test]
fn pf_10_how_many_seats_are_kept_depends_on_the_seats_and_on_the_rule() {
    for (seats, kept) in [(1, 0), (3, 0), (4, 1), (7, 1), (8, 2), (100, 25)] {
        let mut auto = set(seats, FlowLimits::AUTO);
        assert_eq!(i64::try_from(arrive(&mut auto, 0, SLOW, 200).len()), Ok(seats - kept), "{seats} seats");
    }
    let rules =
        [(SeatShare::Seats(0), 10), (SeatShare::Seats(4), 6), (SeatShare::Percent(15), 8), (SeatShare::Seats(99), 1)];
    for (share, started) in rules {
        let limits = FlowLimits { newcomer_seats: NewcomerSeats::Share(share), ..FlowLimits::NONE };
        let mut set = set(10, limits);
        assert_eq!(arrive(&mut set, 0, SLOW, 30).len(), started, "{share}");
        assert_eq!(arrive(&mut set, 0, QUICK, 1).len(), usize::from(started < 10), "{share}");
    }
}

#[test]
fn pf_11_no_flow_holds_more_seats_than_it_may() {
    for share in [SeatShare::Seats(3), SeatShare::Percent(30)] {
        let limits = FlowLimits { flow_seats_max: Some(share), ..FlowLimits::NONE };
        let mut set = set(10, limits);
        let mut running = arrive(&mut set, 0, SLOW, 20);
        assert_eq!(running.len(), 3);
        assert_eq!(arrive(&mut set, 0, QUICK, 20).len(), 3, "others may hold as many");
        assert_eq!(finish(&mut set, 5, running.drain(..1)).len(), 1, "its next request gets the seat");
        assert!(set.outlook(SLOW, Duration::ZERO).unwrap().is_at_flow_limit);
        // A request that is wider runs alone in its flow.
        let wide = set.arrive(at(6), Flow::from(7), WorkEstimate::seats(4), (), &mut NoEffects);
        assert!(matches!(wide, Arrival::Started { .. }));
    }
}

#[test]
fn bm_3_the_rules_change_under_load() {
    let mut set = set(10, FlowLimits::AUTO);
    let running = arrive(&mut set, 0, SLOW, 30);
    let mut started = Vec::new();
    let note = &mut |id: RequestId, (): &mut ()| started.push(id);
    set.configure(at(1), config(10, FlowLimits::NONE), note);
    set.configure(
        at(2),
        config(10, FlowLimits { flow_seats_max: Some(SeatShare::Seats(5)), ..FlowLimits::AUTO }),
        note,
    );
    assert_eq!(started.len(), 2, "no seats are kept, and then again");
    assert_eq!((set.seats_in_use(), set.waiting()), (10, 20));
    assert_eq!(finish(&mut set, 3, running).len(), 3, "only five are left to the flow: two still run");
    assert_eq!((set.seats_in_use(), set.waiting()), (5, 17));
}
