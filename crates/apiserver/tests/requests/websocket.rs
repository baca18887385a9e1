//! Watches over `WebSocket`, by a client that knows no more than RFC 6455.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_apiserver::{ApiServerOptions, StatusController};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::ask::{SCHEMAS, schema};
use crate::server::TestServer;
use crate::until::{soon, until};

/// The key of RFC 6455, and what has to come back.
const KEY: &str = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const ACCEPT: &str = "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=";
const ADMIN: &str = "Authorization: Bearer admin-token\r\n";
const EXEMPT: &str = "watch=1&fieldSelector=metadata.name%3Dexempt";

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A client, and the head of the response that it got.
struct Client {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Client {
    async fn connect(server: &TestServer, query: &str, headers: &str) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut client = Self { stream: BufReader::new(stream), head: String::new() };
        let request = format!(
            "GET {SCHEMAS}?{query} HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n{headers}\r\n"
        );
        client.stream.write_all(request.as_bytes()).await.unwrap();
        while !client.head.ends_with("\r\n\r\n") {
            let read = soon("a head", client.stream.read_line(&mut client.head)).await.unwrap();
            assert!(read > 0, "{}", client.head);
        }
        client.head.make_ascii_lowercase();
        client
    }

    /// A client whose handshake must succeed.
    async fn watch(server: &TestServer, query: &str, headers: &str) -> Self {
        let client = Self::connect(server, query, &format!("{KEY}{headers}")).await;
        assert!(client.head.starts_with("http/1.1 101 ") && client.head.contains(ACCEPT), "{}", client.head);
        client
    }

    /// The next frame; none at the end.
    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let first = soon("a frame", self.stream.read_u8()).await.ok()?;
        assert_eq!(first & 0xf0, 0x80, "a whole message");
        let length = match self.stream.read_u8().await.unwrap() {
            126 => u64::from(self.stream.read_u16().await.unwrap()),
            127 => self.stream.read_u64().await.unwrap(),
            length => u64::from(length),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).await.unwrap();
        Some((first & 0x0f, payload))
    }

    /// The next frame, which has to be an event in JSON.
    async fn event(&mut self) -> Value {
        let (opcode, payload) = self.frame().await.unwrap();
        assert_eq!((opcode, payload.last()), (TEXT, Some(&b'\n')));
        serde_json::from_slice(&payload).unwrap()
    }

    async fn send(&mut self, opcode: u8, payload: &[u8]) {
        let mask = [7, 7, 7, 7];
        let length = u8::try_from(payload.len()).unwrap();
        let masked = payload.iter().map(|byte| byte ^ 7);
        let frame: Vec<u8> = [0x80 | opcode, 0x80 | length].into_iter().chain(mask).chain(masked).collect();
        self.stream.write_all(&frame).await.unwrap();
    }

    /// The connection ends with that status.
    async fn ends(&mut self, status: u16) {
        assert_eq!(self.frame().await, Some((CLOSE, status.to_be_bytes().to_vec())));
        assert_eq!(self.frame().await, None);
    }
}

async fn server(watches_max: usize) -> TestServer {
    let status_controller = StatusController::Off;
    TestServer::start(ApiServerOptions { watches_max, status_controller, ..ApiServerOptions::default() }).await
}

/// Creates a flow schema over a connection of its own.
async fn create(server: &TestServer, metadata: &Value) {
    let body = schema(metadata).to_string();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "POST {SCHEMAS} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{ADMIN}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    soon("a response", stream.read_to_string(&mut response)).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
}

#[tokio::test]
async fn events_are_text_messages_and_pings_are_answered() {
    let server = server(10).await;
    let mut client =
        Client::watch(&server, "watch=1&labelSelector=watched", &format!("{ADMIN}Sec-WebSocket-Protocol: events\r\n"))
            .await;
    assert!(client.head.contains("\r\nsec-websocket-protocol: events\r\n"), "{}", client.head);
    client.send(TEXT, b"nobody reads this").await;
    client.send(PING, b"are you there").await;
    assert_eq!(client.frame().await, Some((PONG, b"are you there".to_vec())));
    create(&server, &json!({"name": "one", "labels": {"watched": ""}})).await;
    let event = client.event().await;
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("one")));
    // An event that needs the longest form of a length.
    let annotations = json!({"padding": "x".repeat(100_000)});
    create(&server, &json!({"name": "two", "labels": {"watched": ""}, "annotations": annotations})).await;
    assert_eq!(client.event().await["object"]["metadata"]["annotations"], annotations);
    client.send(CLOSE, &[3, 232]).await;
    client.ends(1000).await;
}

#[tokio::test]
async fn a_watch_that_is_over_is_closed_in_good_order() {
    let server = server(10).await;
    let mut client = Client::watch(&server, &format!("{EXEMPT}&timeoutSeconds=1"), ADMIN).await;
    assert_eq!(client.event().await["type"], "ADDED");
    client.ends(1000).await;
}

#[tokio::test]
async fn events_in_protobuf_are_binary_messages_without_a_length() {
    let server = server(10).await;
    let accept = "Accept: application/vnd.kubernetes.protobuf;stream=watch\r\n";
    let mut client = Client::watch(&server, EXEMPT, &format!("{ADMIN}{accept}")).await;
    let (opcode, payload) = client.frame().await.unwrap();
    assert!(opcode == BINARY && payload.starts_with(b"\x0a\x05ADDED"), "{opcode} {payload:?}");
}

#[tokio::test]
async fn a_browser_sends_its_token_as_a_protocol() {
    let server = server(10).await;
    let token = URL_SAFE_NO_PAD.encode("viewer-token");
    let protocols =
        format!("Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{token}, base64.binary.k8s.io\r\n");
    let mut client = Client::watch(&server, EXEMPT, &protocols).await;
    assert!(client.head.contains("\r\nsec-websocket-protocol: base64.binary.k8s.io\r\n"), "{}", client.head);
    assert_eq!(client.event().await["type"], "ADDED");
    let refused = Client::connect(&server, EXEMPT, KEY).await;
    assert!(refused.head.starts_with("http/1.1 403 "), "{}", refused.head);
}

#[tokio::test]
async fn who_breaks_the_rules_is_turned_away() {
    let server = server(10).await;
    for headers in ["", "Sec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: x\r\n"] {
        let refused = Client::connect(&server, EXEMPT, &format!("{ADMIN}{headers}")).await;
        assert!(refused.head.starts_with("http/1.1 400 "), "{headers}: {}", refused.head);
    }
    let mut client = Client::watch(&server, EXEMPT, ADMIN).await;
    client.event().await;
    // Not masked.
    client.stream.write_all(&[0x81, 1, b'x']).await.unwrap();
    client.ends(1002).await;
}

#[tokio::test]
async fn websockets_count_as_watches_until_they_end() {
    let server = server(1).await;
    let mut first = Client::watch(&server, EXEMPT, ADMIN).await;
    first.event().await;
    let second = Client::connect(&server, EXEMPT, &format!("{ADMIN}{KEY}")).await;
    assert!(second.head.starts_with("http/1.1 429 "), "{}", second.head);
    // The client disconnects without a close frame.
    drop(first);
    until("a free place", || async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let next = Client::connect(&server, EXEMPT, &format!("{ADMIN}{KEY}")).await;
        next.head.starts_with("http/1.1 101 ").then_some(())
    })
    .await;
}
