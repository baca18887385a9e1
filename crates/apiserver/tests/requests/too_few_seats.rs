//! Writes that would leave the server with fewer seats than levels that must have one (LB-2a).

use evenkeel::FlowControl;
use evenkeel_api::Preset;
use evenkeel_apiserver::{ApiServer, ApiServerOptions, GovernedFlow, StatusController};
use http::Method;
use serde_json::{Value, json};

use crate::ask::{JSON, MERGE_PATCH, Response, SCHEMAS, ask, get, memory};

const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const APPLY: &str = "application/apply-patch+yaml";

/// An API whose objects govern a server with two seats. At first, the level `everyone` needs one of them: all requests get there.
async fn server(preset: Preset) -> ApiServer {
    let flow = FlowControl::builder().preset(preset).server_concurrency(2).drive_by_hand().build();
    let governed = GovernedFlow::default();
    governed.set(flow);
    start(preset, governed).await
}

async fn start(preset: Preset, governed: GovernedFlow) -> ApiServer {
    let status_controller = StatusController::Off;
    let options = ApiServerOptions { preset, status_controller, governed, ..ApiServerOptions::default() };
    ApiServer::start(memory(), &options).await.unwrap()
}

fn level(name: &str, shares: u32) -> Value {
    let limited = json!({"nominalConcurrencyShares": shares, "limitResponse": {"type": "Reject"}});
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": limited},
    })
}

async fn create(server: &ApiServer, name: &str, shares: u32) -> Response {
    ask(server, Method::POST, LEVELS, JSON, level(name, shares).to_string()).await
}

async fn patch(server: &ApiServer, name: &str, shares: u32) -> u16 {
    let body = json!({"spec": {"limited": {"nominalConcurrencyShares": shares}}}).to_string();
    ask(server, Method::PATCH, &format!("{LEVELS}/{name}"), MERGE_PATCH, body).await.status
}

async fn delete(server: &ApiServer, path: &str) -> u16 {
    ask(server, Method::DELETE, path, JSON, "").await.status
}

#[tokio::test]
async fn lb_2a_a_write_that_leaves_too_few_seats_is_refused_and_nothing_is_stored() {
    let server = server(Preset::Plain).await;
    assert_eq!(create(&server, "a", 10).await.status, 201);
    let refused = create(&server, "b", 10).await;
    assert_eq!((refused.status, refused.body()["reason"].as_str()), (403, Some("Forbidden")));
    assert_eq!(
        refused.message(),
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io \"b\" is forbidden: 2 seats are too few for 3 priority \
         levels with shares (\"a\", \"b\", \"everyone\"): each of them needs a seat; set `concurrency` of the gateway to at \
         least 3, or delete a level first"
    );
    let body = level("b", 10).to_string();
    for (method, target, content_type) in [
        (Method::POST, format!("{LEVELS}?dryRun=All"), JSON),
        (Method::PATCH, format!("{LEVELS}/b?fieldManager=me"), APPLY),
    ] {
        assert_eq!(ask(&server, method, &target, content_type, body.clone()).await.status, 403, "{target}");
    }
    assert_eq!(get(&server, &format!("{LEVELS}/b")).await.status, 404);

    // A level without shares needs no seat, until it gets shares.
    assert_eq!(create(&server, "b", 0).await.status, 201);
    assert_eq!(patch(&server, "b", 10).await, 403);
    assert_eq!(ask(&server, Method::PUT, &format!("{LEVELS}/b"), JSON, body.clone()).await.status, 403);
    assert_eq!(get(&server, &format!("{LEVELS}/b")).await.body()["spec"]["limited"]["nominalConcurrencyShares"], 0);
    // A write that makes nothing worse is stored, and so is one that frees a seat.
    assert_eq!(patch(&server, "a", 20).await, 200);
    assert_eq!(delete(&server, &format!("{LEVELS}/a")).await, 200);
    assert_eq!(patch(&server, "b", 10).await, 200);
}

#[tokio::test]
async fn lb_2a_deletions_are_never_refused_and_what_is_short_already_may_change() {
    let server = server(Preset::Plain).await;
    assert_eq!(create(&server, "a", 10).await.status, 201);
    // From now on, requests can reach `catch-all`, which therefore needs a seat.
    assert_eq!(delete(&server, &format!("{SCHEMAS}/everyone")).await, 200);
    assert_eq!(patch(&server, "a", 20).await, 200);
    assert_eq!(create(&server, "b", 10).await.status, 403);
    assert_eq!(delete(&server, &format!("{LEVELS}/a")).await, 200);
}

#[tokio::test]
async fn lb_2a_a_schema_that_leads_to_one_level_more_is_refused() {
    let server = server(Preset::Plain).await;
    assert_eq!(create(&server, "a", 10).await.status, 201);
    let schema = json!({
        "metadata": {"name": "rest"},
        "spec": {"priorityLevelConfiguration": {"name": "catch-all"}},
    });
    let refused = ask(&server, Method::POST, SCHEMAS, JSON, schema.to_string()).await;
    assert_eq!(refused.status, 403, "{}", refused.message());
    assert!(refused.message().starts_with("flowschemas.flowcontrol.apiserver.k8s.io \"rest\" is forbidden: 2 seats"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lb_2a_of_two_writes_at_a_time_that_fit_one_by_one_only_one_is_stored() {
    let server = server(Preset::Plain).await;
    let (one, other) = tokio::join!(create(&server, "a", 10), create(&server, "b", 10));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 403]);
}

#[tokio::test]
async fn without_a_server_that_is_governed_and_with_seats_as_in_kubernetes_everything_is_stored() {
    for server in [start(Preset::Plain, GovernedFlow::default()).await, server(Preset::Kubernetes).await] {
        for name in ["a", "b", "c"] {
            assert_eq!(create(&server, name, 10).await.status, 201);
        }
    }
}
