//! What a request costs in memory: nothing, while there are seats.

#![expect(unsafe_code, reason = "an allocator that counts")]

mod service;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::task::{Context, Poll, Waker};

use evenkeel::FlowControl;
use evenkeel_engine::WorkEstimate;

use service::{assert_idle, attributes, objects, queuing, user};

/// The allocator of the system, which counts what a thread asks it for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is left to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

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
    flow.apply(objects([queuing("tenants", 10_000)]));
    let user = user("a", "tenants");
    admit(&flow, &user);
    let before = ALLOCATIONS.get();
    for _ in 0..1_000 {
        admit(&flow, &user);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_idle(&flow);
}
