//! The bars of the library: what was measured, what it has to be, and whether it is.
//!
//! Give a part of a measure's name to run only those that contain it.

#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod auto_limit;
mod beside_tower;
mod cost;
#[path = "../../tests/costed_objects/mod.rs"]
mod costed_objects;
mod explain;
#[cfg(feature = "fleet")]
mod fleet;
mod instructions;
mod layer;
#[path = "../../tests/random_objects/mod.rs"]
mod random_objects;
#[path = "../../tests/service/mod.rs"]
mod service;
mod shadow;
mod waiting;

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use evenkeel::FlowControl;
use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use evenkeel_counting_allocator::{Counting, counted};
use evenkeel_engine::{User, WorkEstimate};

use service::{assert_idle, attributes, objects, queuing, user};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many requests one round makes: enough that reading the clock does not count, and so few that most rounds are not
/// disturbed.
const ROUND: u32 = 2_000;
/// The same for each of two threads, which have to be started as well.
const ROUND_OF_TWO: u32 = 20_000;

fn main() {
    if evenkeel_bars::called(instructions::CALLS) {
        return;
    }
    let mut bars = Bars::filtered(std::env::args().skip(1));
    bars.measure("admitted requests per second, 2 threads, one level", "million", || {
        (1e3 / admit_by_two(), Bar::AtLeast(5.0, "million"))
    });
    bars.measure("allocations of 1,000 uncontended requests", "in all", || (allocations(), Bar::AtMost(0.0, "in all")));
    auto_limit::bars(&mut bars);
    beside_tower::bars(&mut bars);
    cost::bars(&mut bars);
    explain::bars(&mut bars);
    #[cfg(feature = "fleet")]
    fleet::bars(&mut bars);
    bars.measure_instructions(instructions::CALLS);
    layer::bars(&mut bars);
    shadow::bars(&mut bars);
    waiting::bars(&mut bars);
    bars.print("The library");
}

/// A service with more seats than anybody asks for.
pub(crate) fn roomy() -> FlowControl {
    let flow = FlowControl::builder().kubernetes().server_concurrency(600).drive_by_hand().build();
    flow.apply(objects([queuing("tenants", 10_000)])).expect("valid objects");
    flow
}

/// Polls something that does not wait.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    let Poll::Ready(value) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else { panic!("it waits") };
    value
}

/// Lets a request in and ends it.
pub(crate) fn admit(flow: &FlowControl, user: &User) {
    drop(black_box(now(flow.admit(attributes(user), WorkEstimate::ONE_SEAT))).expect("a seat"));
}

/// The time of a call while two threads make them, each with something of its own: that of both, divided by the calls of
/// both.
pub(crate) fn nanos_of_two<T: Send>(each: &mut [T; 2], call: impl Fn(&mut T) + Sync) -> f64 {
    nanos_per_operation(2 * ROUND_OF_TWO, || {
        std::thread::scope(|scope| {
            for own in &mut *each {
                scope.spawn(|| (0..ROUND_OF_TWO).for_each(|_| call(own)));
            }
        });
    })
}

/// The time of a request while two threads make them.
pub(crate) fn admit_by_two() -> f64 {
    let flow = roomy();
    let nanos = nanos_of_two(&mut ["one", "other"].map(|name| user(name, "tenants")), |user| admit(&flow, user));
    assert_idle(&flow);
    nanos
}

fn allocations() -> f64 {
    let (flow, user) = (roomy(), user("one", "tenants"));
    admit(&flow, &user);
    let ((), allocations, _) = counted(|| (0..1_000).for_each(|_| admit(&flow, &user)));
    allocations as f64
}
