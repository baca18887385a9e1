//! Wakers that take locks of their own when they are cloned or dropped, as some executors' do, and wakers that panic.

use crate::service;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::request::Arrived;
use evenkeel::{FlowControl, Permit};
use evenkeel_engine::WorkEstimate;

use service::{assert_idle, attributes, objects, queuing, user};

/// A waker that is the last owner of another request, which ends when the waker is dropped.
struct Owner(#[expect(dead_code, reason = "it ends with the waker")] Mutex<Option<Permit>>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

/// A waker that panics when it is used.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("the waker panics");
    }
}

/// A waker that counts how often it is used.
#[derive(Default)]
struct Counts(AtomicU32);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn two_seats() -> (FlowControl, ManualClock) {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(2).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing("tenants", 1000)])).unwrap();
    (flow, clock)
}

fn admit(flow: &FlowControl) -> std::pin::Pin<Box<Arrived>> {
    Box::pin(flow.arrive(attributes(&user("a", "tenants")), WorkEstimate::ONE_SEAT))
}

fn poll(admit: &mut std::pin::Pin<Box<Arrived>>, waker: &Waker) -> Option<Permit> {
    match admit.as_mut().poll(&mut Context::from_waker(waker)) {
        Poll::Ready(result) => Some(result.expect("a permit")),
        Poll::Pending => None,
    }
}

/// A request that waits, whose waker owns one of the two permits, and the other permit.
fn waiting_request(flow: &FlowControl) -> (std::pin::Pin<Box<Arrived>>, Permit) {
    let permits = [(), ()].map(|()| poll(&mut admit(flow), Waker::noop()).expect("a free seat"));
    let [owned, other] = permits;
    let waker = Waker::from(Arc::new(Owner(Mutex::new(Some(owned)))));
    let mut waits = admit(flow);
    assert!(poll(&mut waits, &waker).is_none());
    (waits, other)
}

#[test]
fn giving_up_drops_the_waker_without_the_lock() {
    let (flow, _clock) = two_seats();
    let (waits, other) = waiting_request(&flow);
    drop(waits);
    drop(other);
    assert_idle(&flow);
}

#[test]
fn another_waker_replaces_the_first_without_the_lock() {
    let (flow, _clock) = two_seats();
    let (mut waits, other) = waiting_request(&flow);
    // Dropping the first waker frees a seat, and the request starts.
    assert!(poll(&mut waits, Waker::noop()).is_none());
    let permit = poll(&mut waits, Waker::noop()).expect("the seat that the waker owned");
    drop((permit, other));
    assert_idle(&flow);
}

#[test]
fn a_time_out_drops_the_waker_without_the_lock() {
    let (flow, clock) = two_seats();
    let (mut waits, other) = waiting_request(&flow);
    let waker = Waker::from(Arc::new(Owner(Mutex::new(None))));
    clock.advance(Duration::from_secs(16));
    let polled = waits.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(matches!(polled, Poll::Ready(_)), "its time is over");
    drop((polled, other));
    assert_idle(&flow);
}

#[test]
fn a_waker_that_panics_keeps_nobody_else_asleep() {
    let (flow, _clock) = two_seats();
    let wide = Box::pin(flow.arrive(attributes(&user("a", "tenants")), WorkEstimate::seats(2)));
    let permit = poll(&mut { wide }, Waker::noop()).expect("two free seats");
    let (mut first, mut second) = (admit(&flow), admit(&flow));
    assert!(poll(&mut first, &Waker::from(Arc::new(Panics))).is_none());
    let counts = Arc::new(Counts::default());
    assert!(poll(&mut second, &Waker::from(Arc::clone(&counts))).is_none());
    let result = catch_unwind(AssertUnwindSafe(|| drop(permit)));
    assert!(result.is_err(), "the panic goes on");
    assert_eq!(counts.0.load(Ordering::Relaxed), 1, "the other is woken");
    drop([first, second].map(|mut admit| poll(&mut admit, Waker::noop()).expect("a free seat")));
    assert_idle(&flow);
}
