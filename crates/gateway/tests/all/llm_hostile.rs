//! Bodies and streams that are no JSON, endless, deep, cut or too short pass through `preset: llm` as they are (LM-5), and leave nothing behind.

use crate::support;

use std::net::SocketAddr;
use std::sync::Arc;

use evenkeel_gateway::Config;
use support::client::{Client, find};
use support::start;
use support::upstream::{Upstream, has_more};
use tokio::io::AsyncWriteExt;

fn settings(upstream: SocketAddr) -> Config {
    let text = format!(
        "preset: llm\nlisten: [{{address: 127.0.0.1:0}}]\nupstreams: [{{url: http://{upstream}}}]\nworkers: 1\nconcurrency: 4\n\
         admin: {{address: null}}"
    );
    Config::parse("evenkeel.yaml", &text).unwrap()
}

/// What is no conversation with a language model.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut name = b"{\"model\":\"".to_vec();
    name.extend([0xff, 0xfe, b'"', b'}']);
    vec![
        ("empty", Vec::new()),
        ("deep arrays", b"[".repeat(300_000)),
        ("deep objects", b"{\"model\":".repeat(100_000)),
        ("an endless line", b"x".repeat(2_000_000)),
        ("an endless name", [b"{\"model\":\"", &b"m".repeat(1_500_000)[..]].concat()),
        ("an endless number", [b"{\"max_tokens\":", &b"9".repeat(1_200_000)[..]].concat()),
        ("no UTF-8", name),
        ("binary", binary),
        ("cut", b"{\"model\":\"m\",\"messages\":[{\"content\":\"a \\u00".to_vec()),
        ("escapes", b"\\\"".repeat(200_000)),
        ("too large a number", b"{\"max_tokens\":1e999,\"model\":null,\"stream\":[]}".to_vec()),
    ]
}

/// A request with this body, and what comes back of it.
async fn post(client: &mut Client, path: &str, body: &[u8]) -> support::client::Answer {
    let head = format!("POST {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {}\r\n\r\n", body.len());
    client.send(&head).await;
    client.stream.write_all(body).await.unwrap();
    client.answer().await
}

#[tokio::test]
async fn lm_1_any_body_reaches_the_upstream_as_it_is() {
    let echo = Upstream::new(|mut client, _| async move {
        while has_more(&mut client).await {
            let body = client.answer().await.body;
            client.send(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())).await;
            client.stream.write_all(&body).await.unwrap();
        }
    });
    let echo = echo.await;
    let running = start(settings(echo.address)).await;
    for (what, body) in hostile() {
        for path in ["/v1/chat/completions", "/v1/messages", "/api/generate"] {
            let mut client = Client::connect(running.address).await;
            let answer = post(&mut client, path, &body).await;
            assert_eq!(answer.status, 200, "{what}: {}", answer.head);
            assert!(answer.body == body, "{what} at {path}: {} bytes came back", answer.body.len());
        }
    }
    running.done().await;
}

#[tokio::test]
async fn lm_5_any_response_reaches_the_client_as_it_is() {
    let streams: Vec<Vec<u8>> = hostile().into_iter().map(|(_, body)| body).chain(framed()).collect();
    let streams = Arc::new(streams);
    let served = Arc::clone(&streams);
    let upstream = Upstream::new(move |mut client, _| {
        let streams = Arc::clone(&served);
        async move {
            while has_more(&mut client).await {
                let head = client.answer().await.head;
                let (number, content_type) = (find(&head, "x-number").unwrap(), find(&head, "x-type").unwrap());
                let stream = &streams[number.parse::<usize>().unwrap()];
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type";
                client.send(&format!("{head}: {content_type}\r\n\r\n")).await;
                // Chunks end anywhere.
                for piece in stream.chunks(7777) {
                    client.send(&format!("{:x}\r\n", piece.len())).await;
                    client.stream.write_all(piece).await.unwrap();
                    client.send("\r\n").await;
                }
                client.send("0\r\n\r\n").await;
            }
        }
    });
    let upstream = upstream.await;
    let running = start(settings(upstream.address)).await;
    for (number, stream) in streams.iter().enumerate() {
        for content_type in ["text/event-stream", "application/json", "application/x-ndjson"] {
            let mut client = Client::connect(running.address).await;
            let fields = format!("X-Number: {number}\r\nX-Type: {content_type}\r\nContent-Length: 2\r\n\r\n{{}}");
            client.send(&format!("POST /v1/chat/completions HTTP/1.1\r\nHost: shop.example\r\n{fields}")).await;
            let answer = client.answer().await;
            assert!(answer.body == *stream, "{number} as {content_type}: {} bytes came", answer.body.len());
        }
    }
    running.done().await;
}

/// Streams that begin well.
fn framed() -> Vec<Vec<u8>> {
    vec![
        b"data: ".repeat(100_000),
        [&b"data: "[..], &b"[".repeat(400_000), b"\n\ndata: [DONE]\n\n"].concat(),
        b"data: {\"usage\":{\"completion_tokens\":-7,\"prompt_tokens\":1e308}}\n\n".repeat(1000),
        b"\r\n".repeat(100_000),
    ]
}

#[tokio::test]
async fn lm_5_a_stream_that_breaks_off_breaks_off_for_its_client() {
    let upstream = Upstream::new(|mut client, number| async move {
        client.answer().await;
        let event = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
        let framing = match number {
            0 => format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n", event.len()),
            1 => format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{event}", event.len() + 100),
            _ => format!("Content-Length: {}\r\n\r\n{event}", event.len() + 100),
        };
        client.send(&format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}")).await;
    });
    let upstream = upstream.await;
    let running = start(settings(upstream.address)).await;
    for _ in 0..3 {
        let mut client = Client::connect(running.address).await;
        client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\n{}").await;
        assert!(client.head().await.starts_with("HTTP/1.1 200"));
        let rest = client.rest().await;
        assert!(rest.windows(7).any(|window| window == b"content") && !rest.ends_with(b"0\r\n\r\n"), "{rest:?}");
    }
    running.done().await;
}

#[tokio::test]
async fn lm_1_a_request_whose_body_breaks_off_leaves_nothing_behind() {
    let upstream = Upstream::silent().await;
    let running = start(settings(upstream.address)).await;
    for framing in
        ["Content-Length: 1000000\r\n\r\n{\"model\":\"m", "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"mod\r\n"]
    {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("POST /v1/chat/completions HTTP/1.1\r\nHost: shop.example\r\n{framing}")).await;
        client.reset();
    }
    running.done().await;
}

#[tokio::test]
async fn lm_6_who_waits_is_told_where_in_the_line() {
    let (upstream, mut told, leave) = Upstream::held().await;
    let mut settings = settings(upstream.address);
    settings.concurrency = Some(1.into());
    let running = start(settings).await;
    let request = "POST /v1/chat/completions HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\n{}";
    let mut clients = Vec::new();
    let flow = running.gateway.flow().clone();
    let waiting = || flow.status().iter().map(|level| level.waiting).sum::<usize>();
    for number in 0..3_usize {
        let mut client = Client::connect(running.address).await;
        client.send(request).await;
        if number == 0 {
            told.recv().await.unwrap();
        } else {
            support::eventually("it waits", || waiting() == number).await;
        }
        clients.push(client);
    }
    leave.add_permits(3);
    for (mut client, position) in clients.into_iter().zip([None, Some("1"), Some("2")]) {
        let answer = client.answer().await;
        assert_eq!(answer.header("x-evenkeel-queue-position").as_deref(), position);
        assert_eq!(answer.header("x-evenkeel-waited").is_some(), position.is_some());
    }
    running.done().await;
}
