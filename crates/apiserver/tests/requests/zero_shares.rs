//! Zero shares that a write in an older version loses (API-25, API-63).

use evenkeel_api::Preset;
use evenkeel_apiserver::{ApiServer, ApiServerOptions, StatusController};
use http::Method;
use serde_json::{Value, json};

use crate::ask::{JSON, MERGE_PATCH, Response, SCHEMAS, ask, get, memory};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

fn path(version: &str, name: &str) -> String {
    format!("/apis/{GROUP}/{version}/prioritylevelconfigurations/{name}")
}

/// Sets the shares of the level `jail` to zero.
async fn zero(server: &ApiServer) {
    let patch = r#"{"spec":{"limited":{"nominalConcurrencyShares":0}}}"#;
    assert_eq!(ask(server, Method::PATCH, &path("v1", "jail"), MERGE_PATCH, patch).await.status, 200);
}

/// Reads the level in a version, and writes it back.
async fn write_back(server: &ApiServer, version: &str) -> Response {
    let read: Value = get(server, &path(version, "jail")).await.body();
    ask(server, Method::PUT, &path(version, "jail"), JSON, read.to_string()).await
}

async fn server(preset: Preset) -> ApiServer {
    let options = ApiServerOptions { preset, status_controller: StatusController::Off, ..ApiServerOptions::default() };
    let server = ApiServer::start(memory(), &options).await.unwrap();
    let level = json!({
        "metadata": {"name": "jail"},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"}}},
    });
    let levels = format!("/apis/{GROUP}/v1/prioritylevelconfigurations");
    assert_eq!(ask(&server, Method::POST, &levels, JSON, level.to_string()).await.status, 201);
    let schema = json!({
        "metadata": {"name": "jail"},
        "spec": {
            "priorityLevelConfiguration": {"name": "jail"},
            "rules": [{
                "subjects": [{"kind": "Group", "group": {"name": "inmates"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    });
    assert_eq!(ask(&server, Method::POST, SCHEMAS, JSON, schema.to_string()).await.status, 201);
    server
}

#[tokio::test]
async fn api_63_a_write_in_an_older_version_that_loses_zero_shares_is_warned_of() {
    let server = server(Preset::Plain).await;
    for version in ["v1beta1", "v1beta2"] {
        zero(&server).await;
        let written = write_back(&server, version).await;
        let expected = format!(
            "299 - \"priority level \\\"jail\\\" had 0 concurrency shares and has 30 now: {version} takes 0 for the default; \
             to keep 0, write the level in {GROUP}/v1\""
        );
        assert_eq!(written.warnings()[1..], [expected], "the first one is about the version");
    }
    zero(&server).await;
    let patch = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    let patched = ask(&server, Method::PATCH, &path("v1beta2", "jail"), MERGE_PATCH, patch).await;
    assert_eq!(patched.warnings().len(), 2, "a patch that does not mention shares: {:?}", patched.warnings());
    // Without a loss there is no warning.
    for version in ["v1", "v1beta3"] {
        zero(&server).await;
        let written = write_back(&server, version).await;
        assert!(!written.warnings().iter().any(|warning| warning.contains("shares")), "{:?}", written.warnings());
    }
}

/// Kubernetes has no such warning, and the recordings do not have it.
#[tokio::test]
async fn a_kubernetes_api_has_no_such_warning() {
    let server = server(Preset::Kubernetes).await;
    assert_eq!(write_back(&server, "v1beta2").await.warnings().len(), 1);
}
