//! `WebSocket` and other upgrades.

use crate::support;

use std::time::Duration;

use evenkeel_gateway::Drained;
use support::client::{Client, find};
use support::upstream::{Upstream, has_more, ok};
use support::{config, gateway, start};
use tokio::io::AsyncWriteExt;

const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Accepts a handshake, and says everything back in capitals.
async fn shouting() -> Upstream {
    Upstream::new(|mut client, _| async move {
        let head = client.head().await;
        assert_eq!(find(&head, "connection").as_deref(), Some("upgrade"));
        assert_eq!(find(&head, "upgrade").as_deref(), Some("websocket"));
        assert_eq!(find(&head, "sec-websocket-key").as_deref(), Some("dGhlIHNhbXBsZSBub25jZQ=="));
        let accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello";
        client.send(accepted).await;
        while has_more(&mut client).await {
            let line = client.until(b"\n").await;
            client.stream.write_all(&line.to_ascii_uppercase()).await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn both_sides_speak_after_an_upgrade_and_no_seat_is_kept() {
    let upstream = shouting().await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    // What comes right after the handshake is not lost.
    client.send(&format!("{HANDSHAKE}early\n")).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert_eq!(find(&head, "connection").as_deref(), Some("upgrade"));
    assert_eq!(find(&head, "sec-websocket-accept").as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(client.exactly(11).await, b"helloEARLY\n");
    for _ in 0..3 {
        client.send("more\n").await;
        assert_eq!(client.until(b"\n").await, b"MORE\n");
    }
    running.no_seat_is_taken().await;
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn an_upgrade_that_is_refused_is_an_ordinary_answer() {
    let upstream = Upstream::answering(|_| ok("no")).await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    for _ in 0..2 {
        client.send(HANDSHAKE).await;
        assert_eq!(client.answer().await.text(), "no");
    }
    running.done().await;
}

#[tokio::test]
async fn an_upstream_cannot_upgrade_what_was_not_asked_for() {
    let upstream = Upstream::answering(|_| "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".to_owned()).await;
    let running = gateway(upstream.address).await;
    let answer = support::client::get(running.address, "/", "").await;
    assert_eq!(answer.status, 502);
    running.done().await;
}

#[tokio::test]
async fn an_upgraded_connection_is_cut_when_the_time_to_drain_is_over() {
    let upstream = shouting().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.drain = Duration::from_millis(100);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send(HANDSHAKE).await;
    client.head().await;
    assert_eq!(client.exactly(5).await, b"hello");
    assert_eq!(running.gateway.drain().await, Drained { requests_cut: 1 });
    assert!(client.is_closed().await);
}
