//! Requests that linger: their seats are held after the permit is gone, and free at the right time.

use crate::service;

use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::clock::ManualClock;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::time::SECOND;
use tokio::time::Instant;

use service::{assert_idle, attributes, objects, queuing, user};

/// One seat while it runs, two for three seconds afterwards.
const LINGERS: WorkEstimate = WorkEstimate { initial_seats: 1, final_seats: 2, additional_latency: 3 * SECOND };

fn seats_in_use(flow: &FlowControl) -> i64 {
    flow.status().iter().map(|level| level.seats_in_use).sum()
}

#[tokio::test(start_paused = true)]
async fn the_keeper_frees_the_seats_when_the_time_has_come() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(2).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    drop(flow.admit(attributes(&user), LINGERS).await.expect("a permit"));
    let finished = Instant::now();
    assert_eq!(seats_in_use(&flow), 2);
    let next = flow.admit(attributes(&user), WorkEstimate::seats(2)).await.expect("a permit");
    // Tokio's timers go by the millisecond.
    let lingered = finished.elapsed();
    assert!(lingered >= Duration::from_secs(3) && lingered <= Duration::from_millis(3_002), "{lingered:?}");
    drop(next);
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_lingers_for_less_is_released_first() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(4).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let user = user("a", "tenants");
    let short = WorkEstimate { additional_latency: SECOND, ..LINGERS };
    drop(flow.admit(attributes(&user), LINGERS).await.expect("a permit"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(flow.admit(attributes(&user), short).await.expect("a permit"));
    for (pause, seats) in [(990, 4), (20, 2), (1_480, 2), (20, 0)] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        assert_eq!(seats_in_use(&flow), seats);
    }
    assert_idle(&flow);
}

#[test]
fn by_hand_the_seats_are_free_after_the_tick() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(2).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let user = user("a", "tenants");
    drop(runtime.block_on(flow.admit(attributes(&user), LINGERS)).expect("a permit"));
    assert_eq!(flow.tick(), Duration::from_secs(3));
    clock.advance(Duration::from_secs(2));
    assert_eq!(flow.tick(), Duration::from_secs(1));
    assert_eq!(seats_in_use(&flow), 2);
    clock.advance(Duration::from_secs(1));
    assert_eq!(flow.tick(), Duration::from_secs(7), "the next adjustment");
    assert_idle(&flow);
}

#[test]
fn a_level_goes_while_a_request_lingers_in_it() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(2).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    drop(runtime.block_on(flow.admit(attributes(&user("a", "tenants")), LINGERS)).expect("a permit"));
    flow.apply(objects([])).unwrap();
    assert_eq!(service::level_names(&flow), ["catch-all", "exempt"]);
    clock.advance(Duration::from_secs(4));
    flow.tick();
    assert_idle(&flow);
}
