//! Watches, and what else runs for long, beside the time that requests have.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod frames;
mod support;

use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_gateway::Config;
use frames::{Frames, Outcome};
use support::client::Client;
use support::upstream::Upstream;
use support::{config, start};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn what_is_long_by_nature_is_not_cut_when_others_are() {
    let (go_on, goes_on) = tokio::sync::watch::channel(false);
    let upstream = Upstream::new(move |mut client, _| {
        let mut goes_on = goes_on.clone();
        async move {
            client.head().await;
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
            goes_on.wait_for(|goes_on| *goes_on).await.unwrap();
            // Whoever has been cut does not take it.
            let _ = client.stream.write_all(b" more").await;
        }
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.total = Duration::from_millis(150);
    let requests = "requests: {routes: [{path: /events, longRunning: true}]}";
    settings.preset = Preset::Kubernetes;
    settings.requests = Config::parse("evenkeel.yaml", requests).unwrap().requests;
    let running = start(settings).await;
    let mut long = Vec::new();
    for path in ["/events", "/api/v1/pods?watch=1"] {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        client.until(b"half").await;
        let mut frames = Frames::connect(running.address).await;
        frames.send_head(1, &frames::request(path, &[]), frames::END_STREAM).await;
        while frames.next().await.unwrap().kind != frames::DATA {}
        long.push((path, client, frames));
    }
    // What is not long, and has begun later, is over.
    let mut client = Client::connect(running.address).await;
    client.send("GET /api/v1/pods HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.rest().await.ends_with(b"half"));
    go_on.send(true).unwrap();
    for (path, mut client, mut frames) in long {
        assert_eq!(client.exactly(5).await, b" more", "{path}");
        assert_eq!(frames.outcome(1).await, Outcome::Answered(" more".to_owned()), "{path}");
    }
    running.done().await;
}
