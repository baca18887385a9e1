//! A client with slow requests does not starve the others (PF-10 to PF-12), and exempt requests make nobody wait (LB-1).

use std::time::Duration;

use evenkeel::{Attributes, FlowControl, Permit, RequestInfo, User};
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::WorkEstimate;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::service::{self, assert_idle, attributes};

const SLOW: Duration = Duration::from_secs(12);
const QUICK: Duration = Duration::from_millis(10);

/// So many requests of 12 s arrive, and run or wait.
async fn slow_requests(flow: &FlowControl, user: &User, count: usize) -> JoinSet<()> {
    let mut requests = JoinSet::new();
    for _ in 0..count {
        let (flow, user) = (flow.clone(), user.clone());
        requests.spawn(async move {
            let permit = flow.admit(attributes(&user), WorkEstimate::ONE_SEAT).await;
            sleep(SLOW).await;
            drop(permit);
        });
    }
    let arrived = || flow.status().iter().map(|level| level.waiting + level.executing).sum::<usize>();
    while arrived() < count {
        tokio::task::yield_now().await;
    }
    requests
}

/// How long a quick request waits.
async fn quick_request(flow: &FlowControl, user: &User) -> Duration {
    let before = Instant::now();
    let permit: Permit = flow.admit(attributes(user), WorkEstimate::ONE_SEAT).await.expect("a permit");
    let waited = before.elapsed();
    sleep(QUICK).await;
    drop(permit);
    waited
}

#[tokio::test(start_paused = true)]
async fn pf_10_quick_requests_do_not_wait_for_slow_ones_of_another_client() {
    let flow = FlowControl::builder().server_concurrency(10).wait_limit(Duration::from_secs(60)).build();
    let [greedy, other] = ["greedy", "other"].map(|name| User::new(name, ["system:authenticated"]));
    let slow = slow_requests(&flow, &greedy, 30).await;
    let level = flow.status().into_iter().find(|level| level.name == "everyone").unwrap();
    assert_eq!((level.executing, level.waiting, level.kept_seats), (8, 22, 2));
    let explained = flow.explain(attributes(&greedy), WorkEstimate::ONE_SEAT).live.unwrap().wait.why;
    assert!(explained.contains("2 seats are kept for new clients"), "{explained}");
    // Until the last of them has ended, and from the first moment on.
    for request in 0..40 {
        let waited = quick_request(&flow, &other).await;
        assert!(waited < Duration::from_millis(200), "request {request} waited for {waited:?}");
        sleep(Duration::from_secs(1)).await;
    }
    slow.join_all().await;
    assert_idle(&flow);
}

#[tokio::test(start_paused = true)]
async fn pf_10_a_client_with_quick_requests_uses_all_seats() {
    let flow = FlowControl::builder().server_concurrency(10).build();
    let user = User::new("alone", ["system:authenticated"]);
    let (before, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..20 {
        let (flow, user) = (flow.clone(), user.clone());
        clients.spawn(async move {
            for _ in 0..50 {
                quick_request(&flow, &user).await;
            }
        });
    }
    clients.join_all().await;
    let took = before.elapsed();
    assert!(took <= Duration::from_millis(1_030), "1000 requests of 10 ms on 10 seats take {took:?}");
}

/// A level with a queue for each flow that lends half of its seats.
fn lending(name: &str) -> PriorityLevelConfiguration {
    let queue = |q: evenkeel_api::build::QueueBuilder| q.queues(64).hand_size(8).queue_length_limit(50);
    let level = PriorityLevelConfiguration::builder(name);
    let level = level.limited(|l| l.shares(100).lendable_percent(50).queue(queue));
    level.annotation("evenkeel.dev/queuing", "per-flow").build()
}

#[tokio::test(start_paused = true)]
async fn pf_12_levels_that_borrow_at_once_keep_seats_for_newcomers_too() {
    let flow = FlowControl::builder().server_concurrency(20).wait_limit(Duration::from_secs(60)).build();
    flow.apply(service::objects([lending("batch"), lending("people")])).unwrap();
    let user = service::user;
    let slow = slow_requests(&flow, &user("greedy", "batch"), 40).await;
    let batch = flow.status().into_iter().find(|level| level.name == "batch").unwrap();
    assert!(batch.seats_in_use > batch.limits.nominal, "it has borrowed: {batch:?}");
    assert!(batch.kept_seats >= 2, "{batch:?}");
    let (other, person) = (user("other", "batch"), user("person", "people"));
    for request in 0..20 {
        for (who, user) in [("its own level", &other), ("the level that has lent seats", &person)] {
            let waited = quick_request(&flow, user).await;
            assert!(waited < Duration::from_millis(200), "request {request} of {who} waited for {waited:?}");
        }
        sleep(Duration::from_secs(1)).await;
    }
    slow.join_all().await;
    assert_idle(&flow);
}

#[test]
fn lb_1_exempt_requests_make_nobody_wait() {
    let flow = FlowControl::builder().server_concurrency(4).exempt_paths(["/poll"]).drive_by_hand().build();
    let user = User::new("alice", ["system:authenticated"]);
    let poll = RequestInfo { verb: "get".into(), path: "/poll".into(), ..RequestInfo::default() };
    let polls: Vec<_> =
        (0..12).map(|_| flow.arrive(Attributes { user: &user, request: &poll }, WorkEstimate::ONE_SEAT)).collect();
    let clients = ["a", "b", "c", "d"].map(|name| User::new(name, ["system:authenticated"]));
    let requests = clients.each_ref().map(|client| flow.arrive(attributes(client), WorkEstimate::ONE_SEAT));
    let level = flow.status().into_iter().find(|level| level.name == "everyone").unwrap();
    assert_eq!((level.executing, level.waiting), (4, 0), "all seats are theirs");
    drop((polls, requests));
    assert_idle(&flow);
}
