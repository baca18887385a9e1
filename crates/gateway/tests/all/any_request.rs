//! Whatever a client sends, an upstream that reads with another parser sees whole requests that went through the gateway.

use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use support::client::Client;
use support::{config, start};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CASES: usize = 2000;
const AT_A_TIME: usize = 32;
const SHORT: Duration = Duration::from_millis(200);

/// What the upstream must never see: it is only ever inside of something.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: a\r\nX-Remote-User: root\r\n\r\n";
/// Tells that a connection is at its end.
const LAST: &str = "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// What the upstream has seen that it must not see.
type Faults = Arc<Mutex<Vec<String>>>;

/// How many requests the upstream has seen.
static SEEN: AtomicUsize = AtomicUsize::new(0);

fn line_end() -> impl Strategy<Value = &'static str> {
    prop_oneof![12 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r"), 1 => Just(" \r\n"), 1 => Just("\r\r\n")]
}

fn first_line() -> impl Strategy<Value = &'static str> {
    let usual = select(vec!["POST / HTTP/1.1", "GET /a?b HTTP/1.1", "HEAD / HTTP/1.1", "PUT / HTTP/1.0"]);
    let unusual = select(vec![
        "GET http://a/ HTTP/1.1",
        "GET http://b/ HTTP/1.1",
        "POST  / HTTP/1.1",
        "POST / HTTP/1.1 ",
        "POST /\tHTTP/1.1",
        "POST / http/1.1",
        "OPTIONS * HTTP/1.1",
        "CONNECT a:1 HTTP/1.1",
        "get / HTTP/1.1",
        "POST",
        "",
    ]);
    prop_oneof![4 => usual, 1 => unusual]
}

fn field() -> impl Strategy<Value = String> {
    let length = (
        select(vec!["Content-Length", "content-length", "Content_Length", "Content-Length "]),
        select(vec!["0", "5", "54", "+5", "5,5", "5, 6", "0x5", "05", "", " 5 ", "99999999999999999999", "\t5"]),
    );
    let coding = (
        select(vec!["Transfer-Encoding", "transfer-encoding", "Transfer_Encoding", " Transfer-Encoding"]),
        select(vec![
            "chunked",
            "Chunked",
            "chunked, chunked",
            "gzip, chunked",
            "identity",
            "",
            "\x0bchunked",
            "xchunked",
        ]),
    );
    let other = (
        select(vec![
            "Host",
            "X",
            "Connection",
            "Upgrade",
            "Expect",
            "TE",
            "X-Remote-User",
            "x_forwarded_for",
            "Trailer",
        ]),
        select(vec![
            "a",
            "b",
            "close",
            "keep-alive, x",
            "transfer-encoding",
            "upgrade",
            "h2c",
            "100-continue",
            "é",
            "\0",
        ]),
    );
    prop_oneof![2 => length, 2 => coding, 3 => other].prop_map(|(name, value)| format!("{name}: {value}"))
}

fn body() -> impl Strategy<Value = String> {
    let chunks = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    let trailers = format!("0\r\nX-Remote-User: root\r\nContent-Length: {}\r\n\r\n{HIDDEN}", HIDDEN.len());
    select(vec![
        String::new(),
        "hello".to_owned(),
        HIDDEN.to_owned(),
        chunks.clone(),
        chunks.replace("\r\n0\r\n", "\n0\n"),
        trailers,
        format!("0\r\n\r\n{HIDDEN}"),
        format!("5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n{HIDDEN}"),
        format!("5 \r\nhello\r\n00\r\n\r\n{HIDDEN}"),
        format!("-1\r\n{HIDDEN}"),
    ])
}

fn message() -> impl Strategy<Value = String> {
    (first_line(), proptest::collection::vec((field(), line_end()), 0..4), line_end(), line_end(), body()).prop_map(
        |(first, fields, first_end, end, body)| {
            let fields: String = fields.iter().flat_map(|(field, end)| [field, *end]).collect();
            format!("{first}{first_end}Host: a\r\n{fields}{end}{body}")
        },
    )
}

/// What is wrong with a request, if anything is.
fn fault(headers: &HeaderMap) -> Option<String> {
    let all = |name: &str| headers.get_all(name).iter().map(|value| value.as_bytes().to_vec()).collect::<Vec<_>>();
    let is_whole = all("via") == [b"1.1 evenkeel"]
        && all("x-forwarded-for") == [b"127.0.0.1"]
        && all("x-request-id").len() == 1
        && all("host").len() == 1
        && all("content-length").len() + all("transfer-encoding").len() <= 1
        && ["x-remote-user", "x_forwarded_for", "content_length", "transfer_encoding"]
            .iter()
            .all(|name| all(name).is_empty());
    (!is_whole).then(|| format!("{headers:?}"))
}

/// An upstream that notes what is wrong with requests, or that it cannot read them.
async fn strict_upstream(faults: Faults) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (of_requests, of_connection) = (Arc::clone(&faults), Arc::clone(&faults));
            let service = service_fn(move |request: Request<Incoming>| {
                let faults = Arc::clone(&of_requests);
                async move {
                    SEEN.fetch_add(1, Ordering::Relaxed);
                    faults.lock().unwrap().extend(fault(request.headers()));
                    // The gateway may give up in the middle.
                    let _ = request.into_body().collect().await;
                    Ok::<_, Infallible>(Response::new(String::new()))
                }
            });
            tokio::spawn(async move {
                if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
                    && error.is_parse()
                {
                    of_connection.lock().unwrap().push(error.to_string());
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_sees_whole_requests_whatever_is_sent() {
    let faults = Faults::default();
    let mut settings = config(&[strict_upstream(Arc::clone(&faults)).await]);
    (settings.timeouts.head, settings.timeouts.stall, settings.timeouts.idle) = (SHORT, SHORT, SHORT);
    let running = start(settings).await;
    let mut runner = TestRunner::deterministic();
    let mut cases = JoinSet::new();
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    for _ in 0..CASES {
        let text = format!("{}{LAST}", message().new_tree(&mut runner).unwrap().current());
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let (address, faults) = (running.address, Arc::clone(&faults));
        cases.spawn(async move {
            let begun_at = Instant::now();
            let mut client = Client::connect(address).await;
            // It may be refused before all of it is sent.
            let _ = client.stream.write_all(text.as_bytes()).await;
            let is_late = begun_at.elapsed() >= SHORT;
            let answers = client.rest().await;
            let answers = String::from_utf8_lossy(&answers).matches("HTTP/1.1 ").count();
            // One that is silent for too long at first is told nothing.
            assert!(answers > 0 || is_late, "no answer to {text:?}");
            assert_eq!(*faults.lock().unwrap(), [] as [String; 0], "not long after {text:?}");
            drop(place);
        });
    }
    cases.join_all().await;
    // Enough of what is sent is well-formed for the test to mean something.
    let seen = SEEN.load(Ordering::Relaxed);
    assert!(seen > CASES / 5, "only {seen} requests got through");
    assert_eq!(*faults.lock().unwrap(), [] as [String; 0]);
    running.done().await;
}
