//! Upstreams of HTTP/2: whose fault it is when a request fails, and which connection the next one takes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod frames;
mod support;

use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::Protocol;
use frames::{DATA, END_STREAM, Frames};
use support::client::{Answer, Client, get};
use support::upstream::Upstream;
use support::{config, start};
use tokio::io::AsyncWriteExt;

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn http2(upstreams: &[SocketAddr]) -> Config {
    let mut settings = config(upstreams);
    settings.upstreams.iter_mut().for_each(|upstream| upstream.protocol = Protocol::Http2);
    settings
}

/// Reads every request to its end, and answers it.
async fn answer_all(client: Client, body: &str) {
    let mut frames = Frames::accept(client, &[]).await;
    while let Some(frame) = frames.next().await {
        if matches!(frame.kind, DATA | frames::HEADERS) && frame.flags & END_STREAM != 0 {
            frames.answer(frame.stream, body).await;
        }
    }
}

async fn answering() -> Upstream {
    Upstream::new(|client, _| answer_all(client, "here")).await
}

async fn send(address: SocketAddr, request: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client.send(request).await;
    client.answer().await
}

#[tokio::test]
async fn faults_of_clients_are_not_those_of_upstreams() {
    let upstreams = [answering().await, answering().await];
    let mut settings = http2(&upstreams.each_ref().map(|upstream| upstream.address));
    settings.limits.body_bytes = 100;
    settings.timeouts.stall = Duration::from_millis(200);
    settings.health.failures = 1;
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let running = start(settings).await;
    let too_large = format!("{CHUNKED}80\r\n{}\r\n0\r\n\r\n", "x".repeat(128));
    for (request, status) in [
        (&*too_large, 413),
        (&*format!("{CHUNKED}2\r\nab\r\nnonsense\r\n"), 400),
        (&*format!("{CHUNKED}2\r\nab\r\n"), 408),
    ] {
        for _ in 0..4 {
            let answer = send(running.address, request).await;
            assert_eq!(answer.status, status, "{}", answer.text());
        }
    }
    let metrics = get(running.gateway.admin_address().unwrap(), "/metrics", "Connection: close\r\n").await.text();
    assert!(metrics.contains("evenkeel_upstream_ejections_total 0\n"), "{metrics}");
    assert_eq!(get(running.address, "/", "").await.text(), "here");
    running.done().await;
}

/// The time for an answer begins when the request has been sent, as it does over HTTP/1.1.
#[tokio::test]
async fn an_upload_that_moves_is_no_upstream_that_does_not_answer() {
    let upstream = answering().await;
    let mut settings = http2(&[upstream.address]);
    settings.timeouts.answer = Duration::from_secs(2);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send(CHUNKED).await;
    // Twice as long as an answer may take.
    for _ in 0..40 {
        client.stream.write_all(b"1\r\nx\r\n").await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client.send("0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, &*answer.text()), (200, "here"));
    running.done().await;
}
