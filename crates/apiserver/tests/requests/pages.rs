//! Pages about the server: health and its checks, metrics; and what all responses have in common.

use evenkeel::identify::{anonymous, authenticated};
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::ask::{JSON, SCHEMAS, ask, ask_as, get, server};

#[tokio::test]
async fn api_184_each_health_check_can_be_asked_for_and_excluded() {
    let server = server().await;
    for path in ["/livez/ping", "/readyz/ping", "/healthz/ping", "/readyz/store", "/readyz?exclude=store", "/livez"] {
        let answer = get(&server, path).await;
        assert_eq!((answer.status, &*answer.bytes), (200, &b"ok"[..]), "{path}");
    }
    for path in ["/livez/store", "/livez/pong", "/healthz/ping/x"] {
        assert_eq!(get(&server, path).await.status, 404, "{path}");
    }
    for (path, page) in [
        ("/livez?verbose", "[+]ping ok\nlivez check passed\n"),
        ("/readyz?verbose&exclude=store", "[+]ping ok\n[+]store excluded: ok\nreadyz check passed\n"),
        (
            "/readyz?verbose&exclude=etcd&exclude=x",
            "[+]ping ok\n[+]store ok\nwarn: some health checks cannot be excluded: no matches for \"etcd\",\"x\"\n\
             readyz check passed\n",
        ),
    ] {
        assert_eq!(String::from_utf8_lossy(&get(&server, path).await.bytes), page, "{path}");
    }
    // As in a cluster, the checks are for those who monitor it.
    let monitoring = authenticated("m", ["system:monitoring"]);
    for (user, status) in [(anonymous(), 403), (monitoring, 200)] {
        let answer = ask_as(&server, user, Method::GET, "/readyz/ping", HeaderMap::new(), "").await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn metrics_are_plain_text_unless_asked_for_otherwise() {
    let server = server().await;
    for (accept, content_type) in [
        (None, "text/plain; version=0.0.4; charset=utf-8"),
        (Some("*/*"), "text/plain; version=0.0.4; charset=utf-8"),
        (Some("application/openmetrics-text"), "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ] {
        let headers = accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))).into_iter().collect();
        let admin = authenticated("admin", ["system:masters"]);
        let answer = ask_as(&server, admin, Method::GET, "/metrics", headers, "").await;
        assert_eq!(answer.headers[CONTENT_TYPE], content_type, "{accept:?}");
    }
}

#[tokio::test]
async fn no_response_may_be_taken_for_something_else() {
    let server = server().await;
    let absent = format!("{SCHEMAS}/absent");
    for path in ["/", "/apis", "/readyz", "/metrics", "/nothing", "/openapi/v2", SCHEMAS, &absent] {
        assert_eq!(get(&server, path).await.headers["x-content-type-options"], "nosniff", "{path}");
    }
    let refused = ask(&server, Method::POST, SCHEMAS, JSON, "{").await;
    assert_eq!(refused.headers["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn the_version_is_that_of_the_behaviour() {
    let version = get(&server().await, "/version").await.body();
    assert_eq!((&version["major"], &version["minor"]), (&"1".into(), &"37".into()));
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1.37.0+evenkeel-"), "{version}");
}
