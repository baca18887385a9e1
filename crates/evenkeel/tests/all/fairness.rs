//! Two tenants that ask for the same get the same, and a greedy one gets no more than a modest one.

use crate::service;

use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::WorkEstimate;

use service::{assert_idle, attributes, objects, user};

/// How many requests each tenant gets through in ten seconds, when it has that many under way all the time.
async fn admitted(clients: [usize; 2]) -> [u32; 2] {
    let flow = FlowControl::builder().kubernetes().server_concurrency(4).build();
    let queue = |q: evenkeel_api::build::QueueBuilder| q.queues(64).hand_size(4).queue_length_limit(1_000);
    let level = PriorityLevelConfiguration::builder("tenants").limited(|l| l.shares(10_000).queue(queue)).build();
    flow.apply(objects([level])).unwrap();
    let end = tokio::time::Instant::now() + Duration::from_secs(10);
    let client = |name: &'static str| {
        let flow = flow.clone();
        tokio::spawn(async move {
            let (user, mut admitted) = (user(name, "tenants"), 0);
            while tokio::time::Instant::now() < end {
                let permit = flow.admit(attributes(&user), WorkEstimate::ONE_SEAT).await.expect("a permit");
                tokio::time::sleep(Duration::from_millis(5)).await;
                drop(permit);
                admitted += 1;
            }
            admitted
        })
    };
    let mut sums = [0, 0];
    let clients = [("one", clients[0]), ("other", clients[1])].map(|(name, n)| (0..n).map(|_| client(name)).collect());
    for (sum, tasks) in sums.iter_mut().zip::<[Vec<_>; 2]>(clients) {
        for task in tasks {
            *sum += task.await.expect("no panic");
        }
    }
    assert_idle(&flow);
    sums
}

#[tokio::test(start_paused = true)]
async fn equal_demand_is_served_equally() {
    let [one, other] = admitted([16, 16]).await;
    assert!(one + other > 6_000, "{one} and {other}: the seats are not used");
    assert!(one.abs_diff(other) * 50 < one + other, "{one} and {other}");
}

#[tokio::test(start_paused = true)]
async fn a_greedy_tenant_gets_no_more_than_its_half() {
    let [modest, greedy] = admitted([4, 400]).await;
    assert!(modest * 100 >= greedy * 90, "{modest} and {greedy}");
}
