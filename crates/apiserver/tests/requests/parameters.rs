//! Parameters: `timeout`, and what a deletion says of dependents.

use http::Method;
use serde_json::json;

use crate::ask::{JSON, SCHEMAS, ask, create, get, server};

#[tokio::test]
async fn api_77_a_malformed_timeout_is_refused_everywhere_but_on_a_watch() {
    let server = server().await;
    for path in ["/version", "/apis", "/api", "/healthz", "/openapi/v2", "/openapi/v3", SCHEMAS] {
        let answer = get(&server, &format!("{path}?timeout=invalid")).await;
        let message = "invalid timeout specified in the request URL - time: invalid duration \"invalid\"";
        assert_eq!((answer.status, answer.message().as_str()), (400, message), "{path}");
        assert_eq!(get(&server, &format!("{path}?timeout=32s")).await.status, 200, "{path}");
    }
    let watch = get(&server, &format!("{SCHEMAS}?watch=1&timeout=invalid&timeoutSeconds=1")).await;
    assert_eq!(watch.status, 200, "{watch:?}");
}

#[tokio::test]
async fn api_70_a_cascading_deletion_that_has_to_wait_is_accepted() {
    let server = server().await;
    let held = json!({"name": "held", "finalizers": ["example.com/hold"]});
    let path = format!("{SCHEMAS}/held");
    assert_eq!(create(&server, &held).await.status, 201);
    for (query, body, status) in [
        ("", r#"{"orphanDependents":false}"#, 202),
        ("?orphanDependents=false", "", 202),
        ("", r#"{"propagationPolicy":"Background"}"#, 200),
        ("", "", 200),
    ] {
        let answer = ask(&server, Method::DELETE, &format!("{path}{query}"), JSON, body).await;
        assert_eq!((answer.status, &answer.body()["kind"]), (status, &json!("FlowSchema")), "{query} {body}");
    }
    // What is gone at once is not waited for.
    assert_eq!(create(&server, &json!({"name": "free"})).await.status, 201);
    let body = r#"{"orphanDependents":false}"#;
    let answer = ask(&server, Method::DELETE, &format!("{SCHEMAS}/free"), JSON, body).await;
    assert_eq!((answer.status, &answer.body()["status"]), (200, &json!("Success")));
}
