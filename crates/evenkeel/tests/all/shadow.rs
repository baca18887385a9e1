//! The shadow: what it tells is what would have happened.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::division::Borrowing;
use evenkeel::request::{Arrived, FlowRequest};
use evenkeel::shadow::{ShadowReport, ShadowSettings};
use evenkeel::{Attributes, FlowControl, Permit, RequestInfo, User, WorkEstimate};

/// A request of the load: when it arrives, who sends it, for what, and how long it takes.
#[derive(Clone, Copy)]
struct Call {
    at: u64,
    user: u64,
    path: &'static str,
    service: u64,
    seats: u32,
}

/// One level for all.
const ONE: &str = "
levels:
  all: {share: 1, queue: 40, wait: 400ms}
match:
- {level: all}
";
/// Orders have a level of their own.
const TWO: &str = "
levels:
  orders: {share: 3, queue: 20, wait: 300ms}
  rest: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /orders/*, level: orders}
- {level: rest}
";
/// The same, and one lends its seats.
const LENDING: &str = "
levels:
  orders: {share: 3, queue: 20, wait: 300ms, lend: 50%}
  rest: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /orders/*, level: orders}
- {level: rest}
";
/// Some are limited by rates, and the rest has no queue.
const RATES: &str = "
levels:
  slow: {share: 1, wait: 300ms}
  rest: {share: 1, reject: true}
match:
- {path: /orders/*, level: slow, rate: '20/s;excess=reject'}
- {level: rest}
";

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Some seconds of load: bursts that are more than the service has seats for, and pauses. No two times are the same.
fn load(mut seed: u64) -> Vec<Call> {
    let (mut at, mut calls) = (1_000_000, Vec::new());
    for number in 0..3000 {
        let pause = if number % 500 < 300 { 2_000_000 } else { 9_000_000 };
        at += random(&mut seed) % pause + 1;
        let user = if random(&mut seed).is_multiple_of(3) { 0 } else { random(&mut seed) % 7 };
        let path = if random(&mut seed).is_multiple_of(2) { "/orders/7" } else { "/reports" };
        let service = 1_000_003 + random(&mut seed) % 40_000_000;
        let seats = if random(&mut seed).is_multiple_of(10) { 2 } else { 1 };
        calls.push(Call { at, user, path, service, seats });
    }
    calls
}

/// The same for half a minute.
fn long_load(seed: u64) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for part in 0..4 {
        let begin = calls.last().map_or(0, |last| last.at);
        calls.extend(load(seed + 100 * part).into_iter().map(|call| Call { at: begin + call.at, ..call }));
    }
    calls
}

/// A flow control and the requests that it has, on a clock of its own.
struct Stage {
    flow: FlowControl,
    clock: ManualClock,
    now: u64,
    waiting: Vec<(u64, Arrived)>,
    running: BinaryHeap<Reverse<(u64, usize)>>,
    permits: Vec<Option<Permit>>,
    due: u64,
}

impl Stage {
    fn new(objects: &str, seats: u32, borrowing: Borrowing) -> Self {
        let clock = ManualClock::new();
        let flow = FlowControl::builder().server_concurrency(seats).borrowing(borrowing).objects(objects);
        let flow = flow.manual_clock(clock.clone()).build();
        Self { flow, clock, now: 0, waiting: Vec::new(), running: BinaryHeap::new(), permits: Vec::new(), due: 0 }
    }

    fn go_to(&mut self, at: u64) {
        self.clock.advance(Duration::from_nanos(at - self.now));
        self.now = at;
    }

    /// Lets time pass: requests end and start, and the flow control does what is due.
    fn run_until(&mut self, until: u64) {
        loop {
            let end = self.running.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            let next = end.min(self.due);
            if next > until {
                break;
            }
            self.go_to(next.max(self.now));
            if end == next {
                let Some(Reverse((_, place))) = self.running.pop() else { break };
                drop(self.permits[place].take());
            }
            self.look();
        }
        self.go_to(until);
    }

    /// Starts those that may start.
    fn look(&mut self) {
        self.due = self.now.saturating_add(u64::try_from(self.flow.tick().as_nanos()).unwrap_or(u64::MAX).max(1));
        for (service, mut arrived) in std::mem::take(&mut self.waiting) {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            match std::pin::Pin::new(&mut arrived).poll(&mut context) {
                std::task::Poll::Pending => self.waiting.push((service, arrived)),
                std::task::Poll::Ready(Err(_)) => {}
                std::task::Poll::Ready(Ok(permit)) => {
                    self.running.push(Reverse((self.now + service, self.permits.len())));
                    self.permits.push(Some(permit));
                }
            }
        }
    }

    fn arrive(&mut self, call: &Call) {
        self.run_until(call.at);
        let user = User::new(format!("user-{}", call.user), [""; 0]);
        let request = RequestInfo::for_path("get", call.path);
        let attributes = Attributes { user: &user, request: &request };
        let arrived = self.flow.arrive(attributes, WorkEstimate::seats(call.seats));
        self.waiting.push((call.service, arrived));
        self.look();
    }

    fn report(&mut self) -> ShadowReport {
        // Longer than any request waits and takes, and than the shadow may be behind.
        self.run_until(self.now + 20_000_000_000);
        assert!(self.waiting.is_empty() && self.running.is_empty());
        self.flow.shadow_report().unwrap()
    }
}

/// What a load gets under these objects, with those as a shadow.
fn run(calls: &[Call], real: (&str, u32, Borrowing), shadow: (&str, u32, Borrowing)) -> ShadowReport {
    let mut stage = Stage::new(real.0, real.1, real.2);
    let settings = ShadowSettings { concurrency: Some(shadow.1), borrowing: Some(shadow.2) };
    stage.flow.shadow_with(shadow.0, settings).unwrap();
    for (number, call) in calls.iter().enumerate() {
        stage.arrive(call);
        if number % 700 == 0 {
            // Looks in between change nothing.
            stage.flow.shadow_report().unwrap();
        }
    }
    let report = stage.report();
    assert_eq!((report.requests, report.dropped, report.pending), (calls.len() as u64, 0, 0));
    report
}

fn real_of(report: &ShadowReport) -> (u64, [f64; 2], u64) {
    let (rejected, wait) = (report.totals.rejected.real, report.totals.wait.real);
    (rejected, [wait.p50, wait.p99], wait.samples)
}

fn shadow_of(report: &ShadowReport) -> (u64, [f64; 2], u64) {
    let (rejected, wait) = (report.totals.rejected.shadow, report.totals.wait.shadow);
    (rejected, [wait.p50, wait.p99], wait.samples)
}

#[test]
fn sh_1_under_the_same_configuration_the_shadow_decides_the_same() {
    for borrowing in [Borrowing::Immediate, Borrowing::Periodic] {
        for objects in [ONE, TWO, RATES, LENDING] {
            for seed in 1..4 {
                let calls = load(seed);
                let report = run(&calls, (objects, 9, borrowing), (objects, 9, borrowing));
                assert_eq!(real_of(&report), shadow_of(&report), "seed {seed}, {borrowing:?}{objects}");
                assert_eq!(report.moved, []);
                for flow in &report.flows {
                    assert_eq!(flow.figures.rejected.real, flow.figures.rejected.shadow, "{}", flow.name());
                    assert_eq!(flow.level.real, flow.level.shadow);
                }
            }
        }
    }
}

/// Many levels that borrow from each other, and requests of up to five seats.
#[test]
fn sh_1_of_requests_of_several_seats_and_lending_levels_both_decide_the_same() {
    let objects = "
levels:
  orders: {share: 4, queue: 20, wait: 300ms, lend: 75%}
  reports: {share: 3, queue: 20, wait: 250ms, lend: 100%, borrow: 50%}
  rest: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /orders/*, level: orders}
- {user: user-0, level: reports}
- {level: rest}
";
    for borrowing in [Borrowing::Immediate, Borrowing::Periodic] {
        for seed in 1..6 {
            let mut calls = load(seed);
            let mut random_seats = seed;
            for call in &mut calls {
                call.seats = 1 + u32::try_from(random(&mut random_seats) % 5).unwrap();
            }
            let same = (objects, 23, borrowing);
            let report = run(&calls, same, same);
            assert!(report.totals.rejected.real > 20 && report.totals.wait.real.p99 > 20.0, "{report:?}");
            assert_eq!(real_of(&report), shadow_of(&report), "seed {seed}, {borrowing:?}");
        }
    }
}

/// A shadow divides its seats when reality does, whenever it began (CL-11).
#[test]
fn sh_1_a_shadow_that_begins_later_divides_seats_at_the_same_times() {
    for begins_at in [3_700_000_000, 17_300_000_001] {
        let mut stage = Stage::new(LENDING, 9, Borrowing::Periodic);
        stage.run_until(begins_at);
        let settings = ShadowSettings { concurrency: Some(9), borrowing: Some(Borrowing::Periodic) };
        stage.flow.shadow_with(LENDING, settings).unwrap();
        // Half a minute of load, so that seats are divided three times.
        for round in 0..3 {
            for call in load(begins_at + round) {
                stage.arrive(&Call { at: begins_at + round * 12_000_000_000 + call.at, ..call });
            }
            // The rings of the shadow do not have room for all of them.
            stage.flow.shadow_report().unwrap();
        }
        let report = stage.report();
        assert!(report.totals.rejected.real > 20, "{report:?}");
        assert_eq!(real_of(&report), shadow_of(&report), "begins at {begins_at}");
    }
}

/// What the shadow predicts is what happens when its configuration governs: service times do not depend on the load here, so that both
/// are the same to the last request, unless requests were rejected of which nobody knows how long they would have taken.
#[test]
fn sh_1_what_the_shadow_predicts_happens() {
    let borrowing = Borrowing::Immediate;
    for (number, (real, shadow)) in
        [((ONE, 12), (TWO, 12)), ((ONE, 12), (ONE, 7)), ((TWO, 12), (ONE, 15))].into_iter().enumerate()
    {
        for seed in 1..4 {
            let calls = long_load(seed);
            let (real, shadow) = ((real.0, real.1, borrowing), (shadow.0, shadow.1, borrowing));
            let predicted = run(&calls, real, shadow);
            let happened = run(&calls, shadow, shadow);
            let (one, other) = (shadow_of(&predicted), real_of(&happened));
            // Those that were rejected in reality have the expected time, and all others their own.
            if predicted.totals.rejected.real == 0 {
                assert_eq!(one, other, "seed {seed}");
                continue;
            }
            println!(
                "change {number}, seed {seed}: rejected {}, predicted {}, happened {}; p99 {:.1}, predicted {:.1}, happened {:.1}",
                predicted.totals.rejected.real, one.0, other.0, predicted.totals.wait.real.p99, one.1[1], other.1[1]
            );
            let rejected_off = one.0.abs_diff(other.0) * 100;
            assert!(rejected_off <= other.0.max(50) * 15, "change {number}, seed {seed}: {one:?} {other:?}");
            let p99 = other.1[1];
            assert!((one.1[1] - p99).abs() <= 0.15 * p99.max(10.0), "change {number}, seed {seed}: {one:?} {other:?}");
        }
    }
}

#[test]
fn sh_3_the_report_tells_flows_and_levels_apart() {
    let report = run(&load(5), (ONE, 9, Borrowing::Immediate), (TWO, 9, Borrowing::Immediate));
    let moved: u64 = report.moved.iter().map(|moved| moved.requests).sum();
    assert_eq!(moved, 3000);
    let mut to: Vec<_> = report.moved.iter().map(|moved| (&*moved.from, &*moved.to)).collect();
    to.sort_unstable();
    assert_eq!(to, [("all", "orders"), ("all", "rest")]);
    // Seven users, each in both levels of the shadow.
    assert_eq!(report.flows.len(), 14);
    assert_eq!(report.flows.iter().map(|flow| flow.requests).sum::<u64>(), 3000);
    assert!(report.flows.iter().all(|flow| flow.flow.starts_with("user-") && flow.level.real == "all"));
    assert!(report.summary.starts_with("Under the new configuration "), "{}", report.summary);
    assert!(report.caveat.contains("Service times are those of reality"));
}

#[test]
fn sh_2_a_shadow_that_is_too_slow_says_so_and_goes_on() {
    let mut stage = Stage::new(ONE, 1000, Borrowing::Immediate);
    stage.flow.shadow(ONE).unwrap();
    let call = |at| Call { at, user: 1, path: "/", service: 1_000, seats: 1 };
    // Nobody looks, and the records of the first are overwritten.
    (1..20_001).for_each(|n| stage.arrive(&call(n * 10_000)));
    let report = stage.flow.shadow_report().unwrap();
    assert_eq!((report.requests, report.dropped >= 20_000, report.dropped_seconds), (0, true, 1), "{}", report.summary);
    // It happens again in the same second, which counts once.
    (20_001..40_001).for_each(|n| stage.arrive(&call(n * 10_000)));
    let report = stage.flow.shadow_report().unwrap();
    assert_eq!((report.requests, report.dropped >= 40_000, report.dropped_seconds), (0, true, 1), "{}", report.summary);
    // What comes later than a second after that counts again.
    (0..100_u64).for_each(|n| stage.arrive(&call(3_000_000_000 + n * 10_000)));
    let report = stage.report();
    assert_eq!((report.requests, report.totals.wait.shadow.samples), (100, 100));
    assert!(report.summary.contains("requests are missing in the figures"), "{}", report.summary);
}

#[test]
fn sh_1_clients_that_leave_leave_the_shadow_too() {
    let mut stage = Stage::new(ONE, 1, Borrowing::Immediate);
    stage.flow.shadow(ONE).unwrap();
    let call = |at, service| Call { at, user: 1, path: "/", service, seats: 1 };
    stage.arrive(&call(1_000, 90_000_000));
    stage.arrive(&call(2_000, 1_000));
    stage.run_until(50_000_000);
    stage.waiting.clear();
    let report = stage.report();
    assert_eq!(report.requests, 2);
    assert_eq!(real_of(&report), (0, [0.0, 0.0], 1));
    assert_eq!(shadow_of(&report), (0, [0.0, 0.0], 1));
}

#[test]
fn requests_that_take_longer_than_the_shadow_waits_end_when_it_is_known() {
    let mut stage = Stage::new(ONE, 2, Borrowing::Immediate);
    stage.flow.shadow_with(ONE, ShadowSettings { concurrency: Some(1), ..ShadowSettings::default() }).unwrap();
    let call = |at, service| Call { at, user: 1, path: "/", service, seats: 1 };
    stage.arrive(&call(1_000, 60_000_000_000));
    stage.arrive(&call(2_000, 1_000_000));
    stage.run_until(40_000_000_000);
    let report = stage.flow.shadow_report().unwrap();
    // The shadow has one seat, and the first request has it for longer than the second one waits.
    assert_eq!((report.requests, report.totals.rejected.real, report.totals.rejected.shadow), (2, 0, 1));
    stage.run_until(61_000_000_000);
    stage.arrive(&call(62_000_000_000, 1_000_000));
    let report = stage.report();
    assert_eq!((report.requests, shadow_of(&report).2, real_of(&report).2), (3, 2, 3));
}

#[test]
fn requests_that_only_the_shadow_sees_wait_there_and_nowhere_else() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency(9).manual_clock(clock.clone()).objects(ONE).build();
    let (user, info) = (User::new("alice", [""; 0]), RequestInfo::for_path("get", "/orders/7"));
    let request = FlowRequest::new(Attributes { user: &user, request: &info });
    assert!(flow.observe(&request).is_none(), "there is no shadow");
    flow.shadow_with(TWO, ShadowSettings { concurrency: Some(2), ..ShadowSettings::default() }).unwrap();
    // Four at a time, and the shadow's level has two seats.
    for _ in 0..10 {
        let observed: Vec<_> = (0..4).map(|_| flow.observe(&request).unwrap()).collect();
        clock.advance(Duration::from_millis(20));
        drop(observed);
        clock.advance(Duration::from_millis(80));
    }
    clock.advance(Duration::from_secs(1));
    let report = flow.shadow_report().unwrap();
    // One of the four finds two of its client in the queue, which is as many as it may have there.
    assert_eq!((report.requests, shadow_of(&report).0, shadow_of(&report).2), (40, 10, 30));
    assert_eq!((real_of(&report).0, real_of(&report).2, report.totals.wait.real.p99), (0, 40, 0.0));
    assert!((19.0..=61.0).contains(&report.totals.wait.shadow.p99), "{:?}", report.totals.wait);
    assert_eq!((&*report.moved[0].from, &*report.moved[0].to), ("all", "orders"));
    assert_eq!(report.flows[0].flow, "alice");
    assert!(flow.status().iter().all(|level| level.executing == 0));
}

/// Threads and levels that come and go leave room for others: the shadow has a bounded number of rings.
#[test]
fn sh_2_requests_of_many_short_threads_and_levels_are_not_missed() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency(9).manual_clock(clock.clone()).objects(ONE).build();
    flow.shadow(ONE).unwrap();
    for number in 0..300 {
        let level = format!("level-{}", number % 3);
        let objects = format!("{{levels: {{{level}: {{share: 1}}}}, match: [{{level: {level}}}]}}");
        flow.apply(objects.as_str()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (user, request) = (User::new("alice", [""; 0]), RequestInfo::for_path("get", "/orders"));
                drop(flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT));
            });
        });
        clock.advance(Duration::from_millis(10));
        flow.tick();
    }
    clock.advance(Duration::from_secs(1));
    let report = flow.shadow_report().unwrap();
    assert_eq!((report.requests, report.dropped), (300, 0), "{}", report.summary);
    // Levels have the same index one after the other, and each has its own name.
    for level in ["level-0", "level-1", "level-2"] {
        let moved: Vec<_> = report.moved.iter().filter(|moved| moved.from == level).collect();
        assert!(moved.len() == 1 && moved[0].requests > 1 && moved[0].to == "all", "{:?}", report.moved);
    }
}

#[test]
fn a_shadow_ends_and_begins_again_from_nothing() {
    let mut stage = Stage::new(ONE, 9, Borrowing::Immediate);
    assert!(stage.flow.shadow_report().is_none());
    assert!(stage.flow.shadow("levels: {a: {shares: 0}}").is_err());
    assert!(stage.flow.shadow_report().is_none());
    let calls = load(1);
    stage.flow.shadow(ONE).unwrap();
    calls[..500].iter().for_each(|call| stage.arrive(call));
    assert!(stage.flow.shadow_report().unwrap().requests > 100);
    stage.flow.end_shadow();
    assert!(stage.flow.shadow_report().is_none());
    calls[500..1000].iter().for_each(|call| stage.arrive(call));
    stage.flow.shadow(TWO).unwrap();
    calls[1000..].iter().for_each(|call| stage.arrive(call));
    let report = stage.report();
    // Requests were under way when it began, so that those of the first second do not count.
    assert!((1000..=2000).contains(&report.requests), "{}", report.requests);
    assert_eq!(report.dropped, 0);
}
