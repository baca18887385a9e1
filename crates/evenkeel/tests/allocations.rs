//! What a request costs in memory: nothing, while there are seats.

mod service;

use std::future::Future;
use std::task::{Context, Poll, Waker};

use evenkeel::FlowControl;
use evenkeel_counting_allocator::{Counting, allocations, bytes};
use evenkeel_engine::WorkEstimate;

use service::{assert_idle, attributes, objects, queuing, user};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Lets a request in and ends it.
fn admit(flow: &FlowControl, user: &evenkeel_engine::User) {
    let admit = std::pin::pin!(flow.arrive(attributes(user), WorkEstimate::ONE_SEAT));
    let Poll::Ready(Ok(_permit)) = admit.poll(&mut Context::from_waker(Waker::noop())) else { panic!("no seat") };
}

#[test]
fn an_uncontended_request_allocates_nothing() {
    let flow = FlowControl::builder().kubernetes().drive_by_hand().build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    admit(&flow, &user);
    assert_eq!(allocations(|| (0..1_000).for_each(|_| admit(&flow, &user))), 0);
    assert_idle(&flow);
}

/// While it records, a request allocates nothing once the memory is filled, and afterwards the memory is given back by the next one.
#[test]
fn fr_1_a_recorder_that_is_switched_off_gives_its_memory_back() {
    let flow = FlowControl::builder().kubernetes().drive_by_hand().build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    admit(&flow, &user);
    let before = bytes();
    flow.record(1 << 20);
    (0..40_000).for_each(|_| admit(&flow, &user));
    assert!(bytes() - before > 1 << 19);
    assert_eq!(allocations(|| (0..1_000).for_each(|_| admit(&flow, &user))), 0);
    flow.record(0);
    admit(&flow, &user);
    assert!(bytes() - before < 100_000, "{} bytes are held", bytes() - before);
    (0..5_000).for_each(|_| admit(&flow, &user));
    assert!(flow.flight(std::time::Duration::MAX, "").is_none());
    assert_idle(&flow);
}
