//! The dumps under the paths that they have in a kube-apiserver (OB-9).
#![cfg(feature = "axum")]
use axum::body::{Body, to_bytes};
use evenkeel::{FlowControl, debug};
use http::{Request, StatusCode};
use tower_service::Service;

async fn answer(target: &str, method: &str) -> (StatusCode, String, String) {
    let flow = FlowControl::builder().kubernetes().server_concurrency(100).drive_by_hand().build();
    let mut app = axum::Router::new().merge(debug::router(flow));
    let request = Request::builder().method(method).uri(target).body(Body::empty()).unwrap();
    let response = app.as_service().call(request).await.unwrap();
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, kind, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn ob_9_any_method_and_plain_text() {
    for (path, start) in [
        ("dump_priority_levels", "PriorityLevelName, ActiveQueues,"),
        ("dump_queues", "PriorityLevelName, Index,"),
        ("dump_requests", "PriorityLevelName, FlowSchemaName,"),
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let (status, kind, body) = answer(&format!("/debug/api_priority_and_fairness/{path}"), method).await;
            assert_eq!((status, kind.as_str()), (StatusCode::OK, "text/plain; charset=utf-8"), "{method} {path}");
            assert!(body.starts_with(start), "{body}");
        }
    }
    assert_eq!(answer("/debug/api_priority_and_fairness", "GET").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn ob_13_details_on_request() {
    let path = "/debug/api_priority_and_fairness/dump_requests";
    for (query, has_details) in [
        ("", false),
        ("?includeRequestDetails", false),
        ("?includeRequestDetails=", false),
        ("?includeRequestDetails=1", true),
        ("?a=b&includeRequestDetails=no", true),
    ] {
        let (_, _, body) = answer(&format!("{path}{query}"), "GET").await;
        assert_eq!(body.contains("UserName"), has_details, "{query}");
    }
}
