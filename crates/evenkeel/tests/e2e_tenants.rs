//! A greedy tenant beside ten polite ones: with Evenkeel they do not notice, with a plain concurrency limit they do.

mod e2e;

use e2e::{Server, TENANT, app};
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

/// How often it is looked at, at most. Whatever else the machine is busy with spoils a round now and then; a service that
/// is not fair spoils all of them.
const ROUNDS: usize = 5;

/// How many times as long the polite tenants wait beside the greedy one as they do by themselves (p99). Nobody polite may
/// be turned away.
async fn times_as_long(server: &Server, requests: usize) -> f64 {
    let alone = server.polite(POLITE, requests).await;
    let greedy = server.greedy(GREEDY).await;
    let beside = server.polite(POLITE, requests).await;
    assert!(greedy.stop().await > 0, "the greedy tenant gets what is left");
    assert_eq!((alone.rejected, beside.rejected), (0, 0), "no polite request is turned away");
    beside.p99().as_secs_f64() / alone.p99().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polite_tenants_do_not_notice_a_greedy_one() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(SEATS).objects(OBJECTS).build();
    let identify = TrustedHeaders::new(HeaderName::from_static(TENANT), HeaderName::from_static("x-plan"));
    let fair = Server::start(app().layer(flow.layer(identify))).await;
    let unfair = Server::start(app().layer(GlobalConcurrencyLimitLayer::new(SEATS as usize))).await;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let with_evenkeel = times_as_long(&fair, REQUESTS).await;
        let with_limit = times_as_long(&unfair, REQUESTS_WITH_LIMIT).await;
        println!("p99 beside a greedy tenant: {with_evenkeel:.2} times with Evenkeel, {with_limit:.2} times without");
        if with_evenkeel < 3.0 && with_limit > 3.0 && with_limit > 2.0 * with_evenkeel {
            return;
        }
        rounds.push((with_evenkeel, with_limit));
    }
    panic!("how much longer polite tenants wait with Evenkeel, and with a plain limit: {rounds:.2?}");
}
