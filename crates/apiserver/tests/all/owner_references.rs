//! Owner references that are sent twice are stored once, and the client is warned (API-34).

use std::sync::Arc;

use evenkeel::identify::authenticated;
use evenkeel_apiserver::{ApiServer, ApiServerOptions};
use evenkeel_store::{EmbeddedStore, HistoryLimits};
use http::header::{CONTENT_TYPE, HeaderValue, WARNING};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const SCHEMA: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/owned";

struct Response {
    status: u16,
    warnings: Vec<String>,
    body: Value,
}

async fn ask(server: &ApiServer, method: Method, path: &str, content_type: &'static str, body: &Value) -> Response {
    let mut request = Request::new(Full::<bytes::Bytes>::from(body.to_string()));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    request.extensions_mut().insert(authenticated("admin", ["system:masters"]));
    let (parts, body) = server.api().respond(request).await.into_parts();
    let warnings = parts.headers.get_all(WARNING).iter().map(|value| value.to_str().unwrap().to_owned()).collect();
    let body = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    Response { status: parts.status.as_u16(), warnings, body }
}

fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
}

fn schema(owners: &[Value]) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "owned", "ownerReferences": owners},
        "spec": {"priorityLevelConfiguration": {"name": "exempt"}},
    })
}

fn warning(moment: &str, uids: &str) -> String {
    format!(
        "299 - \".metadata.ownerReferences contains duplicate entries{moment}; API server dedups owner references in 1.20+, \
         and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}\""
    )
}

#[tokio::test]
async fn api_34_duplicates_are_stored_once_with_a_warning() {
    let store = Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).unwrap());
    let server = ApiServer::start(store, &ApiServerOptions::default()).await.unwrap();
    let (a, b) = (owner("a", "1"), owner("b", "2"));
    let json = "application/json";

    let created =
        ask(&server, Method::POST, SCHEMAS, json, &schema(&[a.clone(), b.clone(), a.clone(), a.clone()])).await;
    assert_eq!((created.status, created.warnings), (201, vec![warning("", "1, 1")]));
    assert_eq!(created.body["metadata"]["ownerReferences"], json!([a, b]));

    let replaced = ask(&server, Method::PUT, SCHEMA, json, &schema(&[b.clone(), b.clone()])).await;
    assert_eq!((replaced.status, replaced.warnings), (200, vec![warning("", "2")]));
    assert_eq!(replaced.body["metadata"]["ownerReferences"], json!([b]));

    let patch = json!({"metadata": {"ownerReferences": [a, a]}});
    let patched = ask(&server, Method::PATCH, SCHEMA, "application/merge-patch+json", &patch).await;
    let after = " after mutating admission happens";
    assert_eq!((patched.status, patched.warnings), (200, vec![warning(after, "1")]));
    assert_eq!(patched.body["metadata"]["ownerReferences"], json!([a]));

    // The same owner by another name is no duplicate, and nothing is said.
    let other = [a, owner("c", "1")];
    let different = ask(&server, Method::PUT, SCHEMA, json, &schema(&other)).await;
    assert_eq!((different.status, different.warnings), (200, Vec::new()));
    assert_eq!(different.body["metadata"]["ownerReferences"], json!(other));
}
