//! Clients of language models that leave: their generations end, nobody else waits for their seats, and they are charged for what they took.

#![expect(clippy::float_cmp, reason = "the figures are whole numbers")]

use crate::dashboard::Events;
use crate::support;

use std::net::SocketAddr;

use evenkeel_gateway::Config;
use evenkeel_gateway::observe::frame::Frame;
use support::client::{Client, get};
use support::upstream::{Upstream, has_more};
use support::{Running, eventually, start};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// An event of a stream.
const EVENT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";

/// One seat for everybody. Nothing but an end of the client ends a request in time for a test.
fn settings(upstream: SocketAddr) -> Config {
    settings_with(upstream, "")
}

/// These settings and others.
fn settings_with(upstream: SocketAddr, others: &str) -> Config {
    let text = format!(
        "preset: llm\nlisten: [{{address: 127.0.0.1:0}}]\nupstreams: [{{url: http://{upstream}}}]\nworkers: 1\nconcurrency: 1\n\
         admin: {{address: '127.0.0.1:0', hosts: [shop.example]}}\n{others}"
    );
    Config::parse("evenkeel.yaml", &text).unwrap()
}

/// Begins a stream unless the model is silent, and tells which requests came and which of their connections were closed.
async fn upstream() -> (Upstream, UnboundedReceiver<&'static str>) {
    let (tells, told) = unbounded_channel();
    let upstream = Upstream::new(move |mut client, _| {
        let tells = tells.clone();
        async move {
            while has_more(&mut client).await {
                let is_silent = client.answer().await.text().contains("silent");
                let _ = tells.send("asked");
                if !is_silent {
                    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream";
                    client.send(&format!("{head}\r\n\r\n{:x}\r\n{EVENT}\r\n", EVENT.len())).await;
                }
                client.rest().await;
                let _ = tells.send("closed");
            }
        }
    });
    (upstream.await, told)
}

/// A client that has asked for this model.
async fn asking(address: SocketAddr, model: &str) -> Client {
    let mut client = Client::connect(address).await;
    let body =
        format!("{{\"model\":\"{model}\",\"stream\":true,\"messages\":[{{\"content\":\"{}\"}}]}}", "x".repeat(400));
    let length = body.len();
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {length}\r\n\r\n");
    client.send(&format!("{head}{body}")).await;
    client
}

fn waiting(running: &Running) -> usize {
    running.gateway.flow().status().iter().map(|level| level.waiting).sum()
}

/// The sum of the series that begin so.
async fn metric(running: &Running, begin: &str) -> f64 {
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let lines = page.lines().filter(|line| line.starts_with(begin));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Closing a connection and resetting it come to the same: what ends with its client ends as soon as the client has closed (LM preset,
/// `whenClientLeaves: cancel`).
const WAYS: [fn(Client); 2] = [drop, Client::reset];

#[tokio::test]
async fn generation_ends_with_its_client_and_the_seat_is_free_at_once() {
    let (upstream, mut told) = upstream().await;
    let running = start(settings(upstream.address)).await;
    for leave in WAYS {
        for model in ["silent", "talking"] {
            let mut client = asking(running.address, model).await;
            assert_eq!(told.recv().await, Some("asked"));
            if model == "talking" {
                assert!(client.head().await.starts_with("HTTP/1.1 200"));
            }
            let next = asking(running.address, "silent").await;
            eventually("the next one waits", || waiting(&running) == 1).await;
            leave(client);
            // The end of the one and the beginning of the other: their connections are different ones.
            let mut events = [told.recv().await.unwrap(), told.recv().await.unwrap()];
            events.sort_unstable();
            assert_eq!(events, ["asked", "closed"], "{model}");
            leave(next);
            assert_eq!(told.recv().await, Some("closed"));
            running.no_seat_is_taken().await;
        }
    }
    assert_eq!(
        metric(&running, "evenkeel_requests_abandoned_total").await,
        0.0,
        "no seat was kept for somebody who had left"
    );
    running.done().await;
}

#[tokio::test]
async fn nothing_is_generated_for_a_client_that_has_left_its_place_in_the_line() {
    let (upstream, mut told) = upstream().await;
    let running = start(settings(upstream.address)).await;
    let first = asking(running.address, "silent").await;
    assert_eq!(told.recv().await, Some("asked"));
    for leave in WAYS {
        let second = asking(running.address, "silent").await;
        eventually("it waits", || waiting(&running) == 1).await;
        leave(second);
        eventually("it has left the line", || waiting(&running) == 0).await;
    }
    drop(first);
    assert_eq!(told.recv().await, Some("closed"));
    running.no_seat_is_taken().await;
    assert!(told.try_recv().is_err(), "the server was asked for somebody who had left");
    running.done().await;
}

#[tokio::test]
async fn a_prompt_that_was_sent_is_charged_to_a_client_that_leaves_before_the_first_token() {
    let (upstream, mut told) = upstream().await;
    let running = start(settings(upstream.address)).await;
    let client = asking(running.address, "silent").await;
    assert_eq!(told.recv().await, Some("asked"));
    drop(client);
    assert_eq!(told.recv().await, Some("closed"));
    running.no_seat_is_taken().await;
    // The body has some 480 bytes, four of which are taken for a token.
    let tokens = metric(&running, "evenkeel_llm_tokens_total{kind=\"prompt\"").await;
    assert!((115.0..125.0).contains(&tokens), "{tokens}");
    running.done().await;
}

/// The match says that costs are counted in something else: a seat is kept for as long as such requests run, and no tokens are charged.
#[tokio::test]
async fn a_client_whose_tokens_are_not_counted_is_not_charged_for_any() {
    let (upstream, mut told) = upstream().await;
    for unit in ["bytes", "time"] {
        let matches = format!("levels: {{all: {{share: 100}}}}\nmatch: [{{level: all, cost: {unit}}}]");
        let running = start(settings_with(upstream.address, &matches)).await;
        let client = asking(running.address, "silent").await;
        assert_eq!(told.recv().await, Some("asked"));
        drop(client);
        assert_eq!(told.recv().await, Some("closed"));
        running.no_seat_is_taken().await;
        assert_eq!(metric(&running, "evenkeel_requests_abandoned_total").await, 1.0, "{unit}");
        assert_eq!(metric(&running, "evenkeel_request_cost_total").await, 0.0, "{unit}: no byte has come");
        assert_eq!(metric(&running, "evenkeel_llm_tokens_total").await, 0.0, "{unit}");
        running.done().await;
    }
}

/// LM-8: the dashboard tells what a model does while it generates, not only when it has ended.
#[tokio::test]
async fn lm_8_a_model_is_in_the_frames_while_it_generates() {
    let (upstream, _told) = upstream().await;
    let running = start(settings(upstream.address)).await;
    let mut events = Events::open(running.gateway.admin_address().unwrap()).await;
    assert_eq!(events.frame().await.models, []);
    let mut frames = Vec::new();
    // A busy machine may miss the frame of the second in which a response began.
    let is_generating = |frame: &Frame| {
        let [model] = &frame.models[..] else { return false };
        model.name == "talking" && model.running == 1 && model.prompt > 0.0 && model.output > 0.0
    };
    while !frames.last().is_some_and(is_generating) {
        assert!(frames.len() < 20, "{:?}", frames.last());
        let mut client = asking(running.address, "talking").await;
        assert!(client.head().await.starts_with("HTTP/1.1 200"));
        frames.push(events.frame().await);
    }
    let begin = |what: &str| format!("evenkeel_llm_time_to_first_token_seconds_{what}{{model=\"talking\"}}");
    let (count, sum) = (metric(&running, &begin("count")).await, metric(&running, &begin("sum")).await);
    assert!(count >= 1.0 && sum > 0.0 && sum < 10.0 * count, "{count} {sum}");
    while frames.last().is_some_and(|frame| frame.models[0].running > 0) {
        assert!(frames.len() < 40, "{:?}", frames.last());
        frames.push(events.frame().await);
    }
    running.done().await;
}
