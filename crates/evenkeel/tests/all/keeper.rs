//! What the flow control does by itself: divide the seats every ten seconds, and end when nobody uses it any more.

use crate::service;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use evenkeel::request::{FlowRequest, Patience};
use evenkeel::{FlowControl, Permit};
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::SECOND;

use service::{assert_idle, attributes, objects, rejecting, user};

/// A level that lends all it has.
fn lender(name: &str, shares: i32) -> PriorityLevelConfiguration {
    PriorityLevelConfiguration::builder(name).limited(|l| l.shares(shares).lendable_percent(100).reject()).build()
}

fn limit(flow: &FlowControl, name: &str) -> i64 {
    flow.status().iter().find(|level| level.name == name).expect("the level").current_limit
}

/// Takes all the seats that a level has.
async fn take_seats(flow: &FlowControl, name: &str) -> Vec<Permit> {
    let (user, mut permits) = (user("a", name), Vec::new());
    loop {
        match flow.admit(attributes(&user), WorkEstimate::ONE_SEAT).await {
            Ok(permit) => permits.push(permit),
            Err(_) => return permits,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cl_11_new_objects_do_not_put_off_the_adjustment() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(100).build();
    let levels = || objects([lender("idle", 50), rejecting("busy", 45)]);
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        // They adjust too, but nobody has asked for anything yet.
        flow.apply(levels()).unwrap();
    }
    let before = limit(&flow, "busy");
    let permits = take_seats(&flow, "busy").await;
    tokio::time::sleep(Duration::from_millis(4_990)).await;
    assert_eq!(limit(&flow, "busy"), before);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let borrowed = limit(&flow, "busy");
    assert!(borrowed > before, "{borrowed} after {before}");
    drop(permits);
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn cl_11_not_before_ten_seconds_have_passed() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(100).build();
    flow.apply(objects([lender("idle", 50), rejecting("busy", 45)])).unwrap();
    let before = limit(&flow, "busy");
    let permits = take_seats(&flow, "busy").await;
    tokio::time::sleep(Duration::from_millis(9_990)).await;
    assert_eq!(limit(&flow, "busy"), before);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let borrowed = limit(&flow, "busy");
    assert!(borrowed > before, "{borrowed} after {before}");
    drop(permits);
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn the_period_of_the_division_is_a_setting() {
    for (period, is_lent) in [(Some(Duration::from_secs(1)), true), (None, false)] {
        let flow = FlowControl::builder().kubernetes().server_concurrency(100).division_period(period).build();
        flow.apply(objects([lender("idle", 50), rejecting("busy", 45)])).unwrap();
        let before = limit(&flow, "busy");
        let permits = take_seats(&flow, "busy").await;
        tokio::time::sleep(Duration::from_millis(990)).await;
        assert_eq!(limit(&flow, "busy"), before);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(limit(&flow, "busy") > before, is_lent);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(limit(&flow, "busy") > before, is_lent);
        drop(permits);
        assert_idle(&flow);
    }
}

#[tokio::test(start_paused = true)]
async fn cl_25_what_a_plain_service_has_without_objects_of_its_own() {
    // The page of the crate and the builder tell these numbers.
    for (seats, first, borrowed) in [(600, 56, 363), (100, 9, 63), (10, 0, 9)] {
        let flow = FlowControl::builder().kubernetes().server_concurrency(seats).build();
        assert_eq!(limit(&flow, "global-default"), first);
        let user = user("a", "system:authenticated");
        let requests: Vec<_> = (0..4 * seats).map(|_| flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT)).collect();
        tokio::time::sleep(Duration::from_millis(10_010)).await;
        assert_eq!(limit(&flow, "global-default"), borrowed);
        drop(requests);
        assert_idle(&flow);
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_the_flow_control() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let flow = FlowControl::builder().kubernetes().build();
    assert_eq!(tasks(), before + 1);
    let other = flow.clone();
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(flow);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(tasks(), before + 1, "a clone is left");
    assert_idle(&other);
    drop(other);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(tasks(), before, "it ends at once");
}

#[tokio::test(start_paused = true)]
async fn requests_outlive_the_flow_control() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([service::queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    let admit = || flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    let permit = admit().await.expect("a permit");
    let (next, given_up, last) = (admit(), admit(), admit());
    drop(flow);
    drop(given_up);
    drop(permit);
    let permit = next.await.expect("a permit");
    assert_eq!(last.await.expect_err("nobody frees the seat").reason, Rejection::TimeOut);
    drop(permit);
}

#[tokio::test(start_paused = true)]
async fn nothing_lingers_when_the_flow_control_is_gone() {
    let lingers = WorkEstimate { initial_seats: 1, final_seats: 1, additional_latency: 3_600 * SECOND };
    for goes_first in [true, false] {
        let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
        flow.apply(objects([service::queuing("tenants", 10_000)])).unwrap();
        let user = user("a", "tenants");
        let permit = flow.admit(attributes(&user), lingers).await.expect("a permit");
        let waits = flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
        let mut flow = Some(flow);
        if goes_first {
            flow = None;
        }
        drop(permit);
        drop(flow);
        drop(waits.await.expect("the seat of the request that has ended"));
    }
}

#[tokio::test(start_paused = true)]
async fn waits_end_and_nothing_lingers_for_long_when_the_flow_control_is_gone() {
    let lingers = WorkEstimate { initial_seats: 1, final_seats: 1, additional_latency: 3_600 * SECOND };
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([service::queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    let permit = flow.admit(attributes(&user), lingers).await.expect("a permit");
    let (first, last) = (flow.arrive(attributes(&user), lingers), flow.arrive(attributes(&user), lingers));
    let patience = Patience::deadline_in(Duration::from_secs(240));
    let patient = flow.arrive_request(FlowRequest::new(attributes(&user)).patience(patience));
    let [first, last, patient] = [first, last, patient].map(tokio::spawn);
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(flow);
    // Their waits end without a keeper, and after that a seat still finds the next request.
    assert_eq!(first.await.expect("no panic").expect_err("no seat").reason, Rejection::TimeOut);
    assert_eq!(last.await.expect("no panic").expect_err("no seat").reason, Rejection::TimeOut);
    drop(permit);
    drop(patient.await.expect("no panic").expect("the seat of the first request"));
}

/// A waker that panics when it is used.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("the waker panics");
    }
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_after_a_waker_has_panicked() {
    let lingers = WorkEstimate { initial_seats: 1, final_seats: 1, additional_latency: SECOND };
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([service::queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    let mut waits = Box::pin(flow.arrive(attributes(&user), lingers));
    for _ in 0..3 {
        let mut next = Box::pin(flow.arrive(attributes(&user), lingers));
        assert!(next.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::new(Panics)))).is_pending());
        drop(waits.await.expect("the keeper frees the seat"));
        waits = next;
        tokio::time::sleep(Duration::from_millis(1_020)).await;
    }
    drop(waits);
}
