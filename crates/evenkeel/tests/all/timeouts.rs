//! Requests that wait too long or find no place: why they are rejected, and when to come back.

use crate::service;

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::clock::ManualClock;
use evenkeel::request::{Arrived, FlowRequest, Patience};
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::retry_after::RetryAfter;
use tokio::time::Instant;

use service::{assert_idle, attributes, objects, queuing, queuing_up_to, rejecting, totals, user};

/// A waker that counts how often it is used.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn one_seat(level: evenkeel_api::v1::PriorityLevelConfiguration) -> FlowControl {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([level])).unwrap();
    flow
}

/// So long does a request wait that has that much time left in all.
fn patience(deadline_in: Duration) -> Patience {
    Patience::deadline_in(deadline_in)
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_as_long_as_it_may() {
    let flow = one_seat(queuing("tenants", 10_000));
    let user = user("a", "tenants");
    let permit = flow.admit(attributes(&user), WorkEstimate::ONE_SEAT).await.expect("a permit");
    for (deadline_in, seconds) in [(None, 15), (Some(Duration::from_secs(8)), 2)] {
        let start = Instant::now();
        let patience = deadline_in.map_or_else(Patience::default, Patience::deadline_in);
        let rejected =
            flow.admit_request(FlowRequest::new(attributes(&user)).patience(patience)).await.expect_err("no seat");
        assert_eq!(rejected.reason, Rejection::TimeOut);
        let waited = start.elapsed();
        assert!(waited >= Duration::from_secs(seconds) && waited.as_millis() <= u128::from(seconds) * 1_000 + 2);
        assert_eq!(totals(&flow), (0, 1), "it has left its queue");
    }
    drop(permit);
    assert_idle(&flow);
}

#[test]
fn by_hand_a_tick_turns_away_who_has_waited_too_long() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let user = user("a", "tenants");
        let permit = flow.admit(attributes(&user), WorkEstimate::ONE_SEAT).await.expect("a permit");
        let waits = tokio::spawn(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT));
        for seconds in [14, 1] {
            tokio::task::yield_now().await;
            assert_eq!(totals(&flow), (1, 1));
            clock.advance(Duration::from_secs(seconds));
            flow.tick();
        }
        let rejected = waits.await.expect("no panic").expect_err("no seat");
        assert_eq!(rejected.reason, Rejection::TimeOut);
        drop(permit);
    });
    assert_idle(&flow);
}

#[test]
fn without_a_runtime_a_tick_wakes_those_whose_time_is_over() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    let admit = || Box::pin(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT));
    let Poll::Ready(Ok(permit)) = admit().as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("there is a seat")
    };
    let woken = Arc::new(Woken::default());
    let mut waits = admit();
    assert!(waits.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&woken)))).is_pending());
    assert_eq!(flow.tick(), Duration::from_secs(10), "seats are divided");
    clock.advance(Duration::from_secs(10));
    assert_eq!(flow.tick(), Duration::from_secs(5), "the wait is over");
    assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    clock.advance(Duration::from_secs(5));
    flow.tick();
    assert_eq!(woken.0.load(Ordering::Relaxed), 1, "its time is over");
    assert_eq!(totals(&flow), (0, 1), "it has left its queue before anybody looks");
    let Poll::Ready(Err(rejected)) = waits.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it was rejected")
    };
    assert_eq!(rejected.reason, Rejection::TimeOut);
    drop((waits, permit));
    assert_idle(&flow);
}

#[test]
fn requests_look_at_the_time_themselves_when_the_runtime_of_the_keeper_is_gone() {
    let keeper = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let flow = keeper.block_on(async {
        let builder = FlowControl::builder().kubernetes().server_concurrency(1);
        builder.wait_limit(Duration::from_millis(50)).build()
    });
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let admit = || flow.admit(attributes(&user), WorkEstimate::ONE_SEAT);
        let permit = admit().await.expect("a permit");
        // One that waits while there is still a keeper, which is not running, and one that comes when there is none.
        let mut waits = Box::pin(admit());
        let woken = Arc::new(Woken::default());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&woken)))).is_pending());
        std::thread::spawn(move || drop(keeper)).join().expect("no panic");
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "it has to look after itself");
        assert_eq!(waits.await.expect_err("no seat").reason, Rejection::TimeOut);
        assert_eq!(admit().await.expect_err("no seat").reason, Rejection::TimeOut);
        drop(permit);
    });
    assert_idle(&flow);
}

#[test]
fn without_a_runtime_the_wait_limit_holds() {
    let flow =
        FlowControl::builder().kubernetes().server_concurrency(1).wait_limit(Duration::ZERO).drive_by_hand().build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    let admit = || Box::pin(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT));
    let permit = admit();
    let Poll::Ready(result) = admit().as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("its time is over")
    };
    assert_eq!(result.expect_err("no seat").reason, Rejection::TimeOut);
    drop(permit);
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_and_a_level_without_queues_turn_away_at_once() {
    let reasons = [
        (queuing_up_to("tenants", 10_000, 2), Rejection::QueueFull, 2),
        (rejecting("tenants", 10_000), Rejection::ConcurrencyLimit, 0),
    ];
    for (level, reason, waiting) in reasons {
        let flow = one_seat(level);
        let user = user("a", "tenants");
        let admit = || flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
        let permit = admit().await.expect("a permit");
        let waits: Vec<_> = (0..waiting).map(|_| admit()).collect();
        let start = Instant::now();
        let rejected = admit().await.expect_err("no place");
        assert_eq!((rejected.reason, start.elapsed()), (reason, Duration::ZERO));
        drop((permit, waits));
        assert_idle(&flow);
    }
}

#[test]
fn the_time_to_come_back_is_that_of_the_engine() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).manual_clock(clock.clone()).build();
    flow.apply(objects([rejecting("tenants", 10_000)])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let user = user("a", "tenants");
    let admit = || runtime.block_on(flow.admit(attributes(&user), WorkEstimate::ONE_SEAT));
    let permit = admit().expect("a permit");
    let (mut engine, mut most) = (RetryAfter::default(), 0);
    for second in 0..40 {
        for _ in 0..if second < 20 { 100 } else { 1 } {
            let rejected = admit().expect_err("no seat");
            engine.record_drop(second);
            assert_eq!(rejected.retry_after, Duration::from_secs(engine.seconds().into()));
            assert_eq!(rejected.expected_wait, None);
            most = most.max(engine.seconds());
        }
        clock.advance(Duration::from_secs(1));
    }
    assert!(most > 8, "{most}: it has risen");
    drop(permit);
    assert_idle(&flow);
}

#[test]
fn hf_12_a_client_that_hangs_up_counts_as_one_that_was_turned_away() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing_up_to("tenants", 10_000, 50)])).unwrap();
    let user = user("a", "tenants");
    let admit = || flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    let poll = |admit: Arrived| pin!(admit).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Ok(permit)) = poll(admit()) else { panic!("there is a seat") };
    let mut engine = RetryAfter::default();
    for second in 0..20 {
        for _ in 0..20 {
            drop(admit());
            engine.record_drop(second);
        }
        clock.advance(Duration::from_secs(1));
    }
    let waits: Vec<_> = (0..50).map(|_| admit()).collect();
    let Poll::Ready(Err(rejected)) = poll(admit()) else { panic!("there is no place") };
    engine.record_drop(20);
    assert!(engine.seconds() > 8);
    assert_eq!(rejected.retry_after, Duration::from_secs(engine.seconds().into()));
    drop((permit, waits));
    assert_idle(&flow);
}

#[test]
fn outside_of_kubernetes_the_time_to_come_back_follows_from_what_waits() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency(1).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing_up_to("tenants", 10_000, 50)])).unwrap();
    let user = user("a", "tenants");
    let poll = |admit: Pin<&mut Arrived>| admit.poll(&mut Context::from_waker(Waker::noop()));
    let mut requests: VecDeque<_> =
        (0..51).map(|_| Box::pin(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT))).collect();
    let reject = || match poll(Box::pin(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT)).as_mut()) {
        Poll::Ready(Err(rejected)) => rejected,
        other => panic!("there is a place: {other:?}"),
    };
    assert_eq!(reject().expected_wait, Some(Duration::ZERO), "nothing is known yet");
    // Each runs for 100 ms.
    for _ in 0..100 {
        let mut first = requests.pop_front().unwrap();
        let Poll::Ready(Ok(permit)) = poll(first.as_mut()) else { panic!("it is its turn") };
        clock.advance(Duration::from_millis(100));
        drop(permit);
        requests.push_back(Box::pin(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT)));
    }
    let mut seconds = BTreeSet::new();
    for _ in 0..100 {
        let rejected = reject();
        assert_eq!((rejected.reason, rejected.priority_level()), (Rejection::QueueFull, "tenants"));
        let expected = rejected.expected_wait.unwrap();
        assert!(expected.abs_diff(Duration::from_millis(5_100)) < Duration::from_millis(20), "{expected:?}");
        seconds.insert(rejected.retry_after.as_secs());
    }
    assert_eq!(seconds, BTreeSet::from([6, 7, 8]), "clients do not come back together");

    // Half of them give up: the rest is half as long.
    requests.drain(26..);
    let mut last =
        Box::pin(flow.arrive_request(FlowRequest::new(attributes(&user)).patience(patience(Duration::from_secs(4)))));
    assert!(poll(last.as_mut()).is_pending());
    clock.advance(Duration::from_secs(1));
    let Poll::Ready(Err(rejected)) = poll(last.as_mut()) else { panic!("its time is over") };
    assert_eq!(rejected.reason, Rejection::TimeOut);
    let expected = rejected.expected_wait.unwrap();
    // Nothing has ended for a second.
    assert!((2_600..3_200).contains(&expected.as_millis()), "{expected:?}");
    drop((requests, last));
    assert_idle(&flow);
}

#[test]
fn a_level_without_queues_expects_the_next_seat() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency(4).manual_clock(clock.clone()).build();
    flow.apply(objects([rejecting("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    let admit = || match pin!(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT))
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("nothing waits here"),
    };
    let mut permits: VecDeque<_> = std::iter::from_fn(|| admit().ok()).take(10).collect();
    assert!(permits.len() < 10, "all seats are taken");
    for _ in 0..100 {
        clock.advance(Duration::from_secs(3));
        drop(permits.pop_front());
        permits.push_back(admit().unwrap());
    }
    let rejected = admit().unwrap_err();
    assert_eq!(rejected.reason, Rejection::ConcurrencyLimit);
    let expected = rejected.expected_wait.unwrap();
    assert!(expected.abs_diff(Duration::from_secs(3)) < Duration::from_millis(500), "{expected:?}");
    assert!((3..=6).contains(&rejected.retry_after.as_secs()), "{:?}", rejected.retry_after);
}

/// Holds the seat for about as long as the others wait: some are let in, some are rejected, none both or neither.
async fn race(flow: FlowControl, requests: u32, hold: fn(u32) -> Duration) {
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let tasks: Vec<_> = (0..requests)
        .map(|n| {
            let (flow, counts) = (flow.clone(), Arc::clone(&counts));
            tokio::spawn(async move {
                let user = user(&format!("user-{}", n % 7), "tenants");
                let request = FlowRequest::new(attributes(&user)).patience(patience(Duration::from_millis(80)));
                match flow.admit_request(request).await {
                    Ok(permit) => {
                        counts[0].fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(hold(n)).await;
                        drop(permit);
                    }
                    Err(rejected) => {
                        assert_eq!(rejected.reason, Rejection::TimeOut);
                        counts[1].fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let [admitted, rejected] = [0, 1].map(|n: usize| counts[n].load(Ordering::Relaxed));
    assert_eq!(admitted + rejected, requests);
    assert!(admitted > 0 && rejected > 0, "{admitted} and {rejected}: nothing raced");
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn time_outs_race_with_starts_in_paused_time() {
    // Everything happens in the same milliseconds: the waits end when permits do.
    race(one_seat(queuing("tenants", 10_000)), 200, |_| Duration::from_millis(20)).await;
    race(one_seat(queuing("tenants", 10_000)), 200, |n| Duration::from_millis(u64::from(n % 3) * 10)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_outs_race_with_starts_in_real_time() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(2).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    for _ in 0..5 {
        race(flow.clone(), 500, |n| Duration::from_micros(u64::from(n % 5) * 500)).await;
    }
}
