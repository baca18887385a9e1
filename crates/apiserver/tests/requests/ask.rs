//! A server without a listener, and requests to it.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel::identify::authenticated;
use evenkeel_apiserver::{ApiServer, ApiServerOptions, StatusController};
use evenkeel_engine::User;
use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, WARNING};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

pub(crate) const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

// === impl Response ===

impl Response {
    /// The body, or null if it is not JSON.
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn message(&self) -> String {
        self.body()["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.headers.get_all(WARNING).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }
}

/// A store in memory.
pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).unwrap())
}

/// A server over that store that writes no conditions.
pub(crate) async fn server_over(store: Arc<dyn Store>) -> ApiServer {
    let options = ApiServerOptions { status_controller: StatusController::Off, ..ApiServerOptions::default() };
    ApiServer::start(store, &options).await.unwrap()
}

pub(crate) async fn server() -> ApiServer {
    server_over(memory()).await
}

/// Sends a request as the administrator.
pub(crate) async fn ask(
    server: &ApiServer,
    method: Method,
    target: &str,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    ask_as(server, authenticated("admin", ["system:masters"]), method, target, headers, body).await
}

/// Sends a request as that user.
pub(crate) async fn ask_as(
    server: &ApiServer,
    user: Arc<User>,
    method: Method,
    target: &str,
    headers: HeaderMap,
    body: impl Into<Bytes>,
) -> Response {
    let mut request = Request::new(Full::new(body.into()));
    *request.method_mut() = method;
    *request.uri_mut() = target.parse().unwrap();
    *request.headers_mut() = headers;
    request.extensions_mut().insert(user);
    let (parts, body) = server.api().respond(request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Response { status: parts.status.as_u16(), headers: parts.headers, bytes }
}

pub(crate) async fn get(server: &ApiServer, target: &str) -> Response {
    ask(server, Method::GET, target, JSON, "").await
}

/// A flow schema with that metadata.
pub(crate) fn schema(metadata: &Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": metadata,
        "spec": {"priorityLevelConfiguration": {"name": "exempt"}},
    })
}

/// Creates a flow schema with that metadata.
pub(crate) async fn create(server: &ApiServer, metadata: &Value) -> Response {
    ask(server, Method::POST, SCHEMAS, JSON, schema(metadata).to_string()).await
}
