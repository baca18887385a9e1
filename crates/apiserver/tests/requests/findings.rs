//! Writes are answered with what `evenkeel check` finds, where no kube-apiserver is the model.

use evenkeel::FlowControl;
use evenkeel_api::Preset;
use evenkeel_apiserver::{ApiServer, ApiServerOptions, GovernedFlow, StatusController};
use http::Method;
use serde_json::{Value, json};

use crate::ask::{JSON, MERGE_PATCH, SCHEMAS, ask, memory};

const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";

/// An API whose objects govern a server with eight seats.
async fn server(preset: Preset) -> ApiServer {
    let governed = GovernedFlow::default();
    governed.set(FlowControl::builder().preset(preset).server_concurrency(8).drive_by_hand().build());
    let status_controller = StatusController::Off;
    let options = ApiServerOptions { preset, status_controller, governed, ..ApiServerOptions::default() };
    ApiServer::start(memory(), &options).await.unwrap()
}

fn level(name: &str, queuing: &Value) -> Value {
    let response = json!({"type": "Queue", "queuing": queuing});
    let limited = json!({"nominalConcurrencyShares": 30, "limitResponse": response});
    json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}})
}

fn schema(name: &str, level: &str, precedence: u32) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{
                "subjects": [{"kind": "Group", "group": {"name": "tenants"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    })
}

/// The rules of the warnings about a write, each with the object that it is about.
async fn found(server: &ApiServer, method: Method, target: &str, body: &Value) -> Vec<String> {
    let kind = if method == Method::PATCH { MERGE_PATCH } else { JSON };
    let response = ask(server, method, target, kind, body.to_string()).await;
    assert!(response.status < 300, "{}", response.message());
    let rule = |warning: &String| {
        let (_, rest) = warning.split_once("299 - \"").unwrap();
        let object = rest.split_once(": ").unwrap().0.replace('\\', "");
        let rule = rest.rsplit_once('(').unwrap().1.trim_end_matches("\\\"").trim_end_matches(['"', ')']);
        format!("{object} {rule}")
    };
    response.warnings().iter().map(rule).collect()
}

#[tokio::test]
async fn writes_of_a_service_are_answered_with_what_a_check_finds() {
    let server = server(Preset::Plain).await;
    let queues = json!({"queues": 8, "handSize": 8, "queueLengthLimit": 10});
    // Nothing leads there yet, and that is how one begins.
    let wide = level("wide", &queues);
    assert_eq!(found(&server, Method::POST, LEVELS, &wide).await, [""; 0]);
    let patch = |label: &str| json!({"metadata": {"labels": {"a": label}}});
    let target = format!("{LEVELS}/wide");
    let unused = ["priority level \"wide\" unused-level"];
    assert_eq!(found(&server, Method::PATCH, &target, &patch("b")).await, unused);
    assert_eq!(
        found(&server, Method::POST, SCHEMAS, &schema("tenants", "wid", 100)).await,
        ["flow schema \"tenants\" dangling-level"]
    );
    let renamed = json!({"spec": {"priorityLevelConfiguration": {"name": "wide"}}});
    assert_eq!(found(&server, Method::PATCH, &format!("{SCHEMAS}/tenants"), &renamed).await, [""; 0]);
    let too_wide = ["priority level \"wide\" hand-collision", "priority level \"wide\" hand-too-wide"];
    assert_eq!(found(&server, Method::PATCH, &target, &patch("c")).await, too_wide);
    // Findings about another schema are told if the written one is why.
    assert_eq!(
        found(&server, Method::POST, &format!("{SCHEMAS}?dryRun=All"), &schema("first", "wide", 50)).await,
        ["flow schema \"tenants\" unreachable-schema"]
    );
    assert_eq!(
        found(&server, Method::POST, SCHEMAS, &schema("last", "wide", 200)).await,
        ["flow schema \"last\" unreachable-schema"]
    );
}

#[tokio::test]
async fn an_api_of_kubernetes_has_no_such_warnings() {
    let server = server(Preset::Kubernetes).await;
    let wide = level("wide", &json!({"queues": 8, "handSize": 8, "queueLengthLimit": 10}));
    assert_eq!(found(&server, Method::POST, LEVELS, &wide).await, [""; 0]);
    assert_eq!(found(&server, Method::POST, SCHEMAS, &schema("tenants", "wid", 100)).await, [""; 0]);
    assert_eq!(found(&server, Method::POST, SCHEMAS, &schema("last", "wide", 200)).await, [""; 0]);
}
