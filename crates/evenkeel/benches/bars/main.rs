//! The bars of the library: what was measured, what it has to be, and whether it is.
//!
//! Give a part of a measure's name to run only those that contain it.

#![expect(unsafe_code, reason = "an allocator that counts")]
#![expect(clippy::print_stdout, reason = "this is what it is for")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod layer;
mod memory;
#[path = "../../tests/service/mod.rs"]
mod service;
mod waiting;

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use evenkeel::FlowControl;
use evenkeel_engine::{User, WorkEstimate};
use tower::limit::ConcurrencyLimitLayer;
use tower::{Layer, Service, service_fn};

use service::{assert_idle, attributes, objects, queuing, user};

/// One line of the table.
struct Measured {
    measure: &'static str,
    figure: String,
    bar: String,
    is_met: bool,
}

type Measure = fn() -> Measured;

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let measures: [(&str, Measure); 7] = [
        ("admitted_per_second", admitted_per_second),
        ("beside_concurrency_limit", beside_concurrency_limit),
        ("allocations", allocations),
        ("waiting_memory", waiting::memory),
        ("waiting_dispatch", waiting::dispatch),
        ("layer_overhead", layer::overhead),
        ("layer_allocations", layer::allocations),
    ];
    println!("| measure | figure | bar | verdict |\n|---|---|---|---|");
    for (_, measure) in measures.iter().filter(|(name, _)| name.contains(&filter)) {
        let Measured { measure, figure, bar, is_met } = measure();
        println!("| {measure} | {figure} | {bar} | {} |", if is_met { "met" } else { "NOT MET" });
    }
}

/// A service with more seats than anybody asks for.
pub(crate) fn roomy() -> FlowControl {
    let flow = FlowControl::builder().server_concurrency(600).drive_by_hand().build();
    flow.apply(objects([queuing("tenants", 10_000)]));
    flow
}

/// Polls something that does not wait.
fn now<F: Future>(future: F) -> F::Output {
    let Poll::Ready(value) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else { panic!("it waits") };
    value
}

/// Lets a request in and ends it.
fn admit(flow: &FlowControl, user: &User) {
    drop(black_box(now(flow.admit(attributes(user), WorkEstimate::ONE_SEAT))).expect("a seat"));
}

/// The best time of several rounds for one of many calls.
pub(crate) fn best_of(rounds: u32, calls: u32, mut round: impl FnMut(u32)) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        round(calls);
        best = best.min(start.elapsed());
    }
    best / calls
}

fn admitted_per_second() -> Measured {
    let flow = roomy();
    let users = [user("one", "tenants"), user("other", "tenants")];
    let both = best_of(7, 1_000_000, |calls| {
        std::thread::scope(|scope| {
            for user in &users {
                scope.spawn(|| (0..calls / 2).for_each(|_| admit(&flow, user)));
            }
        });
    });
    assert_idle(&flow);
    let per_second = 1e3 / both.as_nanos() as f64;
    Measured {
        measure: "admitted requests per second, 2 threads, one level",
        figure: format!("{per_second:.2} million"),
        bar: "at least 3 million".to_owned(),
        is_met: per_second >= 3.0,
    }
}

fn beside_concurrency_limit() -> Measured {
    let (flow, user) = (roomy(), user("one", "tenants"));
    let ours = best_of(9, 300_000, |calls| (0..calls).for_each(|_| admit(&flow, &user)));
    let inner = service_fn(|request: u32| std::future::ready(Ok::<_, Infallible>(request)));
    let mut limited = ConcurrencyLimitLayer::new(600).layer(inner);
    let theirs = best_of(9, 300_000, |calls| {
        for call in 0..calls {
            let ready = limited.poll_ready(&mut Context::from_waker(Waker::noop()));
            assert!(ready.is_ready());
            black_box(now(limited.call(call))).unwrap_or_else(|never| match never {});
        }
    });
    assert_idle(&flow);
    let ratio = ours.as_nanos() as f64 / theirs.as_nanos() as f64;
    Measured {
        measure: "admit and drop, beside a call through tower's ConcurrencyLimit",
        figure: format!("{} ns and {} ns: {ratio:.1} x", ours.as_nanos(), theirs.as_nanos()),
        bar: "at most 3 x".to_owned(),
        is_met: ratio <= 3.0,
    }
}

fn allocations() -> Measured {
    let (flow, user) = (roomy(), user("one", "tenants"));
    admit(&flow, &user);
    let ((), allocations, _) = memory::counted(|| (0..1_000).for_each(|_| admit(&flow, &user)));
    Measured {
        measure: "allocations of 1,000 uncontended requests",
        figure: allocations.to_string(),
        bar: "none".to_owned(),
        is_met: allocations == 0,
    }
}
