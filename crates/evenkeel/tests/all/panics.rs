//! Handlers that panic: their seats go to whoever is next.

use crate::service;

use std::panic::{AssertUnwindSafe, catch_unwind};

use evenkeel::FlowControl;
use evenkeel_engine::WorkEstimate;

use service::{assert_idle, attributes, objects, queuing, totals, user};

fn one_seat() -> FlowControl {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).build();
    flow.apply(objects([queuing("tenants", 10_000)])).unwrap();
    flow
}

async fn handle(flow: FlowControl, panics: bool) {
    let permit = flow.admit(attributes(&user("a", "tenants")), WorkEstimate::ONE_SEAT).await.expect("a permit");
    tokio::task::yield_now().await;
    assert!(!panics, "the handler panics with {permit:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_panics_gives_its_seat_back() {
    let flow = one_seat();
    let tasks: Vec<_> = (0..40).map(|n| (n % 2 == 0, tokio::spawn(handle(flow.clone(), n % 2 == 0)))).collect();
    for (panics, task) in tasks {
        assert_eq!(task.await.is_err(), panics);
    }
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn a_panic_that_is_caught_gives_the_seat_back_at_once() {
    let flow = one_seat();
    let user = user("a", "tenants");
    let permit = flow.admit(attributes(&user), WorkEstimate::ONE_SEAT).await.expect("a permit");
    let waits = flow.arrive(attributes(&user), WorkEstimate::ONE_SEAT);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _permit = permit;
        panic!("the handler panics");
    }));
    assert!(result.is_err());
    assert_eq!(totals(&flow), (0, 1), "whoever waited runs");
    drop(waits.await.expect("a permit"));
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn an_estimate_that_panics_leaves_nothing_behind() {
    let flow = one_seat();
    let user = user("a", "tenants");
    let result = catch_unwind(AssertUnwindSafe(|| {
        let estimate = |_: evenkeel_engine::Attributes<'_>, _: &evenkeel_engine::LevelInfo| panic!("no estimate");
        drop(flow.arrive(attributes(&user), estimate));
    }));
    assert!(result.is_err());
    drop(flow.admit(attributes(&user), WorkEstimate::ONE_SEAT).await.expect("a permit"));
    assert_idle(&flow);
}
