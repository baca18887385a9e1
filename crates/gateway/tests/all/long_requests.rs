//! Watches, and what else runs for long, beside the time that requests have.

use crate::frames;
use crate::support;

use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_gateway::Config;
use frames::{Frames, Outcome};
use support::client::{Answer, Client, get};
use support::upstream::{Upstream, ok};
use support::{ONE_LEVEL, config, eventually, one_level_with_long_running, start, start_with};
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

const HANDSHAKE: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n";

/// Begins a stream for `/events`, which ends when its upstream is told so; switches protocols for `/chat`; says no more than
/// `ok` to others.
async fn upstream_of_streams() -> (Upstream, tokio::sync::watch::Sender<bool>) {
    let (end, ends) = tokio::sync::watch::channel(false);
    let upstream = Upstream::new(move |mut client, _| {
        let mut ends = ends.clone();
        async move {
            let head = client.head().await;
            if head.starts_with("GET /events ") {
                client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
                // Whoever has gone does not take it.
                ends.wait_for(|ends| *ends).await.unwrap();
                let _ = client.stream.write_all(b" more").await;
            } else if head.starts_with("GET /chat ") {
                client.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n").await;
                client.rest().await;
            } else {
                client.send(&ok("ok")).await;
            }
        }
    });
    (upstream.await, end)
}

/// One request is too many.
fn assert_too_many(answer: &Answer) {
    let header = |name| answer.header(name).unwrap_or_default();
    assert_eq!((answer.status, header("x-evenkeel-level")), (429, "everybody".to_owned()));
    assert_eq!(header("x-evenkeel-reason"), "too-many-long-running");
    let seconds: u64 = header("retry-after").parse().unwrap();
    assert!((11..=15).contains(&seconds), "{seconds}");
    assert_eq!(answer.header("x-evenkeel-expected-wait"), None, "nobody knows");
    assert!(answer.text().contains(r#""reason":"too-many-long-running","level":"everybody""#), "{}", answer.text());
}

#[tokio::test]
async fn a_level_limits_its_streams_and_upgrades() {
    let (upstream, end) = upstream_of_streams().await;
    let mut settings = config(&[upstream.address]);
    let requests = "requests: {routes: [{path: /events, longRunning: true}]}";
    settings.requests = Config::parse("evenkeel.yaml", requests).unwrap().requests;
    let running = start_with(settings, &one_level_with_long_running(2)).await;

    let mut stream = Client::connect(running.address).await;
    stream.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n").await;
    stream.until(b"half").await;
    let mut upgraded = Client::connect(running.address).await;
    upgraded.send(HANDSHAKE).await;
    assert!(upgraded.head().await.starts_with("HTTP/1.1 101 "));
    running.has_long_running(2).await;
    running.no_seat_is_taken().await;

    assert_too_many(&get(running.address, "/events", "").await);
    assert_too_many(&get(running.address, "/chat", "Connection: Upgrade\r\nUpgrade: chat\r\n").await);
    assert_eq!(get(running.address, "/orders", "").await.text(), "ok", "ordinary requests go on");
    running.has_long_running(2).await;

    // The stream ends, and the connection of the upgrade is closed.
    end.send(true).unwrap();
    assert_eq!(stream.exactly(5).await, b" more");
    running.has_long_running(1).await;
    end.send(false).unwrap();
    drop(upgraded);
    running.has_long_running(0).await;

    // A client that leaves gives its place back too.
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(running.address).await;
        client.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.until(b"half").await;
        streams.push(client);
    }
    assert_too_many(&get(running.address, "/events", "").await);
    // A reset, since one that only closes may still want its response.
    streams.into_iter().for_each(Client::reset);
    running.has_long_running(0).await;
    drop(stream);
    running.done().await;
}

#[tokio::test]
async fn a_rejected_client_learns_level_reason_and_expected_wait() {
    for preset in [Preset::Plain, Preset::Kubernetes] {
        let (end, ends) = tokio::sync::watch::channel(false);
        let upstream = Upstream::new(move |mut client, _| {
            let mut ends = ends.clone();
            async move {
                client.head().await;
                ends.wait_for(|ends| *ends).await.unwrap();
                client.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
            }
        })
        .await;
        let settings = Config { concurrency: Some(1.into()), preset, ..config(&[upstream.address]) };
        let manifest = ONE_LEVEL.replace("queueLengthLimit: 10000", "queueLengthLimit: 1");
        let running = start_with(settings, &manifest).await;
        let flow = running.gateway.flow();
        let mut clients = Vec::new();
        for counts in [(1, 0), (1, 1)] {
            let mut client = Client::connect(running.address).await;
            client.send("GET /orders HTTP/1.1\r\nHost: a\r\n\r\n").await;
            clients.push(client);
            eventually("it has its place", || flow.status().iter().any(|l| (l.executing, l.waiting) == counts)).await;
        }
        let answer = get(running.address, "/orders", "").await;
        assert_eq!(answer.status, 429);
        let headers = ["level", "reason", "expected-wait"].map(|name| answer.header(&format!("x-evenkeel-{name}")));
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        match preset {
            Preset::Plain | Preset::Llm => {
                let [level, reason, wait] = headers.map(Option::unwrap);
                assert_eq!((level.as_str(), reason.as_str()), ("everybody", "queue-full"));
                assert!(wait.parse::<f64>().unwrap() >= 0.0, "{wait}");
                assert!(answer.text().contains(r#""reason":"queue-full","level":"everybody""#), "{}", answer.text());
                assert!((1..=60).contains(&seconds), "{seconds}");
            }
            Preset::Kubernetes => {
                assert_eq!((headers, seconds), ([None, None, None], 1));
                assert_eq!(
                    answer.text(),
                    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too many requests (queue-full), try again in 1 s","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}"#
                );
            }
        }
        end.send(true).unwrap();
        for mut client in clients {
            assert_eq!(client.answer().await.text(), "ok");
        }
        running.done().await;
    }
}
