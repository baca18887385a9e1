//! What the flight recorder and a shadow cost a request of the library (FR-1, SH-2), and how near a shadow is to reality (SH-1).

#![allow(clippy::print_stdout, reason = "what the figures are of")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use evenkeel::clock::ManualClock;
use evenkeel::division::Borrowing;
use evenkeel::objects::Objects;
use evenkeel::shadow::{ShadowReport, ShadowSettings};
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
use evenkeel_bars::{Bar, Bars};

use crate::instructions::PACE;
use crate::{ROUND, now};

/// Turns of the measured and of what it is compared with.
const TURNS: usize = 400;
/// How long the mixed load takes.
const LOAD: Duration = Duration::from_secs(60);
/// How long it takes before and after a change of the objects.
const LOAD_OF_CHANGE: Duration = Duration::from_secs(20);
const CLIENTS: usize = 40;
const SEATS: u32 = 12;
const OBJECTS: &str = "
levels:
  orders: {share: 3, queue: 20, wait: 300ms, lend: 75%}
  reports: {share: 2, queue: 10, wait: 200ms, lend: 50%}
  rest: {share: 1, queue: 10, wait: 150ms}
match:
- {path: /orders/*, level: orders}
- {path: /reports/*, level: reports}
- {level: rest}
";
/// What the shadow is asked about where it has objects of its own.
const NEW: &str = "
levels:
  interactive: {share: 4, queue: 20, wait: 300ms, lend: 50%}
  reports: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /reports/*, level: reports}
- {level: interactive}
";

pub(crate) fn bars(bars: &mut Bars) {
    if !bars.wants("shadow: ") {
        return;
    }
    let off = || FlowControl::builder().server_concurrency(1000).drive_by_hand().build();
    bars.measure("shadow: admit and finish, without shadow and recorder", "ns", || (turn_of(&off()), Bar::None));
    bars.measure("shadow: the same beside itself, a request more", "ns", || (more(&off(), &off()), Bar::None));
    bars.measure("shadow: recording, a request more", "ns", || {
        let recorded = off();
        recorded.record(32 << 20);
        (more(&off(), &recorded), Bar::AtMost(12.0, "ns"))
    });
    bars.measure("shadow: a shadow, a request more on its thread", "ns", || {
        let shadowed = off();
        shadowed.shadow(Objects::from(shadowed.preset())).expect("valid objects");
        (more(&off(), &shadowed), Bar::None)
    });
    same_objects(bars);
    prediction(bars);
}

/// How much longer a request takes with the second one than with the first one, in nanoseconds: the median of neighbouring turns.
fn more(without: &FlowControl, with: &FlowControl) -> f64 {
    let mut differences: Vec<f64> = (0..TURNS)
        .map(|turn| {
            // Whoever is first may find colder caches.
            if turn % 2 == 0 {
                let first = turn_of(without);
                turn_of(with) - first
            } else {
                let first = turn_of(with);
                first - turn_of(without)
            }
        })
        .collect();
    differences.sort_by(f64::total_cmp);
    differences[TURNS / 2]
}

/// How long a request takes that is let in and ends, in nanoseconds.
fn turn_of(flow: &FlowControl) -> f64 {
    let (user, info) = request();
    let attributes = Attributes { user: &user, request: &info };
    let start = Instant::now();
    for _ in 0..ROUND {
        drop(now(flow.admit(attributes, WorkEstimate::ONE_SEAT)).expect("a seat"));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUND)
}

fn request() -> (User, RequestInfo<'static>) {
    (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("get", "/orders/7"))
}

/// The same requests, recorded in so many bytes, for `cargo xtask bench instructions`.
pub(crate) fn call(recorded: Option<usize>, calls: u32) {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency(1000).manual_clock(clock.clone()).build();
    if let Some(bytes) = recorded {
        flow.record(bytes);
    }
    let (user, info) = request();
    for _ in 0..calls {
        clock.advance(PACE);
        drop(now(flow.admit(Attributes { user: &user, request: &info }, WorkEstimate::ONE_SEAT)).expect("a seat"));
    }
}

/// A minute of mixed load on all cores, with the same objects on both sides.
fn same_objects(bars: &mut Bars) {
    for (borrowing, name) in [(Borrowing::Immediate, "at once"), (Borrowing::Periodic, "every 10 s")] {
        let title = format!("shadow: same objects, 60 s of mixed load, borrowing {name}: ");
        if !bars.wants(&title) {
            continue;
        }
        let report = under_load((OBJECTS, OBJECTS), borrowing, LOAD, 1);
        let moved: u64 = report.moved.iter().map(|moved| moved.requests).sum();
        println!("{title}{} requests, {}", report.requests, figures(&report));
        assert_eq!((report.dropped, report.requests > 10_000), (0, true));
        bars.add(format!("{title}other levels"), moved as f64, "", Bar::AtMost(0.0, ""));
        let (rejected, wait) = (&report.totals.rejected, &report.totals.wait);
        let off = off(rejected.shadow as f64, rejected.real as f64);
        bars.add(format!("{title}rejected, off"), off, "%", Bar::AtMost(1.0, "%"));
        bars.add(
            format!("{title}wait p99, off"),
            self::off(wait.shadow.p99, wait.real.p99),
            "%",
            Bar::AtMost(5.0, "%"),
        );
    }
}

/// What a shadow says, and what is so under its configuration with the same clients.
fn prediction(bars: &mut Bars) {
    for (number, (real, new, name)) in [
        (OBJECTS, NEW, "other levels"),
        (NEW, OBJECTS, "and back"),
        (OBJECTS, "levels: {all: {share: 1, queue: 40, wait: 250ms}}\nmatch: [{level: all}]", "one level"),
    ]
    .into_iter()
    .enumerate()
    {
        let title = format!("shadow: prediction, {name}: ");
        if !bars.wants(&title) {
            continue;
        }
        let seed = 10 + number as u64;
        let predicted = under_load((real, new), Borrowing::Immediate, LOAD_OF_CHANGE, seed);
        let happened = under_load((new, new), Borrowing::Immediate, LOAD_OF_CHANGE, seed);
        println!("{title}{}; happened {}", figures(&predicted), figures(&happened));
        let rejected = off(predicted.totals.rejected.shadow as f64, happened.totals.rejected.real as f64);
        bars.add(format!("{title}rejected, off"), rejected, "%", Bar::AtMost(15.0, "%"));
        let wait = off(predicted.totals.wait.shadow.p99, happened.totals.wait.real.p99);
        bars.add(format!("{title}wait p99, off"), wait, "%", Bar::AtMost(15.0, "%"));
    }
}

fn figures(report: &ShadowReport) -> String {
    let (rejected, wait) = (&report.totals.rejected, &report.totals.wait);
    format!(
        "rejected {} (shadow {}), wait p50 {:.1} ({:.1}) ms, p99 {:.1} ({:.1}) ms",
        rejected.real, rejected.shadow, wait.real.p50, wait.shadow.p50, wait.real.p99, wait.shadow.p99
    )
}

/// How far a figure is from another one, in percent of it.
fn off(figure: f64, of: f64) -> f64 {
    100.0 * (figure - of).abs() / of.max(1.0)
}

/// What a shadow says after a load in which clients send requests at times that do not depend on the responses.
fn under_load((objects, shadow): (&str, &str), borrowing: Borrowing, load: Duration, seed: u64) -> ShadowReport {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads");
    let flow = runtime.block_on(async {
        FlowControl::builder().server_concurrency(SEATS).borrowing(borrowing).objects(objects).build()
    });
    // Begins in the middle of a period of the division.
    thread::sleep(Duration::from_millis(3_300));
    let settings = ShadowSettings { concurrency: Some(SEATS), borrowing: Some(borrowing) };
    flow.shadow_with(shadow, settings).expect("valid objects");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| runtime.spawn(client(flow.clone(), number, load, seed * 1_000 + number as u64)))
        .collect();
    runtime.block_on(async {
        for client in clients {
            client.await.expect("clients do not panic");
        }
    });
    // The last requests have ended, and the shadow looks every few milliseconds.
    thread::sleep(Duration::from_secs(1));
    let mut report = flow.shadow_report().expect("a shadow");
    report.flows.clear();
    report
}

/// Sends requests, most of them in bursts.
async fn client(flow: FlowControl, number: usize, load: Duration, seed: u64) {
    let user = Arc::new(User::new(format!("user-{}", number % 9), [""; 0]));
    let path = ["/orders/7", "/reports/1", "/other"][number % 3];
    let (start, mut random) = (tokio::time::Instant::now(), seed);
    let mut at = start + Duration::from_micros(next(&mut random) % 100_000);
    let mut requests = tokio::task::JoinSet::new();
    while at < start + load {
        tokio::time::sleep_until(at).await;
        let (flow, user) = (flow.clone(), Arc::clone(&user));
        let service = Duration::from_micros(2_000 + next(&mut random) % 40_000);
        let seats = 1 + u32::try_from(next(&mut random) % 3).unwrap_or(0);
        requests.spawn(async move {
            let request = RequestInfo::for_path("get", path);
            let attributes = Attributes { user: &user, request: &request };
            if let Ok(permit) = flow.admit(attributes, WorkEstimate::seats(seats)).await {
                tokio::time::sleep(service).await;
                drop(permit);
            }
        });
        // Of ten seconds, four have more requests than there are seats for.
        let is_burst = at.duration_since(start).as_millis() % 10_000 < 4_000;
        at += Duration::from_micros(next(&mut random) % if is_burst { 160_000 } else { 480_000 });
    }
    while requests.join_next().await.is_some() {}
}

fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}
