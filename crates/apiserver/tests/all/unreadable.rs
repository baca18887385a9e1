//! A value in the store that is not an object: it does not keep the others from taking effect, and can be deleted.

use std::sync::Arc;
use std::time::Duration;

use evenkeel::identify::authenticated;
use evenkeel_api::Kind;
use evenkeel_apiserver::{ApiServer, ApiServerOptions, ObjectStream};
use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);
const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

async fn ask(server: &ApiServer, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut request = Request::new(Full::<bytes::Bytes>::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = format!("{GROUP}/{path}").parse().unwrap();
    request.extensions_mut().insert(authenticated("admin", ["system:masters"]));
    let (parts, body) = server.api().respond(request).await.into_parts();
    (parts.status, serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap())
}

/// Waits until a flow schema is among the objects that take effect, and asserts that the unreadable ones never are.
async fn takes_effect(objects: &mut ObjectStream, name: &str) {
    let followed = async {
        loop {
            let state = objects.next().await.unwrap();
            let names: Vec<_> = state.objects.flow_schemas.iter().map(|schema| schema.name()).collect();
            assert!(!names.contains(&"bad"));
            if names.contains(&name) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, followed).await.unwrap();
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_named_and_left_out_and_can_be_deleted() {
    let store = Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).unwrap());
    for kind in Kind::ALL {
        store.create(kind, "bad", "garbage".into()).await.unwrap();
    }
    let server = ApiServer::start(store, &ApiServerOptions::default()).await.unwrap();
    let mut objects = server.objects();
    takes_effect(&mut objects, "catch-all").await;

    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "new"},
        "spec": {"priorityLevelConfiguration": {"name": "exempt"}},
    });
    assert_eq!(ask(&server, Method::POST, "flowschemas", &schema).await.0, StatusCode::CREATED);
    takes_effect(&mut objects, "new").await;

    for resource in ["flowschemas", "prioritylevelconfigurations"] {
        let path = format!("{resource}/bad");
        for asked in [resource, &path] {
            let (status, answer) = ask(&server, Method::GET, asked, &Value::Null).await;
            assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
            assert!(answer["message"].as_str().unwrap().contains("\"bad\""), "{answer}");
        }
        // Its UID is unknown.
        let options =
            |preconditions: Value| json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions});
        let (status, _) = ask(&server, Method::DELETE, &path, &options(json!({"uid": "some"}))).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        let (status, _) = ask(&server, Method::DELETE, &path, &options(json!({"resourceVersion": "1"}))).await;
        assert_eq!(status, StatusCode::CONFLICT);
        for (query, expected) in [("?dryRun=All", StatusCode::OK), ("", StatusCode::OK), ("", StatusCode::NOT_FOUND)] {
            let (status, answer) = ask(&server, Method::DELETE, &format!("{path}{query}"), &Value::Null).await;
            assert_eq!(status, expected, "{answer}");
        }
        assert_eq!(ask(&server, Method::GET, resource, &Value::Null).await.0, StatusCode::OK);
    }
}
