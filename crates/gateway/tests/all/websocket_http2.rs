//! `WebSocket`s in streams of HTTP/2 (RFC 8441), in front of an upstream that knows them from HTTP/1.1.

use crate::support;

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use evenkeel_gateway::Drained;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::ext::Protocol;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioExecutor, TokioIo};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use support::client::{Client, find};
use support::upstream::{Upstream, ok};
use support::{config, gateway, one_level_with_long_running, start, start_with};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const PLAIN: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nplain";

type Sender = SendRequest<Empty<Bytes>>;

fn accepted(head: &str, upgrade: &str) -> String {
    let key = find(head, "sec-websocket-key").unwrap();
    assert_eq!(STANDARD.decode(&key).unwrap().len(), 16);
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let accept = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\
         Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}

/// Accepts a handshake at `/chat` and says everything back in capitals; answers others with 200.
async fn shouting() -> Upstream {
    Upstream::new(|mut client, _| async move {
        let head = client.head().await;
        if !head.starts_with("GET /chat?room=1 HTTP/1.1\r\n") {
            return client.send(PLAIN).await;
        }
        for (name, value) in [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("via", "2.0 evenkeel"),
        ] {
            assert_eq!(find(&head, name).as_deref(), Some(value), "{head}");
        }
        client.send(&format!("{}hello", accepted(&head, "websocket"))).await;
        while support::upstream::has_more(&mut client).await {
            let said = std::mem::take(&mut client.unread).to_ascii_uppercase();
            client.stream.write_all(&said).await.unwrap();
        }
    })
    .await
}

/// Connects, and returns when it is known what the other side can do.
async fn connect(address: SocketAddr) -> Sender {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(Request::get("http://shop/").body(Empty::new()).unwrap()).await.unwrap();
    sender
}

async fn ask_for(sender: &mut Sender, protocol: &'static str, path: &str) -> Response<Incoming> {
    let request = Request::connect(format!("http://shop{path}"))
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "chosen by the client")
        .extension(Protocol::from_static(protocol))
        .body(Empty::new());
    sender.send_request(request.unwrap()).await.unwrap()
}

async fn websocket(sender: &mut Sender) -> Client<TokioIo<Upgraded>> {
    let response = ask_for(sender, "websocket", "/chat?room=1").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
    for name in ["sec-websocket-accept", "upgrade", "connection"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    let mut client = Client::on(TokioIo::new(hyper::upgrade::on(response).await.unwrap()));
    assert_eq!(client.exactly(5).await, b"hello");
    client
}

#[tokio::test]
async fn both_sides_speak_in_a_stream_and_no_seat_is_kept() {
    let upstream = shouting().await;
    let running = gateway(upstream.address).await;
    let mut sender = connect(running.address).await;
    let (mut one, mut other) = (websocket(&mut sender).await, websocket(&mut sender).await);
    for _ in 0..3 {
        one.send("one\n").await;
        other.send("other\n").await;
        assert_eq!(one.until(b"\n").await, b"ONE\n");
        assert_eq!(other.until(b"\n").await, b"OTHER\n");
    }
    let large = "x".repeat(1_000_000);
    let (mut reading, mut writing) = tokio::io::split(one.stream);
    let write = async { writing.write_all(large.as_bytes()).await.unwrap() };
    let read = async {
        let mut client = Client::on(tokio::io::join(&mut reading, tokio::io::sink()));
        client.exactly(large.len()).await
    };
    assert!(tokio::join!(write, read).1.iter().all(|byte| *byte == b'X'));
    running.no_seat_is_taken().await;
    // Other requests go on beside them, also after one of them has ended.
    other.stream.shutdown().await.unwrap();
    assert!(other.is_closed().await);
    let plain = sender.send_request(Request::get("http://shop/").body(Empty::new()).unwrap()).await.unwrap();
    assert_eq!(plain.into_body().collect().await.unwrap().to_bytes(), "plain");
    drop((reading, writing, sender));
    running.done().await;
}

#[tokio::test]
async fn a_stream_counts_as_long_running_until_it_ends() {
    let upstream = shouting().await;
    let running = start_with(config(&[upstream.address]), &one_level_with_long_running(1)).await;
    let mut sender = connect(running.address).await;
    let mut client = websocket(&mut sender).await;
    running.has_long_running(1).await;
    let rejected = ask_for(&mut sender, "websocket", "/chat?room=1").await;
    assert_eq!(rejected.status(), 429);
    assert_eq!(rejected.headers()["x-evenkeel-reason"], "too-many-long-running");
    client.send("still\n").await;
    assert_eq!(client.until(b"\n").await, b"STILL\n");
    client.stream.shutdown().await.unwrap();
    assert!(client.is_closed().await);
    running.has_long_running(0).await;
    drop(websocket(&mut sender).await);
    running.has_long_running(0).await;
    drop((rejected, sender));
    running.done().await;
}

#[tokio::test]
async fn the_upstream_learns_that_the_client_has_gone() {
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::new(move |mut client, _| {
        let told = told.clone();
        async move {
            let head = client.head().await;
            if head.starts_with("GET /chat") {
                client.send(&format!("{}hello", accepted(&head, "websocket"))).await;
                client.rest().await;
                told.send("gone").unwrap();
            } else {
                client.send(PLAIN).await;
            }
        }
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut sender = connect(running.address).await;
    let client = websocket(&mut sender).await;
    drop((client, sender));
    assert_eq!(hears.recv().await, Some("gone"));
    running.done().await;
}

#[tokio::test]
async fn what_is_no_websocket_is_refused() {
    let upstream = Upstream::answering(|request| match request.head.split(' ').nth(1).unwrap() {
        "/forbidden" => "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno".to_owned(),
        "/wrong-accept" => accepted("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "websocket"),
        "/wrong-protocol" => accepted(&request.head, "h2c"),
        _ => ok("plain"),
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut sender = connect(running.address).await;
    for (protocol, path, status, text) in [
        ("websocket", "/forbidden", 403, "no"),
        ("websocket", "/plain", 502, "did not accept the WebSocket"),
        ("websocket", "/wrong-accept", 502, "malformed response"),
        ("websocket", "/wrong-protocol", 502, "malformed response"),
        ("connect-udp", "/plain", 501, "only websocket is supported"),
    ] {
        let response = ask_for(&mut sender, protocol, path).await;
        assert_eq!(response.status(), status, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(text), "{path}: {body:?}");
    }
    let plain_connect = Request::connect("shop:80").body(Empty::new()).unwrap();
    assert_eq!(sender.send_request(plain_connect).await.unwrap().status(), 405);
    drop(sender);
    running.done().await;
}

#[tokio::test]
async fn a_websocket_is_cut_when_the_time_to_drain_is_over() {
    let upstream = shouting().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.drain = Duration::from_millis(100);
    let running = start(settings).await;
    let mut sender = connect(running.address).await;
    let mut client = websocket(&mut sender).await;
    assert_eq!(running.gateway.drain().await, Drained { requests_cut: 1 });
    assert!(client.is_closed().await);
}
