//! Routes that take no seat, such as those of long polls: they never make others wait.

use crate::frames;
use crate::support;

use std::time::Duration;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::AccessLogFormat;
use frames::{Frames, Outcome};
use serde_json::Value;
use support::client::{Client, get};
use support::upstream::{Upstream, ok};
use support::{Running, config, eventually, one_level_with_long_running, start, start_with};
use tokio::sync::watch;

/// Answers polls when the test says so, and everything else at once.
async fn upstream() -> (Upstream, watch::Sender<bool>) {
    let (news, has_news) = watch::channel(false);
    let upstream = Upstream::new(move |mut client, _| {
        let mut has_news = has_news.clone();
        async move {
            while support::upstream::has_more(&mut client).await {
                if client.answer().await.head.starts_with("GET /poll") {
                    has_news.wait_for(|has_news| *has_news).await.unwrap();
                }
                client.send(&ok("here")).await;
            }
        }
    });
    (upstream.await, news)
}

/// Ten seats, and polls that take none.
fn settings(upstream: &Upstream) -> Config {
    let mut settings = config(&[upstream.address]);
    settings.concurrency = Some(10.into());
    settings.requests = Config::parse("x", "requests: {routes: [{path: /poll, seats: 0}]}").unwrap().requests;
    settings
}

async fn poll(running: &Running) -> Client {
    let mut client = Client::connect(running.address).await;
    client.send("GET /poll HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client
}

#[tokio::test]
async fn idle_polls_make_nobody_wait() {
    let (upstream, news) = upstream().await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&upstream);
    settings.log.access = AccessLogFormat::Json;
    settings.log.access_file = Some(folder.path().join("access.log"));
    let running = start(settings).await;
    let mut polls = Vec::new();
    for _ in 0..12 {
        polls.push(poll(&running).await);
    }
    running.has_long_running(12).await;
    let flow = running.gateway.flow();
    let everyone = || flow.status().into_iter().find(|level| level.name == "everyone").unwrap();
    assert_eq!((everyone().seatless, everyone().executing, everyone().seats_in_use), (12, 12, 0));
    for _ in 0..20 {
        assert_eq!(get(running.address, "/orders", "").await.text(), "here");
    }
    let mut over_http2 = Frames::connect(running.address).await;
    over_http2.send_head(1, &frames::request("/poll", &[]), frames::END_STREAM).await;
    running.has_long_running(13).await;

    news.send(true).unwrap();
    for mut client in polls {
        assert_eq!(client.answer().await.text(), "here");
    }
    assert_eq!(over_http2.outcome(1).await, Outcome::Answered("here".to_owned()));
    running.has_long_running(0).await;
    running.done().await;
    let log = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    for line in log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let is_poll = line["path"] == "/poll";
        assert_eq!((&line["level"], line["seats"].as_u64()), (&"everyone".into(), Some(u64::from(!is_poll))), "{line}");
        assert!(line["waitMs"].as_f64().unwrap() < 200.0, "{line}");
        assert!(!is_poll || line["serviceMs"].as_f64().unwrap() > 0.0, "{line}");
    }
}

#[tokio::test]
async fn a_level_limits_them_as_it_limits_streams() {
    let (upstream, news) = upstream().await;
    let running = start_with(settings(&upstream), &one_level_with_long_running(2)).await;
    let (first, mut second) = (poll(&running).await, poll(&running).await);
    running.has_long_running(2).await;
    let rejected = get(running.address, "/poll", "").await;
    assert_eq!(rejected.status, 429);
    assert_eq!(rejected.header("x-evenkeel-reason").as_deref(), Some("too-many-long-running"));
    assert_eq!(rejected.header("x-evenkeel-level").as_deref(), Some("everybody"));
    assert_eq!(get(running.address, "/orders", "").await.text(), "here", "ordinary requests go on");

    // A request without a seat ends with its client, at the upstream too.
    first.reset();
    running.has_long_running(1).await;
    let mut third = poll(&running).await;
    running.has_long_running(2).await;
    news.send(true).unwrap();
    for client in [&mut second, &mut third] {
        assert_eq!(client.answer().await.text(), "here");
    }
    running.has_long_running(0).await;
    running.done().await;
}

#[tokio::test]
async fn clients_that_leave_their_polls_leave_no_work_behind() {
    let (upstream, mut told) = Upstream::telling().await;
    let running = start(settings(&upstream)).await;
    for _ in 0..3 {
        let client = poll(&running).await;
        assert_eq!(told.recv().await, Some("begun"));
        client.reset();
        assert_eq!(told.recv().await, Some("cut"), "nobody waits for its response");
    }
    running.has_long_running(0).await;
    running.done().await;
}

#[tokio::test]
async fn they_start_although_every_seat_is_taken_and_others_wait() {
    let (upstream, mut told, leave) = Upstream::held().await;
    let settings = Config { concurrency: Some(1.into()), ..settings(&upstream) };
    let running = start(settings).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(running.address).await;
        client.send("GET /orders HTTP/1.1\r\nHost: a\r\n\r\n").await;
        clients.push(client);
    }
    told.recv().await.unwrap();
    let flow = running.gateway.flow();
    eventually("one waits", || flow.status().iter().any(|level| level.waiting == 1)).await;
    clients.push(poll(&running).await);
    let begun = tokio::time::timeout(Duration::from_secs(10), told.recv()).await;
    begun.expect("the poll reaches the upstream").unwrap();
    leave.add_permits(3);
    for mut client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
    running.done().await;
}
