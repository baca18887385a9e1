//! A storm of requests that are given up at every possible point: no seat is lost, and nobody is left waiting.

use crate::service;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::request::Arrived;
use evenkeel::{FlowControl, Rejected};
use evenkeel_api::Preset;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::Rejection;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use service::{assert_idle, attributes, objects, per_flow, queuing, user};

const TASKS: u64 = 200;
const REQUESTS_PER_TASK: u64 = 500;
const SEED: u64 = 0x5eed;

/// A small generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Remembers that it was woken.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Polls once, and gives up just after having been woken, or after some time.
async fn give_up_when_woken(mut admit: Pin<Box<Arrived>>, turns: u64) {
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&flag));
    let _ = admit.as_mut().poll(&mut Context::from_waker(&waker));
    for _ in 0..turns {
        if flag.0.load(Ordering::Acquire) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Polls every time the task has a turn, and gives up after some turns.
async fn give_up_while_waiting(mut admit: Pin<Box<Arrived>>, turns: u64) {
    for _ in 0..turns {
        let is_over = std::future::poll_fn(|context| Ok::<_, Rejected>(admit.as_mut().poll(context).is_ready()).into());
        if is_over.await == Ok(true) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn storm(flow: FlowControl, task: u64) {
    let user = user(&format!("user-{task}"), "tenants");
    let mut random = Random(SEED + task);
    for _ in 0..REQUESTS_PER_TASK {
        let seats = if random.below(2) == 0 { 1 } else { 2 };
        let admit = Box::pin(flow.arrive(attributes(&user), WorkEstimate::seats(seats)));
        match random.below(5) {
            0 => drop(admit),
            1 => give_up_when_woken(admit, random.below(50)).await,
            2 => give_up_while_waiting(admit, random.below(50)).await,
            3 => drop(admit.await),
            _ => {
                let result = admit.await;
                for _ in 0..random.below(4) {
                    tokio::task::yield_now().await;
                }
                drop(result);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_requests_are_given_up_anywhere() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(4).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(storm(flow.clone(), task))).collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_idle(&flow);
}

#[test]
fn admit_does_nothing_until_it_is_polled() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).drive_by_hand().build();
    flow.apply(objects([queuing("tenants", 1000)])).unwrap();
    let user = user("a", "tenants");
    let mut admit = Box::pin(flow.admit(attributes(&user), WorkEstimate::ONE_SEAT));
    assert_idle(&flow);
    let mut context = Context::from_waker(Waker::noop());
    let std::task::Poll::Ready(Ok(permit)) = admit.as_mut().poll(&mut context) else { panic!("it waits") };
    drop(permit);
    assert_idle(&flow);
    // What has arrived takes its seat before it is polled, and gives it back when it is dropped.
    let arrived = flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    assert_eq!(flow.status().iter().map(|level| level.executing).sum::<usize>(), 1);
    let waits = flow.admit(attributes(&user), WorkEstimate::ONE_SEAT);
    assert_eq!(flow.status().iter().map(|level| level.waiting).sum::<usize>(), 0);
    drop((arrived, waits));
    assert_idle(&flow);
}

/// Queues per flow that are full all the time: requests give way to others at every point too (PF-7).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_given_up_anywhere_while_others_take_their_places() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(4).build();
    flow.apply(objects([per_flow("tenants", 10_000, 12)])).unwrap();
    let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(storm(flow.clone(), task % 40))).collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_idle(&flow);
}

#[test]
fn ob_2_a_client_that_leaves_while_it_waits_is_counted_by_the_preset() {
    for (preset, expected) in [(Preset::Plain, Rejection::Cancelled), (Preset::Kubernetes, Rejection::TimeOut)] {
        let clock = ManualClock::new();
        let flow = FlowControl::builder().preset(preset).server_concurrency(1).manual_clock(clock.clone()).build();
        flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
        let user = user("a", "tenants");
        let arrive = || Box::pin(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT));
        let poll = |admit: &mut Pin<Box<Arrived>>| admit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let (mut running, mut leaving) = (arrive(), arrive());
        let Poll::Ready(Ok(permit)) = poll(&mut running) else { panic!("it waits") };
        assert!(poll(&mut leaving).is_pending());
        drop(leaving);
        let mut late = arrive();
        assert!(poll(&mut late).is_pending());
        clock.advance(Duration::from_secs(3600));
        assert!(matches!(poll(&mut late), Poll::Ready(Err(rejected)) if rejected.reason == Rejection::TimeOut));
        let reading = flow.reading();
        let counted = reading.level("tenants").unwrap().rejected.into_iter().filter(|(_, count)| *count > 0);
        let expected = match expected {
            Rejection::TimeOut => vec![(Rejection::TimeOut, 2)],
            left => vec![(Rejection::TimeOut, 1), (left, 1)],
        };
        assert_eq!(counted.collect::<Vec<_>>(), expected, "{preset:?}");
        let mut registry = Registry::default();
        flow.register_metrics(&mut registry).unwrap();
        let mut page = String::new();
        text::encode(&mut page, &registry).unwrap();
        for (reason, count) in expected {
            let labels =
                format!("{{flow_schema=\"tenants\",priority_level=\"tenants\",reason=\"{}\"}}", reason.as_str());
            let series = format!("apiserver_flowcontrol_rejected_requests_total{labels} {count}\n");
            assert!(page.contains(&series), "{series}{page}");
        }
        assert_eq!(page.contains("cancelled"), preset == Preset::Plain, "Kubernetes has no such reason");
        drop(permit);
        assert_idle(&flow);
    }
}
