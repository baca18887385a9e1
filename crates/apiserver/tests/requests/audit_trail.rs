//! Who has changed what is in a file.

use std::time::{Duration, Instant};

use evenkeel::identify::authenticated;
use evenkeel_apiserver::{ApiServer, ApiServerOptions, AuditTrail, StatusController};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::ask::{JSON, MERGE_PATCH, SCHEMAS, ask, ask_as, create, get, memory, schema};

#[tokio::test]
async fn every_stored_change_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let options = ApiServerOptions {
        status_controller: StatusController::Off,
        audit_trail: AuditTrail::open(&file).unwrap(),
        ..ApiServerOptions::default()
    };
    let server = ApiServer::start(memory(), &options).await.unwrap();
    let object = format!("{SCHEMAS}/a");
    assert_eq!(create(&server, &json!({"name": "a"})).await.status, 201);
    assert_eq!(create(&server, &json!({"name": "a"})).await.status, 409, "what is rejected is no change");
    let dry = format!("{SCHEMAS}?dryRun=All");
    assert_eq!(ask(&server, Method::POST, &dry, JSON, schema(&json!({"name": "b"})).to_string()).await.status, 201);
    let patch = r#"{"spec":{"matchingPrecedence":7}}"#;
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(MERGE_PATCH))]);
    let editor = authenticated("ed", ["evenkeel:editors"]);
    let target = format!("{object}?fieldManager=tests");
    assert_eq!(ask_as(&server, editor, Method::PATCH, &target, headers, patch).await.status, 200);
    let revision = get(&server, &object).await.body()["metadata"]["resourceVersion"].clone();
    assert_eq!(ask(&server, Method::DELETE, &format!("{object}?dryRun=All"), JSON, "").await.status, 200);
    assert_eq!(ask(&server, Method::DELETE, &object, JSON, "").await.status, 200);
    let lines = until_lines(&file, 3).await;
    let told: Vec<_> = lines.iter().map(|line| [&line["user"], &line["verb"], &line["kind"], &line["name"]]).collect();
    assert_eq!(
        told,
        [
            ["admin", "create", "FlowSchema", "a"],
            ["ed", "patch", "FlowSchema", "a"],
            ["admin", "delete", "FlowSchema", "a"]
        ]
    );
    assert_eq!(
        (&lines[1]["fieldManager"], &lines[1]["resourceVersion"], &lines[1]["generation"]),
        (&json!("tests"), &revision, &json!(2))
    );
    assert_eq!(lines[1]["groups"], json!(["evenkeel:editors", "system:authenticated"]));
}

/// A line says who sent the request, also if it was sent as another user, and every object that a request deletes has one.
#[tokio::test]
async fn impersonation_and_collections_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.log");
    let options = ApiServerOptions {
        status_controller: StatusController::Off,
        audit_trail: AuditTrail::open(&file).unwrap(),
        ..ApiServerOptions::default()
    };
    let server = ApiServer::start(memory(), &options).await.unwrap();
    for name in ["a", "b"] {
        let sent = schema(&json!({"name": name, "labels": {"test": "yes"}})).to_string();
        let mut request = http::Request::new(http_body_util::Full::new(bytes::Bytes::from(sent)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = SCHEMAS.parse().unwrap();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        request.headers_mut().insert("impersonate-user", HeaderValue::from_static("ed"));
        request.headers_mut().insert("impersonate-group", HeaderValue::from_static("evenkeel:editors"));
        let identity = |_: &http::request::Parts| Ok(authenticated("admin", ["system:masters"]));
        let response = tower_service::Service::call(&mut server.service(identity), request).await.unwrap();
        assert_eq!(response.status(), 201);
    }
    let selected = format!("{SCHEMAS}?labelSelector=test%3Dyes");
    assert_eq!(ask(&server, Method::DELETE, &selected, JSON, "").await.status, 200);
    let lines = until_lines(&file, 4).await;
    let told: Vec<_> =
        lines.iter().map(|line| [&line["user"], &line["impersonatedBy"], &line["verb"], &line["name"]]).collect();
    let null = &Value::Null;
    assert_eq!(
        told,
        [
            [&json!("ed"), &json!("admin"), &json!("create"), &json!("a")],
            [&json!("ed"), &json!("admin"), &json!("create"), &json!("b")],
            [&json!("admin"), null, &json!("deletecollection"), &json!("a")],
            [&json!("admin"), null, &json!("deletecollection"), &json!("b")],
        ]
    );
    assert!(lines.iter().all(|line| line["formatVersion"] == 1));
}

/// The lines of the file, as soon as there are that many: another thread writes it.
async fn until_lines(path: &std::path::Path, count: usize) -> Vec<Value> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(Instant::now() < until, "{text}");
        tokio::task::yield_now().await;
    }
}
