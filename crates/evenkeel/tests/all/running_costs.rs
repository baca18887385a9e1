//! Requests that turn out to cost more or less while they run (CO-4): `Permit::set_seats`, `Permit::charge`.

use std::time::Duration;

use evenkeel::{FlowControl, Permit, WorkEstimate};
use evenkeel_engine::User;

use crate::service::{assert_idle, attributes, objects, per_flow, user};

/// Levels that borrow from each other at once, each with half of four seats.
fn two_levels() -> FlowControl {
    let flow = FlowControl::builder().server_concurrency(5).build();
    flow.apply(objects([per_flow("web", 10, 10), per_flow("batch", 10, 10)])).unwrap();
    flow
}

fn arrive(flow: &FlowControl, user: &User) -> evenkeel::request::Arrived {
    flow.arrive(attributes(user), WorkEstimate::ONE_SEAT)
}

/// The permit of a request, if it gets one without anybody else doing something.
async fn started(request: &mut evenkeel::request::Arrived) -> Option<Permit> {
    tokio::time::timeout(Duration::from_millis(1), request).await.ok().map(|permit| permit.expect("a permit"))
}

fn seats_in_use(flow: &FlowControl, level: &str) -> i64 {
    flow.status().iter().find(|status| status.name == level).unwrap().seats_in_use
}

#[tokio::test(start_paused = true)]
async fn co_4_seats_that_a_request_no_longer_needs_wake_who_waits_in_another_level() {
    let flow = two_levels();
    let (batch, web) = (user("etl", "batch"), user("alice", "web"));
    let report = arrive(&flow, &batch).await.unwrap();
    report.set_seats(9);
    assert_eq!((report.seats(), seats_in_use(&flow, "batch")), (9, 9), "more than there are: nothing is cut");
    let mut page = arrive(&flow, &web);
    assert!(started(&mut page).await.is_none(), "and nothing else starts");
    report.set_seats(2);
    assert!(started(&mut page).await.is_some());
    assert_eq!((report.seats(), seats_in_use(&flow, "batch")), (2, 2));
    drop(report);
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn co_4_who_is_charged_more_has_the_later_turn_and_a_refund_takes_it_back() {
    for (is_refunded, dear_is_first) in [(false, false), (true, true)] {
        let flow = FlowControl::builder().server_concurrency(3).build();
        flow.apply(objects([per_flow("web", 10, 10)])).unwrap();
        let [dear, cheap, third] = ["dear", "cheap", "third"].map(|name| user(name, "web"));
        // Both seats of the level are taken for as long; `catch-all` keeps the third.
        let (running, other) = (arrive(&flow, &dear).await.unwrap(), arrive(&flow, &third).await.unwrap());
        let mut waiting = [arrive(&flow, &dear), arrive(&flow, &cheap)];
        running.charge(Duration::from_secs(100));
        if is_refunded {
            running.refund(Duration::from_secs(100));
        }
        drop(running);
        let [dear, cheap] = &mut waiting;
        let first = (started(dear).await, started(cheap).await);
        assert_eq!((first.0.is_some(), first.1.is_some()), (dear_is_first, !dear_is_first), "refunded: {is_refunded}");
        drop((first, other, waiting));
        assert_idle(&flow);
    }
}

#[tokio::test(start_paused = true)]
async fn co_4_a_request_that_takes_no_seat_gets_none() {
    let flow = two_levels();
    let web = user("alice", "web");
    let poll = flow.arrive(attributes(&web), WorkEstimate::NO_SEAT).await.unwrap();
    poll.set_seats(3);
    assert_eq!((poll.seats(), seats_in_use(&flow, "web")), (0, 0));
    drop(poll);
    assert_idle(&flow);
}
