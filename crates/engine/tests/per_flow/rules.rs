//! The rules of chapter 2, one by one.

use evenkeel_engine::queue_set::{
    Arrival, Mode, NoEffects, Phase, QueueSet, QueueSetConfig, QueuingDiscipline, RequestId,
};
use evenkeel_engine::time::{Instant, MILLISECOND, SECOND};
use evenkeel_engine::{Flow, WorkEstimate};

use crate::driver::Noted;
use crate::plain::Happened;

type Set = QueueSet<usize>;

fn at(ms: i64) -> Instant {
    Instant::from_nanos(ms * MILLISECOND)
}

fn set(seats: i64, (queues, hand, length): (i64, i64, i64)) -> Set {
    let mode = Mode::queue(queues, hand, length).unwrap().with_discipline(QueuingDiscipline::PerFlow);
    QueueSet::new(QueueSetConfig { mode, concurrency_limit: seats }, at(0))
}

fn arrive(set: &mut Set, now: Instant, flow: u64, seats: u32, request: usize) -> (Arrival<usize>, Noted) {
    let mut noted = Noted::default();
    (set.arrive(now, Flow::from(flow), WorkEstimate::seats(seats), request, &mut noted), noted)
}

fn id(arrival: &Arrival<usize>) -> RequestId {
    match arrival {
        Arrival::Started { id, .. } | Arrival::Waiting { id, .. } => *id,
        Arrival::Rejected { .. } => panic!("rejected"),
    }
}

/// Ends a request, and tells which ones start.
fn finish(set: &mut Set, now: Instant, id: RequestId) -> Vec<(usize, RequestId)> {
    let mut noted = Noted::default();
    set.finish(now, id, &mut noted).expect("it runs");
    noted
        .0
        .into_iter()
        .map(|(happened, id)| match happened {
            Happened::Started(request) => (request, id),
            Happened::Rejected(request) => panic!("{request} is rejected"),
        })
        .collect()
}

/// Keeps 40 requests of each flow under way for a while; tells the seat-time of each flow in milliseconds.
fn compete(set: &mut Set, start: i64, ms: i64, flows: &[(u64, u16, i64)]) -> Vec<i64> {
    let mut running = Vec::new();
    let flow_of = |index: usize| Flow::from(flows[index].0).with_weight(flows[index].1);
    for round in 0..40 {
        for (index, flow) in flows.iter().enumerate() {
            let arrival = set.arrive(at(start), flow_of(index), WorkEstimate::ONE_SEAT, index, &mut NoEffects);
            match arrival {
                Arrival::Started { id, .. } => running.push((start + flow.2 + round, index, id, start)),
                Arrival::Waiting { .. } => {}
                Arrival::Rejected { .. } => panic!("rejected"),
            }
        }
    }
    let mut served = vec![0; flows.len()];
    loop {
        running.sort_unstable();
        let (now, index, id, started) = running.remove(0);
        if now > start + ms {
            let requests = set.requests().filter(|request| request.phase == Phase::Waiting).map(|request| request.id);
            for waiting in requests.collect::<Vec<_>>() {
                set.cancel(at(now), waiting, &mut NoEffects);
            }
            for id in running.into_iter().map(|(_, _, id, _)| id).chain([id]) {
                set.finish(at(now), id, &mut NoEffects);
            }
            return served;
        }
        served[index] += now - started;
        let mut begun = |id: RequestId, index: &mut usize| running.push((now + flows[*index].2, *index, id, now));
        set.finish(at(now), id, &mut begun).expect("it runs");
        set.arrive(at(now), flow_of(index), WorkEstimate::ONE_SEAT, index, &mut begun);
    }
}

#[test]
fn pf_2_a_burst_of_one_flow_takes_turns_with_others() {
    let mut set = set(1, (64, 8, 50));
    let first = id(&arrive(&mut set, at(0), 1, 1, 0).0);
    for request in 1..4 {
        arrive(&mut set, at(0), 1, 1, request);
    }
    for request in 11..14 {
        arrive(&mut set, at(1), 2, 1, request);
    }
    let (mut order, mut now, mut running) = (Vec::new(), 10, first);
    while let Some((request, id)) = finish(&mut set, at(now), running).pop() {
        order.push(request);
        (running, now) = (id, now + 10);
    }
    assert_eq!(order, [11, 1, 12, 2, 13, 3]);
}

#[test]
fn pf_2_requests_that_run_for_long_are_charged_while_they_run() {
    // Flow 1 holds a seat for a second. Of the two others, only the time since then counts.
    let mut set = set(2, (64, 8, 50));
    let long = id(&arrive(&mut set, at(0), 1, 1, 0).0);
    let short = id(&arrive(&mut set, at(0), 2, 1, 1).0);
    for request in 2..6 {
        arrive(&mut set, at(0), 1, 1, request);
        arrive(&mut set, at(0), 2, 1, request + 10);
    }
    let (mut running, mut order) = (short, Vec::new());
    for now in 1..5 {
        let (request, id) = finish(&mut set, at(100 * now), running).pop().unwrap();
        order.push(request);
        running = id;
    }
    assert_eq!(order, [2, 12, 13, 14], "after the first tie, flow 1 has run for as long and longer");
    assert!(set.request(long).is_some());
}

#[test]
fn pf_2_shares_follow_the_weights() {
    let mut set = set(26, (64, 8, 50));
    let served = compete(&mut set, 0, 60_000, &[(1, 1, 10), (2, 2, 10), (3, 4, 10), (4, 8, 10)]);
    let all: i64 = served.iter().sum();
    for (served, weight) in served.iter().zip([1, 2, 4, 8]) {
        let deviation = (served * 15 * 1000 / (all * weight) - 1000).abs();
        assert!(deviation <= 5, "weight {weight}: {deviation} per mille from its share");
    }
}

#[test]
fn pf_5_nobody_is_punished_for_what_others_did_not_want() {
    let mut set = set(20, (64, 8, 50));
    // Flow 1 is alone for ten minutes and takes 10 of the 20 seats.
    for round in 0..600 {
        let ids: Vec<_> = (0..10).map(|request| id(&arrive(&mut set, at(round * 1000), 1, 1, request).0)).collect();
        for id in ids {
            assert!(finish(&mut set, at(round * 1000 + 1000), id).is_empty());
        }
    }
    let served = compete(&mut set, 600_000, 2000, &[(1, 1, 10), (2, 1, 10)]);
    assert!((served[0] - served[1]).abs() * 100 <= served[0], "{served:?}: the same for both");
}

#[test]
fn pf_5_a_flow_with_a_request_that_runs_for_long_does_not_save_up() {
    let mut set = set(20, (64, 8, 50));
    let long = id(&arrive(&mut set, at(0), 1, 1, 0).0);
    // For a minute, flow 1 has one seat and flow 2 all others.
    compete(&mut set, 0, 60_000, &[(2, 1, 10)]);
    let served = compete(&mut set, 60_000, 2000, &[(1, 1, 10), (2, 1, 10)]);
    assert!(served[0] < 2 * served[1], "{served:?}: flow 1 does not take everything");
    assert!(set.request(long).is_some());
}

#[test]
fn pf_6_flows_are_forgotten() {
    let mut set = set(4, (64, 8, 50));
    for flow in 0..10_000 {
        let now = i64::try_from(flow).unwrap();
        let request = id(&arrive(&mut set, at(now), flow, 1, 0).0);
        finish(&mut set, at(now + 1), request);
    }
    assert!(set.queues().len() <= 4, "one flow at a time: {}", set.queues().len());

    // Somebody waits all the time, so that the virtual time stands still for as long as new flows come.
    let mut running: Vec<_> = (0..4).map(|flow| id(&arrive(&mut set, at(20_000), 1 << 40 | flow, 1, 0).0)).collect();
    for flow in 0..50_000_u64 {
        let now = 20_001 + i64::try_from(flow).unwrap();
        arrive(&mut set, at(now), 1 << 41 | flow, 1, 0);
        let started = finish(&mut set, at(now), running.remove(0));
        running.extend(started.into_iter().map(|(_, id)| id));
    }
    assert!(set.queues().len() < 1000, "{} flows are remembered", set.queues().len());
}

#[test]
fn pf_7_the_youngest_request_of_the_heaviest_flow_gives_way() {
    // The level holds 8, a flow 6.
    let mut set = set(1, (4, 3, 2));
    arrive(&mut set, at(0), 1, 1, 0);
    (1..7).for_each(|request| drop(arrive(&mut set, at(1), 1, 1, request)));
    let (seventh, _) = arrive(&mut set, at(2), 1, 1, 7);
    assert!(matches!(seventh, Arrival::Rejected { payload: 7, .. }), "a flow holds no more than six");
    (10..12).for_each(|request| drop(arrive(&mut set, at(3), 2, 1, request)));
    assert_eq!(set.waiting(), 8);

    for (small, victim) in [(20, 6), (21, 5), (22, 4)] {
        let (arrival, noted) = arrive(&mut set, at(4), small, 1, usize::try_from(small).unwrap());
        assert!(matches!(arrival, Arrival::Waiting { .. }), "a small flow is let in");
        assert_eq!(noted.0.iter().map(|(happened, _)| *happened).collect::<Vec<_>>(), [Happened::Rejected(victim)]);
        assert_eq!(set.waiting(), 8);
    }
    // Three wait of flow 1: a third one of flow 2 would make it as heavy.
    let (arrival, noted) = arrive(&mut set, at(5), 2, 1, 12);
    assert!(matches!(arrival, Arrival::Rejected { payload: 12, .. }) && noted.0.is_empty());
    assert_eq!(set.counters().rejected, 5);
}

#[test]
fn pf_8_seats_are_kept_for_a_wide_request_whose_turn_has_come() {
    let mut set = set(4, (64, 8, 50));
    let running: Vec<_> = (0..4).map(|request| id(&arrive(&mut set, at(0), 1, 1, request).0)).collect();
    let wide = arrive(&mut set, at(1), 2, 3, 10).0;
    (20..30).for_each(|request| drop(arrive(&mut set, at(2), 1, 1, request)));
    // Each end frees a seat; narrow requests could start, and do not.
    assert!(finish(&mut set, at(10), running[0]).is_empty());
    let (narrow, _) = arrive(&mut set, at(11), 3, 1, 40);
    assert!(matches!(narrow, Arrival::Waiting { .. }), "a new flow does not overtake it either");
    assert!(finish(&mut set, at(12), running[1]).is_empty());
    let started = finish(&mut set, at(14), running[2]);
    assert_eq!(started.first(), Some(&(10, id(&wide))));
}

#[test]
fn pf_8_a_wide_request_that_gives_up_frees_its_turn() {
    let mut set = set(4, (64, 8, 50));
    let running: Vec<_> = (0..4).map(|request| id(&arrive(&mut set, at(0), 1, 1, request).0)).collect();
    let wide = arrive(&mut set, at(1), 2, 4, 10).0;
    (20..30).for_each(|request| drop(arrive(&mut set, at(2), 1, 1, request)));
    assert!(finish(&mut set, at(10), running[0]).is_empty());
    assert_eq!(set.seats_in_use(), 3);
    let mut noted = Noted::default();
    assert_eq!(set.cancel(at(11), id(&wide), &mut noted), Some(10));
    assert_eq!(noted.0.first().map(|(happened, _)| *happened), Some(Happened::Started(20)), "another starts at once");
    assert_eq!(set.seats_in_use(), 4);
}

#[test]
fn pf_9_a_clock_that_goes_back_does_no_harm() {
    let mut set = set(2, (64, 8, 50));
    let mut running = Vec::new();
    for step in 0..2000_i64 {
        let now = Instant::from_nanos(if step % 3 == 0 { -step * SECOND } else { step * SECOND });
        let (arrival, noted) = arrive(&mut set, now, step.unsigned_abs() % 5, 1, 0);
        let is_waiting = matches!(arrival, Arrival::Waiting { .. } | Arrival::Started { .. });
        running.extend(noted.0.into_iter().map(|(_, id)| id));
        if step % 2 == 0 && !running.is_empty() {
            running.extend(finish(&mut set, now, running[0]).into_iter().map(|(_, id)| id));
            running.remove(0);
        }
        assert!(is_waiting || set.waiting() >= 400);
        assert_eq!(set.seats_in_use(), i64::try_from(running.len()).unwrap());
    }
}
