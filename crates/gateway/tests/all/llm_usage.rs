//! `llm.askForUsage`: the gateway asks for the usage of streams whose clients have not, counts it, and keeps it to itself (LM-3).

use crate::support;

use std::net::SocketAddr;

use evenkeel_gateway::Config;
use serde_json::{Value, json};
use support::client::{Client, get};
use support::upstream::{Upstream, has_more};
use support::{Running, start};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":50}}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const PATH: &str = "/v1/chat/completions";

fn settings(upstream: SocketAddr, asks: bool) -> Config {
    settings_with(upstream, asks, "")
}

/// These settings and others.
fn settings_with(upstream: SocketAddr, asks: bool, others: &str) -> Config {
    let text = format!(
        "preset: llm\nlisten: [{{address: 127.0.0.1:0}}]\nupstreams: [{{url: http://{upstream}}}]\nworkers: 1\nconcurrency: 4\n\
         admin: {{address: '127.0.0.1:0', hosts: [shop.example]}}\nllm: {{askForUsage: {asks}}}\n{others}"
    );
    Config::parse("evenkeel.yaml", &text).unwrap()
}

/// Sends the usage of a stream to whoever asks for it, and tells what it was asked: head and body.
async fn upstream() -> (Upstream, UnboundedReceiver<(String, Value)>) {
    let (tells, told) = unbounded_channel();
    let upstream = Upstream::new(move |mut client, _| {
        let tells = tells.clone();
        async move {
            while has_more(&mut client).await {
                let asked = client.answer().await;
                let body: Value = serde_json::from_slice(&asked.body).unwrap();
                let usage = if body["stream_options"]["include_usage"] == true { USAGE } else { "" };
                let _ = tells.send((asked.head, body));
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n";
                let stream = format!("{TEXT}{usage}{DONE}");
                let (begin, rest) = stream.split_at(TEXT.len() + usage.len() / 2);
                let (begin, rest) =
                    (format!("{:x}\r\n{begin}\r\n", begin.len()), format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len()));
                client.send(&format!("{head}{begin}")).await;
                client.send(&rest).await;
            }
        }
    });
    (upstream.await, told)
}

/// What a client gets that sends this.
async fn ask(running: &Running, body: &Value) -> String {
    let mut client = Client::connect(running.address).await;
    let body = body.to_string();
    let fields = format!("Host: shop.example\r\nAccept-Encoding: gzip\r\nContent-Length: {}", body.len());
    client.send(&format!("POST {PATH} HTTP/1.1\r\n{fields}\r\n\r\n{body}")).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text()
}

async fn output_tokens(running: &Running) -> f64 {
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let lines = page.lines().filter(|line| line.starts_with("evenkeel_llm_tokens_total{kind=\"output\""));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[tokio::test]
async fn lm_3_the_gateway_asks_for_usage_and_keeps_it_to_itself() {
    let (upstream, mut told) = upstream().await;
    let running = start(settings(upstream.address, true)).await;
    let body = json!({"model": "m", "stream": true, "messages": [{"content": "{\"stream_options\":"}]});
    assert_eq!(ask(&running, &body).await, format!("{TEXT}{DONE}"));
    let (head, asked) = told.recv().await.unwrap();
    assert_eq!(asked["stream_options"], json!({"include_usage": true}));
    assert_eq!((&asked["messages"], &asked["model"]), (&body["messages"], &body["model"]), "the rest is as it was");
    assert!(!head.to_ascii_lowercase().contains("accept-encoding"), "{head}");
    running.no_seat_is_taken().await;
    assert!((output_tokens(&running).await - 50.0).abs() < 0.5);
    // Clients that have decided themselves get what they have asked for.
    for (options, gets) in [(json!({"include_usage": true}), USAGE), (json!({"include_usage": false}), "")] {
        let body = json!({"model": "m", "stream": true, "stream_options": options});
        assert_eq!(ask(&running, &body).await, format!("{TEXT}{gets}{DONE}"));
        assert_eq!(told.recv().await.unwrap().1, body);
    }
    running.done().await;
}

#[tokio::test]
async fn requests_are_not_changed_unless_the_operator_allows_it() {
    let (upstream, mut told) = upstream().await;
    let running = start(settings(upstream.address, false)).await;
    let body = json!({"model": "m", "stream": true});
    assert_eq!(ask(&running, &body).await, format!("{TEXT}{DONE}"));
    let (head, asked) = told.recv().await.unwrap();
    assert_eq!(asked, body);
    assert!(head.to_ascii_lowercase().contains("accept-encoding: gzip"), "{head}");
    running.done().await;
}

/// Usage that nobody counts would get to the client.
#[tokio::test]
async fn requests_whose_tokens_are_not_counted_are_not_changed() {
    let (upstream, mut told) = upstream().await;
    for unit in ["bytes", "time"] {
        let matches = format!("levels: {{all: {{share: 100}}}}\nmatch: [{{level: all, cost: {unit}}}]");
        let running = start(settings_with(upstream.address, true, &matches)).await;
        let body = json!({"model": "m", "stream": true});
        assert_eq!(ask(&running, &body).await, format!("{TEXT}{DONE}"), "{unit}");
        let (head, asked) = told.recv().await.unwrap();
        assert_eq!(asked, body, "{unit}");
        assert!(head.to_ascii_lowercase().contains("accept-encoding: gzip"), "{head}");
        running.done().await;
    }
}
