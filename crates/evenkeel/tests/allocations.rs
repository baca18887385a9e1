//! What a request costs in memory: nothing, while there are seats.

mod service;

use std::future::Future;
use std::task::{Context, Poll, Waker};

use evenkeel::FlowControl;
use evenkeel_counting_allocator::{Counting, allocations};
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
