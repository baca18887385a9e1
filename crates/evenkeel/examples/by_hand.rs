//! Flow control without HTTP, without a runtime and without a clock: the program says what time it is, and calls `tick`.
//!
//!     cargo run -p evenkeel --example by_hand

#![allow(clippy::print_stdout, reason = "it is there to show something")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel::clock::ManualClock;
use evenkeel::request::Arrived;
use evenkeel::{Attributes, FlowControl, Permit, Rejected, RequestInfo, User, WorkEstimate};

fn main() {
    let level = PriorityLevelConfiguration::builder("jobs")
        .limited(|l| l.shares(100).queue(|q| q.queues(1).hand_size(1).queue_length_limit(2)))
        .build();
    let schema = FlowSchema::builder("jobs")
        .priority_level("jobs")
        .rule(|r| r.user("*").non_resource_urls(["/jobs/*"]).verbs(["*"]))
        .build();
    let clock = ManualClock::new();
    let flow =
        FlowControl::builder().server_concurrency(1).manual_clock(clock.clone()).objects(level).objects(schema).build();

    // A job keeps its seat for two seconds after it has ended, to pay for what it has caused elsewhere.
    let work = WorkEstimate { final_seats: 1, additional_latency: 2_000_000_000, ..WorkEstimate::ONE_SEAT };
    let user = User::new("alice", ["staff"]);
    let arrive = |name: &str| {
        let request =
            RequestInfo { path: format!("/jobs/{name}").into(), verb: "run".into(), ..RequestInfo::default() };
        Box::pin(flow.arrive(Attributes { user: &user, request: &request }, work))
    };

    let mut first = arrive("first");
    let Poll::Ready(Ok(permit)) = poll(&mut first) else { unreachable!("there is a seat") };
    println!("first job runs: {permit:?}");

    let mut second = arrive("second");
    println!("second job waits: {}", poll(&mut second).is_pending());

    drop(permit);
    println!("first job has ended, and its seat lingers; second job waits: {}", poll(&mut second).is_pending());

    clock.advance(Duration::from_secs(2));
    println!("two seconds later; the next tick is due in {:?}", flow.tick());
    let Poll::Ready(Ok(_permit)) = poll(&mut second) else { unreachable!("the seat is free") };
    println!("second job runs");

    let mut third = arrive("third");
    println!("third job waits: {}", poll(&mut third).is_pending());
    clock.advance(Duration::from_secs(15));
    if let Poll::Ready(Err(rejected)) = poll(&mut third) {
        println!("fifteen seconds later, third job: {rejected}");
    }
}

/// Looks whether a job may run. A real program would have a waker that puts the job back on its list.
fn poll(job: &mut Pin<Box<Arrived>>) -> Poll<Result<Permit, Box<Rejected>>> {
    job.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
