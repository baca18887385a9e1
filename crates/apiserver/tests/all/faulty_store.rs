//! A store that fails: the responses to clients and health checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use evenkeel::identify::authenticated;
use evenkeel_api::Kind;
use evenkeel_apiserver::{ApiServer, ApiServerOptions};
use evenkeel_store::{
    At, EmbeddedStore, Error, Freshness, HistoryLimits, List, ListOptions, Object, Store, StoreFuture, Watch,
    WatchOptions,
};
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// A store whose user may not compact it, and which fails when the test says so.
#[derive(Debug)]
struct Faulty {
    store: EmbeddedStore,
    is_disconnected: AtomicBool,
    is_broken: AtomicBool,
    loses_answers: AtomicBool,
}

impl Faulty {
    fn new() -> Arc<Self> {
        let store = EmbeddedStore::in_memory(HistoryLimits::default()).unwrap();
        let fine = || AtomicBool::new(false);
        Arc::new(Self { store, is_disconnected: fine(), is_broken: fine(), loses_answers: fine() })
    }
}

impl Store for Faulty {
    fn get<'a>(&'a self, kind: Kind, name: &'a str, at: At) -> StoreFuture<'a, Option<Arc<Object>>> {
        self.store.get(kind, name, at)
    }

    fn list(&self, kind: Kind, options: ListOptions) -> StoreFuture<'_, List> {
        self.store.list(kind, options)
    }

    fn create<'a>(&'a self, kind: Kind, name: &'a str, payload: Bytes) -> StoreFuture<'a, Arc<Object>> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Box::pin(async { Err(Error::Unavailable("an earlier write failed".to_owned())) });
        }
        if self.loses_answers.load(Ordering::Relaxed) {
            return Box::pin(async { Err(Error::Unknown("the connection was cut".to_owned())) });
        }
        self.store.create(kind, name, payload)
    }

    fn update<'a>(&'a self, kind: Kind, name: &'a str, expected: u64, payload: Bytes) -> StoreFuture<'a, Arc<Object>> {
        self.store.update(kind, name, expected, payload)
    }

    fn delete<'a>(&'a self, kind: Kind, name: &'a str, expected: u64) -> StoreFuture<'a, u64> {
        self.store.delete(kind, name, expected)
    }

    fn watch(&self, options: WatchOptions) -> StoreFuture<'_, Watch> {
        self.store.watch(options)
    }

    fn compact(&self, _revision: u64) -> StoreFuture<'_, ()> {
        Box::pin(async { Err(Error::Denied("etcdserver: permission denied".to_owned())) })
    }

    fn revision(&self) -> StoreFuture<'_, u64> {
        self.store.revision()
    }

    fn freshness(&self) -> Freshness {
        let disconnected_since = self.is_disconnected.load(Ordering::Relaxed).then(Instant::now);
        Freshness { disconnected_since, is_broken: self.is_broken.load(Ordering::Relaxed), ..self.store.freshness() }
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.store.close()
    }
}

async fn ask(server: &ApiServer, method: Method, path: &str, body: &str) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::new(Full::<Bytes>::from(body.to_owned()));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    request.extensions_mut().insert(authenticated("admin", ["system:masters"]));
    let (parts, body) = server.api().respond(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

async fn start(store: &Arc<Faulty>) -> ApiServer {
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    // A user who may not compact a new etcd can use it all the same.
    ApiServer::start(store, &ApiServerOptions::default()).await.unwrap()
}

fn schema(name: &str) -> String {
    format!(
        r#"{{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {{"name": "{name}"}},
            "spec": {{"priorityLevelConfiguration": {{"name": "exempt"}}}}}}"#
    )
}

#[tokio::test]
async fn api_184_health_checks_tell_what_a_supervisor_can_help_with() {
    let store = Faulty::new();
    let server = start(&store).await;
    let probes = async || {
        let mut statuses = Vec::new();
        for path in ["/livez", "/readyz", "/healthz"] {
            statuses.push(ask(&server, Method::GET, path, "").await.0.as_u16());
        }
        statuses
    };
    assert_eq!(probes().await, [200, 200, 200]);
    // A restart would neither restore the connection nor make room on the disk.
    for (fault, problem) in [
        (&store.is_disconnected, "it has been out of reach for"),
        (&store.is_broken, "a write to the disk failed, and writes are refused until one succeeds"),
    ] {
        assert!(ask(&server, Method::GET, "/metrics", "").await.2.contains("\nevenkeel_store_unavailable 0\n"));
        fault.store(true, Ordering::Relaxed);
        assert_eq!(probes().await, [200, 500, 500]);
        let (_, _, text) = ask(&server, Method::GET, "/readyz", "").await;
        assert!(text.contains(&format!("[-]store failed: {problem}")), "{text}");
        assert!(ask(&server, Method::GET, "/metrics", "").await.2.contains("\nevenkeel_store_unavailable 1\n"));
        fault.store(false, Ordering::Relaxed);
        assert_eq!(probes().await, [200, 200, 200]);
    }
}

#[tokio::test]
async fn a_store_that_was_used_before_can_be_read_while_it_refuses_writes() {
    let store = Faulty::new();
    drop(start(&store).await);
    // A bootstrap object is missing, and cannot be created.
    let level = store.get(Kind::PriorityLevelConfiguration, "leader-election", At::Latest).await.unwrap().unwrap();
    store.delete(Kind::PriorityLevelConfiguration, "leader-election", level.revision).await.unwrap();
    store.is_broken.store(true, Ordering::Relaxed);
    let server = start(&store).await;
    assert_eq!(ask(&server, Method::GET, SCHEMAS, "").await.0, StatusCode::OK);
    // A new store has no objects to serve.
    let store = Faulty::new();
    store.is_broken.store(true, Ordering::Relaxed);
    let store: Arc<dyn Store> = store;
    ApiServer::start(store, &ApiServerOptions::default()).await.unwrap_err();
}

#[tokio::test]
async fn when_to_try_again_is_in_the_header_too() {
    let store = Faulty::new();
    let server = start(&store).await;
    let retry_after = |headers: &HeaderMap| headers.get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned());
    let (status, headers, _) = ask(&server, Method::POST, SCHEMAS, &schema("one")).await;
    assert_eq!((status, retry_after(&headers)), (StatusCode::CREATED, None));
    let (status, headers, _) = ask(&server, Method::POST, SCHEMAS, &schema("one")).await;
    assert_eq!((status, retry_after(&headers)), (StatusCode::CONFLICT, None));
    let (status, headers, _) = ask(&server, Method::GET, &format!("{SCHEMAS}?resourceVersion=99999"), "").await;
    assert_eq!((status, retry_after(&headers)), (StatusCode::GATEWAY_TIMEOUT, Some("1".to_owned())));
    // A write of unknown outcome is not repeated by well-behaved clients.
    store.loses_answers.store(true, Ordering::Relaxed);
    let (status, headers, body) = ask(&server, Method::POST, SCHEMAS, &schema("two")).await;
    assert_eq!((status, retry_after(&headers)), (StatusCode::SERVICE_UNAVAILABLE, None));
    assert!(!body.contains("retryAfterSeconds"), "{body}");
    store.is_broken.store(true, Ordering::Relaxed);
    let (status, headers, _) = ask(&server, Method::POST, SCHEMAS, &schema("two")).await;
    assert_eq!((status, retry_after(&headers)), (StatusCode::SERVICE_UNAVAILABLE, Some("1".to_owned())));
}

#[tokio::test]
async fn api_77_a_timeout_of_zero_is_none() {
    let server = start(&Faulty::new()).await;
    for (timeout, expected) in [("0s", 201), ("0", 201), ("-1s", 201), ("1", 400)] {
        let path = format!("{SCHEMAS}?timeout={timeout}");
        let (status, _, body) = ask(&server, Method::POST, &path, &schema(&format!("t{}", timeout.len()))).await;
        assert_eq!(status, expected, "{timeout}: {body}");
    }
}
