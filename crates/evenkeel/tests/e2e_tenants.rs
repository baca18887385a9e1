//! A greedy tenant beside ten polite ones: with Evenkeel they do not notice, with a plain concurrency limit they do.

mod e2e;

use std::time::Duration;

use e2e::{Seen, Server, TENANT, app};
use evenkeel::FlowControl;
use evenkeel::identify::TrustedHeaders;
use http::HeaderName;
use tower::limit::GlobalConcurrencyLimitLayer;

const SEATS: u32 = 16;
const POLITE: usize = 10;
/// Fifty times what a tenant may have if all eleven ask for as much as they can get.
const GREEDY: usize = 50 * (SEATS as usize).div_ceil(POLITE + 1);
/// How often each polite tenant asks. A plain limit makes them wait for so long that a few times have to do.
const REQUESTS: usize = 30;
const REQUESTS_WITH_LIMIT: usize = 12;

const OBJECTS: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: tenants}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 1000
    limitResponse: {type: Queue, queuing: {queues: 128, handSize: 6, queueLengthLimit: 20}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: tenants}
spec:
  priorityLevelConfiguration: {name: tenants}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: Group, group: {name: system:authenticated}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";

/// What the polite tenants see by themselves, and beside the greedy one.
async fn alone_and_beside_greedy(server: &Server, requests: usize) -> (Seen, Seen) {
    let alone = server.polite(POLITE, requests).await;
    let greedy = server.greedy(GREEDY).await;
    let beside = server.polite(POLITE, requests).await;
    let answers = greedy.stop().await;
    assert!(answers > 0, "the greedy tenant gets what is left");
    (alone, beside)
}

fn ratio(beside: Duration, alone: Duration) -> f64 {
    beside.as_secs_f64() / alone.as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polite_tenants_do_not_notice_a_greedy_one() {
    let flow = FlowControl::builder().server_concurrency(SEATS).objects(OBJECTS).unwrap().build();
    let identify = TrustedHeaders::new(HeaderName::from_static(TENANT), HeaderName::from_static("x-plan"));
    let fair = Server::start(app().layer(flow.layer(identify))).await;
    let (alone, beside) = alone_and_beside_greedy(&fair, REQUESTS).await;
    drop(fair);
    let with_evenkeel = ratio(beside.p99(), alone.p99());
    assert_eq!((alone.rejected, beside.rejected), (0, 0), "no polite request is turned away");

    let unfair = Server::start(app().layer(GlobalConcurrencyLimitLayer::new(SEATS as usize))).await;
    let (alone, beside) = alone_and_beside_greedy(&unfair, REQUESTS_WITH_LIMIT).await;
    let with_limit = ratio(beside.p99(), alone.p99());

    println!("p99 beside a greedy tenant: {with_evenkeel:.2} times with Evenkeel, {with_limit:.2} times without");
    assert!(with_evenkeel < 3.0, "with Evenkeel, polite tenants wait {with_evenkeel:.2} times as long");
    assert!(with_limit > 3.0, "a plain limit would do as well: {with_limit:.2}");
    assert!(with_limit > 2.0 * with_evenkeel, "{with_limit:.2} is not much worse than {with_evenkeel:.2}");
}
