//! Streams of HTTP/2 that stand still hold up no others on the same connection.

use crate::frames;
use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use evenkeel_gateway::config::Protocol;
use frames::{DATA, END_STREAM, Frames, Outcome, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, request};
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::client::get;
use support::upstream::{Upstream, ok};
use support::{config, eventually, start};
use tokio::net::{TcpListener, TcpStream};

const PIECE: usize = 16 * 1024;
/// More answers than the window that there used to be has room for.
const UNREAD: usize = 32;
const UNREAD_BYTES: usize = UNREAD * 100 * 1024;

type Body = BoxBody<Bytes, Infallible>;

/// A body that is larger than anybody keeps, and how much of all of those has been asked for.
fn endless(given: &Arc<AtomicUsize>) -> Body {
    let given = Arc::clone(given);
    let pieces = std::iter::repeat_with(move || {
        given.fetch_add(PIECE, Ordering::SeqCst);
        Ok(Frame::data(Bytes::from_static(&[b'x'; PIECE])))
    });
    BodyExt::boxed(StreamBody::new(tokio_stream::iter(pieces.take(4096))))
}

/// An upstream of HTTP/2 with an answer that is large, and others that are not.
async fn large_and_small(given: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let given = Arc::clone(&given);
            let service = service_fn(move |request: Request<Incoming>| {
                let is_large = request.uri().path() == "/large";
                let body = if is_large { endless(&given) } else { Full::new(Bytes::from_static(b"small")).boxed() };
                std::future::ready(Ok::<_, Infallible>(Response::new(body)))
            });
            let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

#[tokio::test]
async fn answers_that_nobody_reads_hold_up_no_others_of_the_same_upstream() {
    let given = Arc::<AtomicUsize>::default();
    let mut settings = config(&[large_and_small(Arc::clone(&given)).await]);
    settings.upstreams[0].protocol = Protocol::Http2;
    let running = start(settings).await;
    // A client that has room for nothing.
    let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let stream = TokioIo::new(TcpStream::connect(running.address).await.unwrap());
    let (mut client, connection) = client.initial_stream_window_size(0).handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut unread = Vec::new();
    for _ in 0..UNREAD {
        let uri = format!("http://{}/large", running.address);
        let request = Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
        unread.push(client.send_request(request).await.unwrap());
    }
    eventually("each has its own room", || given.load(Ordering::SeqCst) >= UNREAD_BYTES).await;
    assert_eq!(get(running.address, "/", "").await.text(), "small");
    drop((unread, client));
    running.done().await;
}

/// What the gateway has room for, on each stream and on all of them.
async fn windows(client: &mut Frames) -> (u32, u32) {
    let (mut of_stream, mut of_connection) = (None, None);
    while of_stream.is_none() || of_connection.is_none() {
        let frame = client.next().await.unwrap();
        let number = |at: usize| u32::from_be_bytes(frame.payload[at..at + 4].try_into().unwrap());
        if frame.kind == WINDOW_UPDATE && frame.stream == 0 {
            of_connection = Some(65_535 + number(0));
        } else if frame.kind == SETTINGS {
            let at = frame.payload.chunks(6).position(|setting| setting[..2] == [0, 4]);
            of_stream = of_stream.or(at.map(|at| number(6 * at + 2)));
        }
    }
    (of_stream.unwrap(), of_connection.unwrap())
}

#[tokio::test]
async fn uploads_that_wait_hold_up_nothing_urgent_on_the_same_connection() {
    const WAITING: u32 = 32;
    let upstream = Upstream::new(|mut client, _| async move {
        let request = client.answer().await;
        if request.head.starts_with("GET /healthz") {
            client.send(&ok(&request.text())).await;
        }
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.concurrency = Some(1.into());
    // Its objects exempt health checks.
    settings.preset = evenkeel_api::Preset::Kubernetes;
    let running = start(settings).await;
    let mut client = Frames::connect(running.address).await;
    let (of_stream, mut of_connection) = windows(&mut client).await;
    let body = vec![b'x'; PIECE];
    for stream in (1..2 * WAITING).step_by(2) {
        client.send_head(stream, &request("/", &[]), 0).await;
        for _ in 0..of_stream as usize / PIECE {
            client.send(&frame(DATA, 0, stream, &body)).await;
        }
        of_connection = of_connection.checked_sub(of_stream).expect("the connection has room for all of its streams");
    }
    let probe = 2 * WAITING + 1;
    client.send_head(probe, &request("/healthz", &[("content-length", "6")]), 0).await;
    assert!(of_connection >= 6);
    client.send(&frame(DATA, END_STREAM, probe, b"urgent")).await;
    assert_eq!(client.outcome(probe).await, Outcome::Answered("urgent".to_owned()));
    drop(client);
    running.done().await;
}

/// A reader that moves has not stalled, however large the pieces are in which its response arrives.
#[tokio::test]
async fn a_steady_reader_is_not_cut_for_being_slow() {
    const BODY: usize = 200 * 1024;
    let upstream = Upstream::answering(|_| ok(&"x".repeat(BODY))).await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.stall = Duration::from_secs(3);
    let running = start(settings).await;
    let mut client = Frames::connect(running.address).await;
    client.send_head(1, &request("/", &[]), END_STREAM).await;
    // After the window that every stream begins with, it takes 16 KiB in a second: 64 KiB at once would take four.
    let (mut left, mut unread) = (BODY, 65_535);
    while left > 0 {
        if unread == 0 {
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_millis(125)).await;
                let more = 2048_u32.to_be_bytes();
                for stream in [0, 1] {
                    client.send(&frame(WINDOW_UPDATE, 0, stream, &more)).await;
                }
                unread += 2048;
            }
        }
        let frame = client.next().await.expect("the connection goes on");
        assert_ne!(frame.kind, RST_STREAM, "{left} bytes are left");
        if frame.kind == DATA {
            left -= frame.payload.len();
            unread -= frame.payload.len();
        }
    }
    drop(client);
    running.done().await;
}
