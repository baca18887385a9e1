//! What users ask about themselves, and who sees the pages about the server.

use std::sync::Arc;

use evenkeel::identify::{anonymous, authenticated};
use evenkeel_api::protobuf::{Envelope, Writer, sealed};
use evenkeel_apiserver::ApiServerOptions;
use evenkeel_engine::User;
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ask::{JSON, SCHEMAS, ask, ask_as, get, server};
use crate::server::TestServer;

const ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const RULES: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf");

#[tokio::test]
async fn users_learn_what_they_may_do() {
    let server = server().await;
    let schemas = json!({"verb": "list", "group": "flowcontrol.apiserver.k8s.io", "resource": "flowschemas"});
    for (groups, allowed) in [(vec!["system:masters"], true), (vec!["evenkeel:viewers"], true), (vec![], false)] {
        let body = json!({"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": schemas}}).to_string();
        let answer = ask_as(&server, authenticated("u", groups), Method::POST, ACCESS, HeaderMap::new(), body).await;
        assert_eq!((answer.status, &answer.body()["status"]), (201, &json!({"allowed": allowed})));
        assert_eq!(answer.body()["spec"]["resourceAttributes"], schemas);
    }
    let nobody = ask_as(&server, anonymous(), Method::POST, ACCESS, HeaderMap::new(), "{}").await;
    assert_eq!(nobody.status, 403);
    for body in ["", "[]", "{", r#"{"kind":"Pod"}"#] {
        assert_eq!(ask(&server, Method::POST, ACCESS, JSON, body).await.status, 400, "{body:?}");
    }
    let path = json!({"path": "/metrics", "verb": "get"});
    let both = json!({"spec": {"resourceAttributes": schemas, "nonResourceAttributes": path}});
    for (body, shown) in [(json!({}), "null"), (both, r#"{"path":"/metrics","verb":"get"}"#)] {
        let answer = ask(&server, Method::POST, ACCESS, JSON, body.to_string()).await;
        let message = format!(
            ".authorization.k8s.io \"\" is invalid: spec: Invalid value: {shown}: exactly one of nonResourceAttributes or \
             resourceAttributes must be specified"
        );
        assert_eq!((answer.status, answer.message()), (422, message));
        assert_eq!(answer.body()["details"]["causes"][0]["field"], "spec");
    }
    assert_eq!(get(&server, ACCESS).await.status, 405);
    let nowhere = ask(&server, Method::POST, RULES, JSON, "{}").await;
    assert_eq!((nowhere.status, nowhere.message().as_str()), (400, "no namespace on request"));
    let body = r#"{"spec":{"namespace":"default"}}"#;
    let rules = ask_as(&server, authenticated("u", ["evenkeel:viewers"]), Method::POST, RULES, HeaderMap::new(), body);
    let rules = rules.await.body()["status"].clone();
    assert_eq!(rules["resourceRules"][0]["verbs"], json!(["get", "list", "watch"]));
    assert_eq!(rules["incomplete"], false);
}

/// Editors write objects, and nothing else.
#[tokio::test]
async fn editors_read_and_write_objects() {
    let server = server().await;
    let editor = || authenticated("ed", ["evenkeel:editors"]);
    let json = || HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(JSON))]);
    let body = crate::ask::schema(&json!({"name": "a"})).to_string();
    let created = ask_as(&server, editor(), Method::POST, SCHEMAS, json(), body.clone()).await;
    assert_eq!(created.status, 201, "{}", created.message());
    for (method, target, status) in [
        (Method::GET, SCHEMAS.to_owned(), 200),
        (Method::GET, format!("{SCHEMAS}/a/status"), 200),
        (Method::PUT, format!("{SCHEMAS}/a/status"), 403),
        (Method::DELETE, format!("{SCHEMAS}/a"), 200),
        (Method::GET, "/metrics".to_owned(), 403),
        (Method::GET, "/apis/example.com/v1/widgets".to_owned(), 403),
    ] {
        let answer = ask_as(&server, editor(), method.clone(), &target, json(), "").await;
        assert_eq!(answer.status, status, "{method} {target}: {}", answer.message());
    }
    let viewer = authenticated("vera", ["evenkeel:viewers"]);
    assert_eq!(ask_as(&server, viewer, Method::POST, SCHEMAS, json(), body).await.status, 403);
}

#[tokio::test]
async fn users_learn_who_they_are_in_every_version() {
    let server = server().await;
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let path = format!("/apis/authentication.k8s.io/{version}/selfsubjectreviews");
        let answer = ask(&server, Method::POST, &path, JSON, "{}").await.body();
        assert_eq!(answer["apiVersion"], format!("authentication.k8s.io/{version}"));
        let info = json!({"username": "admin", "groups": ["system:masters", "system:authenticated"]});
        assert_eq!(answer["status"]["userInfo"], info);
        assert!(answer["metadata"]["creationTimestamp"].as_str().unwrap().ends_with('Z'), "{answer}");
    }
    let mut user = User::new("alice", ["staff"]);
    user.uid = "1001".into();
    user.extra.insert("scopes".into(), vec!["view".into()]);
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    user.groups.push("system:authenticated".into());
    let answer = ask_as(&server, Arc::new(user), Method::POST, path, HeaderMap::new(), "{}").await.body();
    let info = json!({"username": "alice", "uid": "1001", "groups": ["staff", "system:authenticated"], "extra": {"scopes": ["view"]}});
    assert_eq!(answer["status"]["userInfo"], info);
}

/// As typed clients of Go ask.
#[tokio::test]
async fn reviews_are_spoken_in_protobuf() {
    let server = server().await;
    let (mut path, mut spec, mut review) = (Writer::default(), Writer::default(), Writer::default());
    path.text(1, "/metrics");
    path.text(2, "get");
    spec.message(2, &path);
    review.message(2, &spec);
    let body = sealed("authorization.k8s.io/v1", "SelfSubjectAccessReview", &review.into_bytes());
    let headers: HeaderMap = [(CONTENT_TYPE, PROTOBUF), (ACCEPT, PROTOBUF)].into_iter().collect();
    for (group, allowed) in [("system:monitoring", 1), ("evenkeel:viewers", 0)] {
        let user = authenticated("u", [group]);
        let answer = ask_as(&server, user, Method::POST, ACCESS, headers.clone(), body.clone()).await;
        assert_eq!((answer.status, &answer.headers[CONTENT_TYPE]), (201, &PROTOBUF));
        let envelope = Envelope::open(&answer.bytes).unwrap();
        assert_eq!(envelope.kind, "SelfSubjectAccessReview");
        assert!(envelope.message.ends_with(&[0x1a, 2, 8, allowed]), "{:?}", envelope.message);
    }
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = sealed("authentication.k8s.io/v1", "SelfSubjectReview", &[]);
    let mut user = User::clone(&authenticated("u", ["g"]));
    user.uid = "7".into();
    user.extra.insert("k".into(), vec!["v".into()]);
    let answer = ask_as(&server, Arc::new(user), Method::POST, path, headers, body).await;
    for part in [&b"\x0a\x01u\x12\x017\x1a\x01g"[..], b"\x22\x08\x0a\x01k\x12\x03\x0a\x01v"] {
        assert!(answer.bytes.windows(part.len()).any(|bytes| bytes == part), "{:?}", answer.bytes);
    }
}

#[tokio::test]
async fn every_401_and_403_is_counted_by_reason() {
    let server = TestServer::start(ApiServerOptions::default()).await;
    let send = async |token: &str, head: &str, headers: &str| {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let text = format!(
            "{head} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    };
    for (token, head, headers, status) in [
        ("wrong", "GET /version", "", 401),
        ("wrong", "GET /metrics", "", 401),
        ("nobody-token", "GET /metrics", "", 403),
        ("viewer-token", &format!("DELETE {SCHEMAS}/exempt"), "", 403),
        ("viewer-token", &format!("POST {SCHEMAS}"), "", 403),
        ("viewer-token", &format!("GET {SCHEMAS}"), "", 200),
        ("viewer-token", "GET /version", "Impersonate-User: alice\r\n", 403),
        // Malformed, which is neither of the two.
        ("admin-token", "GET /version", "Impersonate-Group: staff\r\n", 400),
    ] {
        let response = send(token, head, headers).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {response}");
    }
    let page = send("admin-token", "GET /metrics", "").await;
    for (code, reason, count) in
        [(401, "unauthenticated", 2), (403, "impersonation", 1), (403, "path", 1), (403, "resource", 2)]
    {
        let line = format!("\nevenkeel_api_denied_requests_total{{code=\"{code}\",reason=\"{reason}\"}} {count}\n");
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }
}

#[tokio::test]
async fn an_impersonated_service_account_is_classified_as_one() {
    let server = TestServer::start(ApiServerOptions::default()).await;
    let ask = async |path: &str, headers: &str| {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let text = format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer admin-token\r\n{headers}\r\n"
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    };
    let schema = ask(&format!("{SCHEMAS}/service-accounts"), "").await;
    let schema: serde_json::Value = serde_json::from_str(schema.split_once("\r\n\r\n").unwrap().1).unwrap();
    let uid = schema["metadata"]["uid"].as_str().unwrap();
    let classified = ask("/version", "Impersonate-User: system:serviceaccount:shop:worker\r\n").await;
    let classified = classified.to_ascii_lowercase();
    assert!(classified.contains(&format!("x-kubernetes-pf-flowschema-uid: {uid}")), "{classified}");
    assert!(classified.contains("x-content-type-options: nosniff"), "{classified}");
}
