//! Objects that change while requests run and wait: nobody loses a place, and levels go when they are empty.

use crate::service;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::clock::ManualClock;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::retry_after::RetryAfter;

use service::{assert_idle, attributes, level_names, objects, per_flow, queuing, rejecting, totals, user};

const MANDATORY: [&str; 2] = ["catch-all", "exempt"];

/// The sets of objects that follow each other: levels come, change, go and come back.
fn course() -> Vec<Objects> {
    vec![
        objects([queuing("blue", 40), queuing("green", 40)]),
        objects([per_flow("blue", 10, 10_000)]),
        objects([queuing("blue", 10), per_flow("green", 10, 10_000)]),
        objects([queuing("green", 100)]),
        objects([rejecting("blue", 40), queuing("green", 1)]),
        objects([]),
    ]
}

/// Requests of a client until somebody says stop, and how many were let in.
async fn requests(flow: FlowControl, client: usize, stop: Arc<AtomicBool>) -> u64 {
    let level = ["blue", "green"][client % 2];
    let (user, mut admitted) = (user(&format!("user-{client}"), level), 0);
    while !stop.load(Ordering::Acquire) {
        match flow.admit(attributes(&user), WorkEstimate::ONE_SEAT).await {
            Ok(permit) => {
                let (found, schema) = (permit.priority_level(), permit.flow_schema());
                assert!(found == schema && (found == level || found == "catch-all"), "{level}: {permit:?}");
                admitted += 1;
                tokio::task::yield_now().await;
            }
            Err(rejected) => {
                // Levels without queues, among them the one for the rest.
                assert_eq!(rejected.reason, Rejection::ConcurrencyLimit);
                tokio::task::yield_now().await;
            }
        }
    }
    admitted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn levels_come_and_go_under_load() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(20).build();
    let stop = Arc::new(AtomicBool::new(false));
    let clients = (0..2_000).map(|client| tokio::spawn(requests(flow.clone(), client, Arc::clone(&stop))));
    let clients: Vec<_> = clients.collect();
    for _ in 0..40 {
        for objects in course() {
            flow.apply(objects).unwrap();
            tokio::task::yield_now().await;
        }
    }
    stop.store(true, Ordering::Release);
    let mut admitted = 0;
    for client in clients {
        admitted += client.await.expect("no panic");
    }
    assert!(admitted > 0);
    // The last objects had no levels: the keeper may have removed all of them, or is about to.
    flow.tick();
    assert_eq!(level_names(&flow), MANDATORY);
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_removed_level_end_in_it_and_the_keeper_removes_it() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([queuing("blue", 10_000)])).unwrap();
    let user = user("a", "blue");
    let admit = || flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    let permit = admit().await.expect("a permit");
    let (next, last) = (admit(), admit());
    flow.apply(objects([])).unwrap();
    assert_eq!(totals(&flow), (2, 1));
    let other = admit().await.expect("a seat of another level");
    assert_eq!(other.priority_level(), "catch-all");
    drop(permit);
    let next = next.await.expect("a permit");
    assert_eq!(next.priority_level(), "blue");
    drop((next, other));
    let last = last.await.expect("a permit");
    assert!(level_names(&flow).contains(&"blue".to_owned()));
    drop(last);
    // The keeper hears of it, and does not wait for its next time.
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(level_names(&flow), MANDATORY);
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn a_level_that_comes_back_keeps_its_requests() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([queuing("blue", 10_000)])).unwrap();
    let user = user("a", "blue");
    let admit = || flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    let permit = admit().await.expect("a permit");
    let next = admit();
    flow.apply(objects([])).unwrap();
    flow.apply(objects([queuing("blue", 10_000)])).unwrap();
    let newcomer = admit();
    assert_eq!(totals(&flow), (2, 1));
    drop(permit);
    drop(next.await.expect("a permit"));
    drop(newcomer.await.expect("a permit"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(level_names(&flow).contains(&"blue".to_owned()));
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn hf_13_a_level_that_comes_back_remembers_whom_it_turned_away() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).manual_clock(clock.clone()).build();
    flow.apply(objects([rejecting("blue", 10_000)])).unwrap();
    let user = user("a", "blue");
    let admit = || flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    let (mut engine, mut permit) = (RetryAfter::default(), Some(admit().await.expect("a permit")));
    for second in 0..10 {
        for _ in 0..100 {
            assert_eq!(admit().await.expect_err("no seat").priority_level(), "blue");
            engine.record_drop(second);
        }
        clock.advance(Duration::from_secs(1));
        if second == 5 {
            drop(permit.take());
            flow.apply(objects([])).unwrap();
            assert_eq!(level_names(&flow), MANDATORY);
            flow.apply(objects([rejecting("blue", 10_000)])).unwrap();
            permit = Some(admit().await.expect("a permit"));
        }
    }
    let rejected = admit().await.expect_err("no seat");
    engine.record_drop(10);
    assert!(engine.seconds() > 4);
    assert_eq!(rejected.retry_after, Duration::from_secs(engine.seconds().into()));
    drop(permit);
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn more_seats_start_who_waits() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(4).build();
    flow.apply(objects([queuing("blue", 5), queuing("green", 500_000)])).unwrap();
    let user = user("a", "blue");
    let admit = || tokio::spawn(flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT));
    let tasks: Vec<_> = (0..4).map(|_| admit()).collect();
    tokio::task::yield_now().await;
    assert_eq!(totals(&flow), (3, 1));
    flow.apply(objects([queuing("blue", 500_000), queuing("green", 5)])).unwrap();
    assert_eq!(totals(&flow), (0, 4));
    for task in tasks {
        drop(task.await.expect("no panic").expect("a permit"));
    }
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn seats_come_and_go_while_requests_run_and_wait() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([queuing("blue", 10_000)])).unwrap();
    let user = user("a", "blue");
    let admit = || flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    let first = admit().await.unwrap();
    let mut second = Box::pin(admit());
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut second).await.is_err(), "there is one seat");
    flow.set_server_concurrency(2);
    let second = tokio::time::timeout(Duration::from_secs(1), second).await.expect("there are two seats").unwrap();

    flow.set_server_concurrency(1);
    let mut third = Box::pin(admit());
    drop(first);
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut third).await.is_err(), "the one seat is taken");
    drop(second);
    drop(tokio::time::timeout(Duration::from_secs(1), third).await.expect("the seat is free").unwrap());
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn a_new_wait_limit_is_for_requests_that_arrive() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).wait_limit(Duration::from_secs(20)).build();
    flow.apply(objects([queuing("blue", 10_000)])).unwrap();
    let user = user("a", "blue");
    let admit = || flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    let running = admit().await.unwrap();
    let before = admit();
    flow.set_wait_limit(Duration::from_secs(2));
    let begun = tokio::time::Instant::now();
    assert_eq!(admit().await.unwrap_err().reason, Rejection::TimeOut);
    let waited = begun.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(3)).contains(&waited), "{waited:?}");
    drop(running);
    drop(before.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn bm_3_the_mode_changes_under_load_and_nobody_notices() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([queuing("blue", 10_000)])).unwrap();
    let users = ["a", "b"].map(|name| user(name, "blue"));
    let admit = |index: usize| flow.arrive(attributes(&users[index % 2]), WorkEstimate::ONE_SEAT);
    let running = admit(0).await.unwrap();
    let waiting: Vec<_> = (0..6).map(admit).collect();
    for level in [per_flow("blue", 10_000, 1), queuing("blue", 10_000), per_flow("blue", 10_000, 1)] {
        flow.apply(objects([level])).unwrap();
        assert_eq!(totals(&flow), (6, 1), "nobody is rejected, although only one of each flow may wait now");
    }
    drop(running);
    for waiting in waiting {
        drop(waiting.await.expect("everybody has a turn, in the order of arrival"));
    }
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn pf_7_a_waiting_request_that_gives_way_is_rejected_at_once() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    // Two of a flow may wait, and eight of all.
    flow.apply(objects([per_flow("blue", 10_000, 2)])).unwrap();
    let admit = |name: &str| flow.arrive(attributes(&user(name, "blue")), WorkEstimate::ONE_SEAT);
    let running = admit("a").await.unwrap();
    let first = admit("a");
    let youngest = tokio::spawn(admit("a"));
    let others: Vec<_> = ["b", "c", "d", "e", "f", "g"].into_iter().map(admit).collect();
    tokio::task::yield_now().await;
    assert_eq!(totals(&flow), (8, 1));
    let own = admit("a").await.expect_err("two of the flow wait");
    assert_eq!(own.reason, Rejection::QueueFull);

    let small = admit("h");
    let rejected = tokio::time::timeout(Duration::from_millis(10), youngest).await.expect("it is told at once");
    let rejected = rejected.unwrap().expect_err("it has given way");
    assert_eq!((rejected.reason, rejected.priority_level()), (Rejection::QueueFull, "blue"));
    assert!(rejected.retry_after >= Duration::from_secs(1));
    assert_eq!(totals(&flow), (8, 1));

    // Nobody polls this one before it is dropped.
    let unpolled = admit("a");
    drop((running, first, small, others, unpolled));
    assert_idle(&flow);
}
