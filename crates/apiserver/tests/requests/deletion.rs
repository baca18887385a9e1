//! Deletions that wait for a garbage collector, which the server is itself (API-70).

use evenkeel_apiserver::{ApiServer, ApiServerOptions, GarbageCollector, StatusController};
use evenkeel_store::{Change, WatchOptions};
use http::Method;
use serde_json::{Value, json};

use crate::ask::{JSON, SCHEMAS, ask, create, get, memory, server, server_over};

const KIND: evenkeel_api::Kind = evenkeel_api::Kind::FlowSchema;

#[tokio::test]
async fn api_70_the_finalizers_of_a_garbage_collector_go_away_by_themselves() {
    let store = memory();
    let server = server_over(store.clone()).await;
    for (name, own, body) in [
        ("foreground", json!([]), r#"{"propagationPolicy":"Foreground"}"#),
        ("orphan", json!([]), r#"{"propagationPolicy":"Orphan"}"#),
        ("carries", json!(["orphan"]), ""),
        ("others", json!(["example.com/hold"]), r#"{"propagationPolicy":"Foreground"}"#),
    ] {
        assert_eq!(create(&server, &json!({"name": name, "finalizers": own})).await.status, 201);
        let mut watch = store.watch(WatchOptions::of(KIND, store.revision().await.unwrap())).await.unwrap();
        let path = format!("{SCHEMAS}/{name}");
        let marked = ask(&server, Method::DELETE, &path, JSON, body).await;
        assert_eq!((marked.status, &marked.body()["kind"]), (200, &json!("FlowSchema")), "{name}");
        assert!(marked.body()["metadata"]["deletionTimestamp"].is_string(), "{name}");
        // The mark, and what the collector makes of it.
        watch.next().await.unwrap();
        let collected = watch.next().await.unwrap();
        if name == "others" {
            assert!(matches!(collected.change, Change::Updated { .. }), "{name}");
            assert_eq!(get(&server, &path).await.body()["metadata"]["finalizers"], own);
        } else {
            assert!(matches!(collected.change, Change::Deleted { .. }), "{name}");
            assert_eq!(get(&server, &path).await.status, 404, "{name}");
        }
    }
}

#[tokio::test]
async fn api_70_a_deletion_that_names_no_policy_keeps_the_finalizer_that_is_there() {
    let off = ApiServerOptions {
        garbage_collector: GarbageCollector::Off,
        status_controller: StatusController::Off,
        ..ApiServerOptions::default()
    };
    let server = ApiServer::start(memory(), &off).await.unwrap();
    let path = format!("{SCHEMAS}/a");
    for (finalizer, body, kept) in [
        ("orphan", "", Some("orphan")),
        ("foregroundDeletion", "{}", Some("foregroundDeletion")),
        ("orphan", r#"{"propagationPolicy":"Foreground"}"#, Some("foregroundDeletion")),
        ("orphan", r#"{"propagationPolicy":"Background"}"#, None),
        ("foregroundDeletion", r#"{"orphanDependents":false}"#, None),
    ] {
        assert_eq!(create(&server, &json!({"name": "a", "finalizers": [finalizer]})).await.status, 201);
        let deleted = ask(&server, Method::DELETE, &path, JSON, body).await;
        let found: Value = deleted.body()["metadata"]["finalizers"].clone();
        assert_eq!(found, kept.map_or(Value::Null, |kept| json!([kept])), "{finalizer} {body}");
        if kept.is_some() {
            let gone = ask(&server, Method::DELETE, &path, JSON, r#"{"propagationPolicy":"Background"}"#).await;
            assert_eq!((gone.status, &gone.body()["status"]), (200, &json!("Success")));
        }
    }
}

#[tokio::test]
async fn a_dry_run_collects_nothing() {
    let server = server().await;
    assert_eq!(create(&server, &json!({"name": "a"})).await.status, 201);
    let path = format!("{SCHEMAS}/a");
    let body = r#"{"propagationPolicy":"Foreground","dryRun":["All"]}"#;
    assert_eq!(ask(&server, Method::DELETE, &path, JSON, body).await.status, 200);
    assert!(get(&server, &path).await.body()["metadata"].get("deletionTimestamp").is_none());
}
