//! Rates by flow: requests over the rate wait without a seat, or are rejected (RL-1 to RL-3).

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::request::{Arrived, FlowRequest, Patience, Rejection};
use evenkeel::{Attributes, FlowControl, Permit, Rejected, RequestInfo, User, WorkEstimate};

use crate::costed_objects::{PER_FLOW, costed_objects};
use crate::layer::{ask, get};

/// A service whose users have this rate each, in a level with so many seats.
fn objects(annotations: &str, wait_limit: &str) -> String {
    costed_objects(&format!("{PER_FLOW}, evenkeel.dev/wait-limit: {wait_limit}"), annotations)
}

fn controlled(annotations: &str, wait_limit: &str) -> (FlowControl, ManualClock) {
    let clock = ManualClock::new();
    let builder = FlowControl::builder().server_concurrency(10).manual_clock(clock.clone()).drive_by_hand();
    (builder.objects(&*objects(annotations, wait_limit)).build(), clock)
}

fn arrive(flow: &FlowControl, name: &str) -> Arrived {
    arrive_with(flow, name, Patience::default())
}

fn arrive_with(flow: &FlowControl, name: &str, patience: Patience) -> Arrived {
    let (user, request) = (User::new(name, ["system:authenticated"]), RequestInfo::for_path("get", "/orders"));
    let attributes = Attributes { user: &user, request: &request };
    flow.arrive_request(FlowRequest::new(attributes).work(WorkEstimate::ONE_SEAT).patience(patience))
}

fn poll(arrived: &mut Arrived) -> Poll<Result<Permit, Box<Rejected>>> {
    Pin::new(arrived).poll(&mut Context::from_waker(Waker::noop()))
}

fn started(mut arrived: Arrived) -> Permit {
    match poll(&mut arrived) {
        Poll::Ready(Ok(permit)) => permit,
        other => panic!("{other:?}"),
    }
}

fn rejected(mut arrived: Arrived) -> Rejected {
    match poll(&mut arrived) {
        Poll::Ready(Err(rejected)) => *rejected,
        other => panic!("{other:?}"),
    }
}

fn seats_in_use(flow: &FlowControl) -> i64 {
    flow.status().iter().find(|status| status.name == "api").unwrap().seats_in_use
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn rl_2_a_request_over_the_rate_waits_without_a_seat_until_it_conforms() {
    let (flow, clock) = controlled("evenkeel.dev/rate: 10/s;burst=2", "15s");
    let first = [started(arrive(&flow, "alice")), started(arrive(&flow, "alice"))];
    let mut third = arrive(&flow, "alice");
    let mut fourth = arrive(&flow, "alice");
    assert!(poll(&mut third).is_pending() && poll(&mut fourth).is_pending());
    assert_eq!(seats_in_use(&flow), 2, "it takes no seat meanwhile");
    let other = started(arrive(&flow, "bob"));
    clock.advance(99 * MILLISECOND);
    assert!(poll(&mut third).is_pending());
    clock.advance(MILLISECOND);
    let third = started(third);
    assert!(poll(&mut fourth).is_pending());
    assert_eq!(seats_in_use(&flow), 4);
    clock.advance(100 * MILLISECOND);
    drop((started(fourth), third, other, first));
    assert_eq!(seats_in_use(&flow), 0);
}

#[test]
fn rl_2_what_cannot_conform_in_time_is_told_when_it_would() {
    let (flow, clock) = controlled("evenkeel.dev/rate: 1/m;burst=2", "15s");
    for _ in 0..2 {
        drop(started(arrive(&flow, "alice")));
    }
    clock.advance(Duration::from_millis(10_500));
    let refused = rejected(arrive(&flow, "alice"));
    assert_eq!(refused.reason, Rejection::RateLimit);
    assert_eq!(refused.expected_wait, Some(Duration::from_millis(49_500)));
    assert_eq!(refused.retry_after, Duration::from_secs(50), "whole seconds, rounded up");
    assert_eq!(refused.rate.unwrap().to_string(), "1/m;burst=2");
    clock.advance(Duration::from_millis(49_500));
    drop(started(arrive(&flow, "alice")));
}

#[test]
fn rl_2_excess_may_be_rejected_at_once() {
    let (flow, clock) = controlled("evenkeel.dev/rate: 10/s;burst=1;excess=reject", "15s");
    drop(started(arrive(&flow, "alice")));
    let refused = rejected(arrive(&flow, "alice"));
    assert_eq!((refused.reason, refused.retry_after), (Rejection::RateLimit, Duration::from_secs(1)));
    clock.advance(100 * MILLISECOND);
    drop(started(arrive(&flow, "alice")));
}

#[test]
fn rl_2_a_deadline_limits_the_wait_for_the_rate_too() {
    let (flow, _clock) = controlled("evenkeel.dev/rate: 1/s;burst=1", "15s");
    drop(started(arrive(&flow, "alice")));
    // A request waits for a quarter of its time at most.
    let refused = rejected(arrive_with(&flow, "alice", Patience::deadline_in(Duration::from_secs(2))));
    assert_eq!(refused.reason, Rejection::RateLimit);
    assert!(poll(&mut arrive_with(&flow, "alice", Patience::deadline_in(Duration::from_secs(8)))).is_pending());
}

#[test]
fn rl_2_who_leaves_while_it_waits_gives_its_place_to_the_next() {
    let (flow, clock) = controlled("evenkeel.dev/rate: 1/s;burst=1", "15s");
    drop(started(arrive(&flow, "alice")));
    let gone = arrive(&flow, "alice");
    drop(gone);
    let mut next = arrive(&flow, "alice");
    assert!(poll(&mut next).is_pending());
    clock.advance(Duration::from_secs(1));
    drop(started(next));
    let reading = flow.reading();
    let rejected = reading.level("api").unwrap().rejected;
    assert_eq!(rejected[Rejection::Cancelled as usize], (Rejection::Cancelled, 1));
}

#[test]
fn rl_2_what_is_left_of_the_wait_limit_is_for_the_seat() {
    let (flow, clock) = controlled("evenkeel.dev/rate: 1/s;burst=1", "3s");
    let seats: Vec<_> =
        (0..20).map(|index| arrive(&flow, &format!("other-{index}"))).map(|mut it| poll(&mut it)).collect();
    assert!(started_of(&seats) > 0 && started_of(&seats) < 20, "all seats are taken");
    let mut first = arrive(&flow, "alice");
    let mut second = arrive(&flow, "alice");
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    clock.advance(Duration::from_secs(1));
    assert!(poll(&mut second).is_pending(), "it waits for a seat now");
    clock.advance(Duration::from_millis(1999));
    flow.tick();
    assert!(poll(&mut second).is_pending());
    clock.advance(Duration::from_millis(2));
    flow.tick();
    assert_eq!(rejected(second).reason, Rejection::TimeOut);
    drop(seats);
}

#[test]
fn rl_2_what_its_level_rejects_after_the_wait_gives_back_what_it_took_of_the_rate() {
    let (flow, clock) = controlled("evenkeel.dev/rate: 1/s;burst=1", "15s");
    let rejecting = objects("evenkeel.dev/rate: 1/s;burst=1", "15s")
        .replace("limitResponse: {type: Queue, queuing: {}}", "limitResponse: {type: Reject}");
    assert!(rejecting.contains("Reject"));
    flow.apply(&*rejecting).unwrap();
    let first = started(arrive(&flow, "alice"));
    let seats: Vec<_> =
        (0..20).map(|index| arrive(&flow, &format!("other-{index}"))).map(|mut it| poll(&mut it)).collect();
    assert!(started_of(&seats) < 20, "all seats are taken");
    let mut second = arrive(&flow, "alice");
    assert!(poll(&mut second).is_pending(), "it waits for the rate");
    clock.advance(Duration::from_secs(1));
    assert_eq!(rejected(second).reason, Rejection::ConcurrencyLimit);
    drop((first, seats));
    drop(started(arrive(&flow, "alice")));
    assert!(poll(&mut arrive(&flow, "alice")).is_pending(), "that one has taken it");
}

fn started_of(seats: &[Poll<Result<Permit, Box<Rejected>>>]) -> usize {
    seats.iter().filter(|seat| matches!(seat, Poll::Ready(Ok(_)))).count()
}

#[test]
fn a_rate_keeps_what_flows_owe_when_the_objects_change() {
    let (flow, clock) = controlled("evenkeel.dev/rate: 1/m;burst=1;excess=reject", "15s");
    drop(started(arrive(&flow, "alice")));
    flow.apply(&*objects("evenkeel.dev/rate: 2/m;burst=1;excess=reject", "15s")).unwrap();
    assert_eq!(rejected(arrive(&flow, "alice")).retry_after, Duration::from_secs(60));
    flow.apply(&*objects("evenkeel.dev/flow-weight: '2'", "15s")).unwrap();
    drop(started(arrive(&flow, "alice")));
    clock.advance(Duration::from_secs(1));
}

#[test]
fn a_request_goes_on_when_its_level_is_gone_by_then() {
    let (flow, clock) = controlled("evenkeel.dev/rate: 1/s;burst=1", "15s");
    drop(started(arrive(&flow, "alice")));
    let mut waits = arrive(&flow, "alice");
    assert!(poll(&mut waits).is_pending());
    flow.apply(evenkeel::objects::Objects::default()).unwrap();
    flow.tick();
    clock.advance(Duration::from_secs(1));
    let permit = started(waits);
    assert_eq!(permit.priority_level(), "catch-all");
}

#[test]
fn who_waits_for_its_rate_is_woken_by_a_tick_of_a_clock_that_is_set_by_hand() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (flow, clock) = controlled("evenkeel.dev/rate: 1/s;burst=1", "15s");
    drop(started(arrive(&flow, "alice")));
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut waits = pin!(arrive(&flow, "alice"));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(flow.tick() <= Duration::from_secs(1));
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
    clock.advance(Duration::from_secs(1));
    flow.tick();
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
}

#[tokio::test(start_paused = true)]
async fn rl_1_over_a_minute_exactly_the_rate_is_let_in() {
    let flow = FlowControl::builder().server_concurrency(1000).build();
    flow.apply(&*objects("evenkeel.dev/rate: 100/s;burst=10", "30s")).unwrap();
    let start = tokio::time::Instant::now();
    // Twice the rate; what does not fit into the wait limit is rejected.
    let mut waiting = Vec::new();
    for _ in 0..12_000 {
        let arrived = arrive(&flow, "alice");
        waiting.push(tokio::spawn(async move { arrived.await.map(|_permit| tokio::time::Instant::now()) }));
        tokio::time::sleep(5 * MILLISECOND).await;
    }
    let mut accepted = 0;
    for request in waiting {
        if let Ok(at) = request.await.unwrap() {
            accepted += u64::from(at - start <= Duration::from_secs(60));
        }
    }
    assert!((5995..=6011).contains(&accepted), "{accepted}");
}

#[tokio::test(start_paused = true)]
async fn rl_3_bytes_are_charged_as_expected_and_corrected_at_the_end() {
    let flow = FlowControl::builder().server_concurrency(100).build();
    flow.apply(&*objects("evenkeel.dev/rate: 1000/s;burst=1000;unit=bytes;excess=reject", "15s")).unwrap();
    let layer = flow.layer(evenkeel::identify::Anonymous);
    let export = crate::layer::bytes_of(4000);
    // Nothing is known of the first one: it passes, and its flow owes 4,000 bytes.
    let response = ask(&layer, &export, get("/export"));
    assert_eq!(http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes().len(), 4000);
    let refused = ask(&layer, &export, get("/export"));
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["x-evenkeel-reason"], "rate-limit");
    assert_eq!(refused.headers()["retry-after"], "4");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(ask(&layer, &export, get("/export")).status(), 200);
}

#[tokio::test(start_paused = true)]
async fn rl_5_the_layer_adds_to_the_limits_of_the_service() {
    use crate::layer::{Mock, Reply, TestBody, ask, get};
    let flow = crate::learnt_costs::controlled("evenkeel.dev/rate: 100/m;burst=10");
    let mock = Mock::new(|_| {
        let (_, body) = TestBody::streamed();
        Reply::Now(http::Response::builder().header("RateLimit", "\"own\";r=3").body(body).unwrap())
    });
    let layer = flow.layer(evenkeel::identify::Anonymous);
    assert_eq!(ask(&layer, &mock, get("/rows")).headers().get_all("ratelimit").iter().count(), 1);
    let response = ask(&layer.rate_limit_fields(), &mock, get("/rows"));
    let values = |name| {
        let values = response.headers().get_all(name).iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(", ")
    };
    let (policy, limit) = (values("ratelimit-policy"), values("ratelimit"));
    assert!(
        policy.starts_with("\"users\";q=100;w=60, \"api\";q=") && policy.ends_with(";qu=\"concurrent-requests\""),
        "{policy}"
    );
    assert!(limit.starts_with("\"own\";r=3, \"users\";r=8;t=2, \"api\";r="), "{limit}");
}
