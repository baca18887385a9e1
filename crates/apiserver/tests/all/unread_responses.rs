//! Clients that request large lists and do not read them: equal responses share their bytes, and memory is bounded.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use evenkeel::identify::{Unidentified, authenticated};
use evenkeel_api::v1::FlowSchema;
use evenkeel_apiserver::{ApiServer, ApiServerOptions, StatusController};
use evenkeel_engine::User;
use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tokio::task::JoinSet;
use tower_service::Service;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const OBJECTS: usize = 120;
const OBJECT_BYTES: usize = 8 * 1024;
const CONNECTIONS: usize = 8;
const LISTS: usize = 250;
const MIB: usize = 1024 * 1024;

type Identity = fn(&Parts) -> Result<Arc<User>, Unidentified>;
type Connection = evenkeel_apiserver::ApiService<Identity>;

/// A server with lists of about a megabyte, whose clock stands still unless everybody waits.
async fn server() -> ApiServer {
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).unwrap());
    // Nobody else writes, so that all lists are of one revision.
    let options = ApiServerOptions { status_controller: StatusController::Off, ..ApiServerOptions::default() };
    let server = ApiServer::start(store, &options).await.unwrap();
    for number in 0..OBJECTS {
        let mut schema = FlowSchema::builder(format!("large-{number:03}")).priority_level("exempt").build();
        schema.metadata.annotations.insert("a".to_owned(), format!("{number}").repeat(OBJECT_BYTES / 3));
        let body = serde_json::to_vec(&schema).unwrap();
        let request = Request::builder().method(Method::POST).uri(SCHEMAS).header(CONTENT_TYPE, "application/json");
        let response = connection(&server).call(request.body(Full::<Bytes>::from(body)).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
    }
    tokio::time::pause();
    server
}

/// Exempt, so that nothing but the bytes limits the requests.
fn connection(server: &ApiServer) -> Connection {
    let admin: Identity = |_| Ok(authenticated("admin", ["system:masters"]));
    server.service(admin)
}

fn get(target: &str, headers: &[(http::HeaderName, &'static str)]) -> Request<Full<Bytes>> {
    let request = Request::builder().uri(target);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
    request.body(Full::default()).unwrap()
}

/// Sends many requests whose responses nobody reads: those that were served, and how many were rejected.
async fn ask(server: &ApiServer, target: impl Fn(usize) -> String) -> (Vec<Pin<Box<impl Body<Data = Bytes>>>>, usize) {
    let mut requests = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let connection = connection(server);
        for number in 0..LISTS {
            let mut connection = connection.clone();
            let request = get(&target(number), &[]);
            requests.spawn(async move { connection.call(request).await.unwrap() });
        }
    }
    let (mut unread, mut refused) = (Vec::new(), 0);
    for response in requests.join_all().await {
        match response.status() {
            StatusCode::OK => unread.push(Box::pin(response.into_body())),
            StatusCode::TOO_MANY_REQUESTS => {
                assert_eq!(response.headers()[RETRY_AFTER], "1");
                refused += 1;
            }
            other => panic!("{other}"),
        }
    }
    (unread, refused)
}

#[tokio::test]
async fn unread_lists_share_their_bytes_and_each_connection_has_a_bound() {
    let server = server().await;
    let (mut unread, refused) = ask(&server, |_| SCHEMAS.to_owned()).await;
    assert_eq!(unread.len() + refused, CONNECTIONS * LISTS);
    let length = usize::try_from(unread[0].size_hint().exact().unwrap()).unwrap();
    assert!(length > MIB / 2, "{length}");
    // Each connection has room for four megabytes.
    assert!((CONNECTIONS..=CONNECTIONS * 4 * MIB / length).contains(&unread.len()), "{}", unread.len());
    let in_flight = server.api().response_bytes_in_flight();
    assert!((length..length + MIB / 2).contains(&in_flight), "{in_flight} bytes for one encoding of {length}");
    // Parts are counted wherever they are kept, and equal lists share them in memory.
    let mut first_parts = Vec::new();
    for body in &mut unread {
        first_parts.push(body.frame().await.unwrap().ok().unwrap().into_data().unwrap());
    }
    assert!(first_parts.iter().all(|part| part.as_ptr() == first_parts[0].as_ptr()));
    drop(unread);
    assert!(server.api().response_bytes_in_flight() >= length);
    drop(first_parts);
    assert_eq!(server.api().response_bytes_in_flight(), 0);
}

#[tokio::test]
async fn different_lists_are_bounded_too() {
    let server = server().await;
    // Hundreds of different encodings.
    let (unread, refused) = ask(&server, |number| format!("{SCHEMAS}?limit={}", 20 + number % 100)).await;
    let in_flight = server.api().response_bytes_in_flight();
    let lengths: usize = unread.iter().map(|body| usize::try_from(body.size_hint().exact().unwrap()).unwrap()).sum();
    assert!(refused > 0 && in_flight <= CONNECTIONS * 4 * MIB + MIB, "{in_flight} bytes");
    assert!(lengths <= CONNECTIONS * 4 * MIB + MIB, "{lengths} bytes");
}

#[tokio::test]
async fn events_of_watches_are_bounded_and_go_on_when_there_is_room() {
    let server = server().await;
    let mut watches = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = connection(&server);
        for _ in 0..LISTS / 4 {
            let request = get(&format!("{SCHEMAS}?watch=1&resourceVersion=0"), &[]);
            watches.push((connection.call(request).await.unwrap().into_body(), Vec::new()));
        }
    }
    // Everything that can be received without reading a byte.
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for (watch, events) in &mut watches {
        tokio::task::yield_now().await;
        while let Poll::Ready(Some(Ok(event))) = Pin::new(&mut *watch).poll_frame(&mut context) {
            events.push(event.into_data().unwrap());
        }
    }
    let bytes = |events: &Vec<Bytes>| events.iter().map(Bytes::len).sum::<usize>();
    let kept: usize = watches.iter().map(|(_, events)| bytes(events)).sum();
    let in_flight = server.api().response_bytes_in_flight();
    assert!((kept..=CONNECTIONS * 4 * MIB).contains(&in_flight), "{kept} bytes kept, {in_flight} counted");
    // Once clients read, all of them get all events.
    let mut counts: Vec<usize> = watches.iter().map(|(_, events)| events.len()).collect();
    for (_, events) in &mut watches {
        events.clear();
    }
    let mut has_progressed = true;
    while has_progressed {
        has_progressed = false;
        for ((watch, _), count) in watches.iter_mut().zip(&mut counts) {
            // Polling here uses this task's budget.
            tokio::task::yield_now().await;
            while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut *watch).poll_frame(&mut context) {
                *count += 1;
                has_progressed = true;
            }
        }
    }
    assert!(counts.iter().all(|count| *count == counts[0] && *count > OBJECTS), "{counts:?}");
    drop(watches);
    assert_eq!(server.api().response_bytes_in_flight(), 0);
}

#[tokio::test]
async fn a_list_is_whole_in_every_form_and_whoever_reads_is_served() {
    let server = server().await;
    let mut connection = connection(&server);
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    for (accept, encoding, query) in [
        ("application/json", "identity", ""),
        ("application/json", "identity", "?pretty=true"),
        ("application/yaml", "identity", ""),
        ("application/json", "gzip", ""),
        (table, "identity", "?includeObject=Object"),
    ] {
        let mut bodies = Vec::new();
        // More than there is room for at a time; but each is read before the next is asked for.
        for _ in 0..12 {
            let request = get(&format!("{SCHEMAS}{query}"), &[(ACCEPT, accept), (ACCEPT_ENCODING, encoding)]);
            let response: Response<_> = connection.call(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{accept}");
            bodies.push(response.into_body().collect().await.unwrap().to_bytes().to_vec());
        }
        // A table shows ages, which change.
        let is_same = |body: &Vec<u8>| accept == table || *body == bodies[0];
        assert!(bodies.iter().all(is_same), "{accept} {encoding}");
        if accept != "application/yaml" && encoding == "identity" {
            let list: serde_json::Value = serde_json::from_slice(&bodies[0]).unwrap();
            let items = list.get("items").or(list.get("rows")).unwrap().as_array().unwrap();
            assert!(items.len() > OBJECTS);
        }
        drop(bodies);
        assert_eq!(server.api().response_bytes_in_flight(), 0);
    }
}
