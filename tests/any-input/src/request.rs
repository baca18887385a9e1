//! Requests to the API: any bytes give an answer, in time, and one that does not blame the server.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use evenkeel::identify::authenticated;
use evenkeel_api::decode::{Node, parse_protobuf};
use evenkeel_api::protobuf::Envelope;
use evenkeel_api::schema::STATUS;
use evenkeel_apiserver::{ApiServer, ApiServerOptions};
use evenkeel_engine::User;
use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tower_service::Service;

/// A server, and how many requests it has answered.
struct ServerUnderTest {
    server: ApiServer,
    answered: u32,
}

/// No answer takes longer, not even to those who ask for a version that is yet to come (API-157). Long enough for the slowest
/// machine, and shorter than the time after which the server gives up by itself.
const TIME_MAX: Duration = Duration::from_secs(30);
/// So long is a watch listened to.
const EVENT_TIME_MAX: Duration = Duration::from_millis(20);
/// Then comes a new server, so that what was created does not pile up.
const REQUESTS_MAX: u32 = 500;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
static TARGET: Mutex<Option<ServerUnderTest>> = Mutex::new(None);

/// Takes the first line for method and path, the lines up to an empty one for headers, and the rest for a body. The
/// administrator sends it.
///
/// # Panics
/// If there is no answer in time, or if it is a 500 where the specification does not say so.
pub fn request(input: &[u8]) {
    let Some(request) = parse(input) else { return };
    let is_watch = request.uri().to_string().contains("watch");
    // After a panic the server may be in any state; the next one is new.
    let mut target = TARGET.lock().unwrap_or_else(PoisonError::into_inner);
    let mut current =
        target.take().filter(|target| target.answered < REQUESTS_MAX).unwrap_or_else(ServerUnderTest::start);
    current.answered += 1;
    let mut service = current.server.service(administrator);
    RUNTIME.block_on(async {
        let Ok(response) = timeout(TIME_MAX, service.call(request)).await.expect("an answer in time");
        let (head, mut body) = response.into_parts();
        if is_watch {
            // Events come for as long as somebody listens; an error or what is there already comes at once.
            let first = timeout(EVENT_TIME_MAX, body.frame()).await.ok().flatten().and_then(Result::ok);
            let line = first.and_then(|frame| frame.into_data().ok()).unwrap_or_default();
            return check(head.status, &line);
        }
        let body = timeout(TIME_MAX, body.collect()).await.expect("a whole answer in time");
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        check(head.status, &body);
    });
    *target = Some(current);
}

fn administrator(_: &Parts) -> Arc<User> {
    authenticated("admin", ["system:masters"])
}

/// A request that a server of HTTP would pass on.
fn parse(input: &[u8]) -> Option<Request<Full<Bytes>>> {
    let end = input.windows(2).position(|pair| pair == b"\n\n").unwrap_or(input.len());
    let (head, body) = input.split_at(end);
    let mut lines = head.split(|&byte| byte == b'\n');
    let mut words = lines.next()?.split(|&byte| byte == b' ');
    let method = Method::from_bytes(words.next()?).ok()?;
    let uri = Uri::try_from(words.next()?).ok().filter(|uri| uri.path().starts_with('/'))?;
    let body: Vec<u8> = body.iter().skip(2).copied().collect();

    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default().trim_ascii();
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            request.headers_mut().append(name, value);
        }
    }
    Some(request)
}

/// The specification has answers that blame the server for what a client sends (API-54, API-60, API-112, API-122, API-125,
/// API-156).
fn check(status: StatusCode, body: &[u8]) {
    if status != StatusCode::INTERNAL_SERVER_ERROR {
        return;
    }
    let message = message(body);
    let is_known = message == "resourceVersion should not be set on objects to be created"
        || message.contains("strconv.ParseUint: parsing ")
        || message.starts_with("failed to create typed patch object (")
        || (message.starts_with("map: ") && message.contains(" does not contain declared merge key: "));
    assert!(is_known, "500: {message}");
}

/// The message of a status, in protobuf or in JSON.
fn message(body: &[u8]) -> String {
    if let Ok(envelope) = Envelope::open(body) {
        let status = parse_protobuf(&envelope, &STATUS).ok();
        let message = status.as_ref().and_then(|status| status.root.get("message")).and_then(Node::as_str);
        return message.unwrap_or_default().to_owned();
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["message"].as_str().unwrap_or_default().to_owned()
}

// === impl ServerUnderTest ===

impl ServerUnderTest {
    fn start() -> Self {
        let store = EmbeddedStore::in_memory(HistoryLimits::default()).expect("a store");
        let store: Arc<dyn Store> = Arc::new(store);
        let server = RUNTIME.block_on(ApiServer::start(store, &ApiServerOptions::default())).expect("a server");
        Self { server, answered: 0 }
    }
}
