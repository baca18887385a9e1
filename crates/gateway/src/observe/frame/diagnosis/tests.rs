//! Diagnoses of made-up frames.

use super::*;
use crate::observe::frame::{Delay, Event, EventKind, Flow, Level, OutCause, Percentiles, Queuing, Server, Upstream};

fn level(name: &str, nominal: i64, in_use: i64) -> Level {
    Level { name: name.to_owned(), nominal, floor: nominal, limit: 600, current: nominal, in_use, ..Level::default() }
}

fn flow(distinguisher: &str, seats: f64) -> Flow {
    #[expect(clippy::cast_possible_truncation, reason = "a small whole number")]
    let held = seats as i64;
    Flow { schema: "tenants".to_owned(), distinguisher: distinguisher.to_owned(), seats, held, ..Flow::default() }
}

fn delay(waiter: usize, by: usize, share: f64) -> Delay {
    Delay { waiter, by: Some(by), seconds: share, share }
}

fn frame(levels: Vec<Level>) -> Frame {
    let in_use = levels.iter().map(|level| level.in_use).sum();
    let mut frame = Frame::new(1_800_000_180_000, 1000);
    frame.server = Server { concurrency: 600, in_use, borrowing: "immediate".to_owned(), ..Server::default() };
    frame.levels = levels;
    frame
}

fn busy() -> Level {
    Level {
        wait_ms: Some(Percentiles { p50: 20.0, p99: 80.0 }),
        waiting: 12,
        flows: vec![flow("batch-7", 190.0), flow("alice", 3.0)],
        delays: vec![delay(1, 0, 0.5), delay(0, 0, 0.1), delay(1, 0, 0.21)],
        ..level("workload-low", 245, 245)
    }
}

fn upstream(name: &str, now: f64, before: f64, changed_ms: Option<u64>) -> Upstream {
    Upstream {
        name: name.to_owned(),
        latency_ms: Some(now),
        latency_before_ms: Some(before),
        changed_ms,
        ..Upstream::default()
    }
}

/// 12:03 UTC on some day.
const NOON: u64 = (12 * 60 + 3) * 60_000 + 86_400_000 * 20_000;

/// A frame in which requests wait, and in which something else may be wrong too.
fn with(change: impl Fn(&mut Frame)) -> Frame {
    let mut frame = frame(vec![busy(), level("workload-high", 120, 0)]);
    change(&mut frame);
    frame
}

fn slow(frame: &mut Frame) {
    frame.upstreams = vec![upstream("a:1", 72.0, 12.0, Some(NOON))];
}

fn check(cases: Vec<(Frame, DiagnosisState, &str)>) {
    for (frame, state, text) in cases {
        let found = diagnose(&[frame]);
        assert_eq!((found.text.as_str(), found.state), (text, state));
    }
}

#[test]
fn one_sentence_says_who_waits_and_why() {
    check(vec![
        (
            with(|_| {}),
            DiagnosisState::Slow,
            "workload-low waits 80 ms at p99: 71 % of it behind batch-7, which holds 190 of 245 seats; 120 seats of other \
             levels are idle and not lendable",
        ),
        (
            with(|frame| frame.levels[1].floor = 20),
            DiagnosisState::Slow,
            "workload-low waits 80 ms at p99: 71 % of it behind batch-7, which holds 190 of 245 seats; 20 seats of other \
             levels are idle and not lendable",
        ),
        (
            with(|frame| {
                frame.levels[1].floor = 20;
                frame.server.borrowing = "periodic".to_owned();
            }),
            DiagnosisState::Slow,
            "workload-low waits 80 ms at p99: 71 % of it behind batch-7, which holds 190 of 245 seats; 100 idle seats of \
             other levels are lent when seats are divided next, every ten seconds",
        ),
        (
            with(|frame| {
                frame.levels[1].floor = 20;
                frame.levels[0].limit = 245;
            }),
            DiagnosisState::Slow,
            "workload-low waits 80 ms at p99: 71 % of it behind batch-7, which holds 190 of 245 seats; it may not borrow, \
             although 120 seats of other levels are idle",
        ),
        (
            with(|frame| {
                frame.levels[0].delays = vec![delay(0, 0, 0.9)];
                frame.levels[1].in_use = 120;
            }),
            DiagnosisState::Slow,
            "workload-low waits 80 ms at p99: 90 % of it is batch-7 behind its own requests, which hold 190 of 245 seats",
        ),
        (
            with(|frame| {
                let text = "all levels together have 600 → 300 seats".to_owned();
                let event = Event { time_ms: NOON, kind: EventKind::LimitChanged, text, seats: Some([600, 300]) };
                (frame.time_ms, frame.events) = (NOON + 60_000, vec![event]);
                // The mean of the last minute is of a time with more seats.
                (frame.levels[0].current, frame.levels[0].in_use) = (100, 100);
                frame.levels[0].flows.iter_mut().for_each(|flow| flow.held = 0);
                frame.levels[1].in_use = 120;
            }),
            DiagnosisState::Slow,
            "workload-low waits 80 ms at p99: 71 % of it behind batch-7, which had 100 of 100 seats on average in the last \
             minute; there are 600 → 300 seats since 12:03 UTC",
        ),
        (
            with(|frame| {
                frame.levels[0].delays.clear();
                frame.levels[0].rejected = [("queue-full".to_owned(), 120.0), ("time-out".to_owned(), 3.0)].into();
            }),
            DiagnosisState::Failing,
            "workload-low rejects 123 requests a second (queue-full): batch-7 holds 190 of 245 seats; 120 seats of other \
             levels are idle and not lendable",
        ),
        (
            with(|frame| {
                frame.levels[0].rejected = [("queue-full".to_owned(), 50.0)].into();
                (frame.levels[0].flows[0].rejected, frame.levels[0].flows[1].rejected) = (49.0, 1.0);
                frame.levels[1].in_use = 120;
            }),
            DiagnosisState::Well,
            "one client is limited as intended, the others are fine: batch-7 has 50 requests a second rejected \
             (queue-full) and holds 190 of 245 seats of workload-low",
        ),
        (
            with(|frame| {
                frame.levels[0].rejected = [("time-out".to_owned(), 5.0)].into();
                (frame.levels[0].flows[1].rejected, frame.levels[1].in_use) = (5.0, 120);
                (frame.levels[0].flows[1].queued, frame.levels[0].flows[1].queued_ms) = (3, 9000.0);
            }),
            DiagnosisState::Failing,
            "workload-low rejects 5 requests a second (time-out): all of them are from alice; 71 % of the waiting behind \
             batch-7, which holds 190 of 245 seats",
        ),
        (
            with(|frame| {
                // The flow that held the seats in the last minute is gone, and another one has them.
                (frame.levels[0].flows[0].held, frame.levels[0].flows[1].held) = (0, 240);
                frame.levels[1].in_use = 120;
            }),
            DiagnosisState::Slow,
            "workload-low waits 80 ms at p99: alice holds 240 of 245 seats",
        ),
    ]);
}

#[test]
fn upstreams_are_told_apart_from_flow_control() {
    check(vec![
        (
            with(slow),
            DiagnosisState::Slow,
            "not flow control: the upstream got six times slower at 12:03 UTC (12 ms → 72 ms at the mean), demand is \
             unchanged",
        ),
        (
            with(|frame| {
                slow(frame);
                (frame.server.demand, frame.server.demand_before) = (300.0, Some(100.0));
            }),
            DiagnosisState::Slow,
            "the upstream got six times slower at 12:03 UTC (12 ms → 72 ms at the mean) while demand grew threefold",
        ),
        (
            with(|frame| {
                slow(frame);
                (frame.server.demand, frame.server.demand_before) = (20.0, Some(100.0));
            }),
            DiagnosisState::Slow,
            "not flow control: the upstream got six times slower at 12:03 UTC (12 ms → 72 ms at the mean), demand has not \
             grown",
        ),
        (
            with(|frame| {
                slow(frame);
                frame.upstreams.push(upstream("b:2", 5.0, 4.0, None));
                frame.upstreams[0].latency_ms = Some(24.0);
            }),
            DiagnosisState::Slow,
            "not flow control: the upstream a:1 got twice as slow at 12:03 UTC (12 ms → 24 ms at the mean), demand is \
             unchanged",
        ),
        (
            with(|frame| {
                frame.upstreams = vec![upstream("a:1", 1.0, 1.0, None), upstream("b:2", 1.0, 1.0, None)];
                frame.upstreams[1].is_out = true;
            }),
            DiagnosisState::Failing,
            "not flow control: the upstream b:2 fails and gets no requests; 1 of 2 upstreams serve",
        ),
        (
            with(|frame| {
                let failing =
                    |name| Upstream { responses: 10.0, errors: 1.0, cut: 2.0, ..upstream(name, 1.0, 1.0, None) };
                frame.upstreams = vec![failing("a:1"), failing("b:2"), upstream("c:3", 1.0, 1.0, None)];
                frame.upstreams[0].out_cause = Some(OutCause::Check);
            }),
            DiagnosisState::Failing,
            "not flow control: 2 of 3 upstreams fail, b:2 closes connections before it has responded: 6 of 24 requests a \
             second fail",
        ),
        (
            with(|frame| {
                frame.server.upstream_failures = 40.0;
                frame.levels[0].dispatched = 90.0;
            }),
            DiagnosisState::Failing,
            "not flow control: upstreams fail 40 of 90 requests a second; the log says why",
        ),
        (
            with(|frame| frame.upstreams = vec![Upstream { is_out: true, ..upstream("a:1", 1.0, 1.0, None) }]),
            DiagnosisState::Failing,
            "not flow control: the upstream a:1 fails; the log says why",
        ),
    ]);
}

#[test]
fn all_is_well_if_nobody_waits_for_long() {
    check(vec![
        (
            frame(vec![level("a", 300, 12), level("b", 300, 0)]),
            DiagnosisState::Well,
            "all is well: 12 of 600 seats are in use, no request waits",
        ),
        (
            frame(vec![Level {
                wait_ms: Some(Percentiles { p50: 1.0, p99: 4.0 }),
                waiting: 3,
                ..level("a", 300, 300)
            }]),
            DiagnosisState::Well,
            "all is well: 300 of 600 seats are in use, 3 requests wait, not for long",
        ),
        (
            frame(vec![Level { queuing: Some(Queuing::Exempt), ..busy() }]),
            DiagnosisState::Well,
            "all is well: 245 of 600 seats are in use, 12 requests wait, not for long",
        ),
    ]);
}

/// How long a request waits is known when it starts. One that never does must not be overlooked.
#[test]
fn requests_that_never_start_are_not_well() {
    let stuck = frame(vec![Level { waiting: 12, delays: Vec::new(), wait_ms: None, ..busy() }]);
    let found = diagnose(&vec![stuck.clone(); 2]);
    assert_eq!(found.text, "all is well: 245 of 600 seats are in use, 12 requests wait");
    let found = diagnose(&vec![stuck.clone(); 5]);
    let text = "workload-low has started no request for 5.0 s, 12 wait: batch-7 holds 190 of 245 seats";
    assert_eq!((found.text.as_str(), found.state), (text, DiagnosisState::Slow));
    let started = frame(vec![Level { dispatched: 1.0, ..stuck.levels[0].clone() }]);
    assert_eq!(diagnose(&[vec![stuck; 5], vec![started]].concat()).state, DiagnosisState::Well);
}

#[test]
fn a_bad_second_is_remembered_for_ten() {
    let bad = frame(vec![busy()]);
    let good = frame(vec![level("workload-low", 245, 1)]);
    let mut frames = vec![bad];
    frames.resize(10, good.clone());
    let found = diagnose(&frames);
    assert_eq!((found.state, found.level.as_deref()), (DiagnosisState::Slow, Some("workload-low")));
    frames.push(good);
    assert_eq!(diagnose(&frames).state, DiagnosisState::Well);
    assert_eq!(diagnose(&[]), Diagnosis::default());
}
