//! Several upstreams: the one with the least to do is asked, and those that fail are left alone for a while.

use crate::support;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_gateway::Config;
use support::client::{Client, get};
use support::upstream::{Upstream, answer_all, ok};
use support::{Running, config, eventually, start};
use tokio::net::{TcpListener, TcpSocket};

async fn named(name: &'static str) -> Upstream {
    Upstream::answering(move |_| ok(name)).await
}

#[tokio::test]
async fn idle_upstreams_take_turns() {
    let (a, b) = (named("a").await, named("b").await);
    let running = start(config(&[a.address, b.address])).await;
    let mut counts = [0, 0];
    for _ in 0..10 {
        counts[usize::from(get(running.address, "/", "").await.text() == "b")] += 1;
    }
    assert_eq!(counts, [5, 5]);
    running.done().await;
}

#[tokio::test]
async fn one_that_is_busy_gets_no_more() {
    let slow = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nslow\r\n").await;
        client.rest().await;
    })
    .await;
    let quick = named("quick").await;
    let running = start(config(&[slow.address, quick.address])).await;
    let mut waiting = Vec::new();
    while slow.connections() == 0 {
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.head().await;
        waiting.push(client);
    }
    for _ in 0..10 {
        assert_eq!(get(running.address, "/", "").await.text(), "quick");
    }
    assert_eq!(slow.connections(), 1);
    waiting.into_iter().for_each(Client::reset);
    running.done().await;
}

#[tokio::test]
async fn one_that_fails_is_left_alone_and_tried_again_later() {
    let well = named("well").await;
    let socket = unused();
    let ill = socket.local_addr().unwrap();
    let mut settings = config(&[well.address, ill]);
    settings.health.failures = 2;
    (settings.health.pause, settings.health.pause_max) = (Duration::from_millis(300), Duration::from_millis(300));
    let running = start(settings).await;
    for _ in 0..20 {
        // Nothing is lost: nothing was sent to the one that refuses.
        assert_eq!(get(running.address, "/", "").await.text(), "well");
    }
    let recovered = Upstream::at(socket.listen(16).unwrap(), |client, _| answer_all(client, |_| ok("recovered")));
    let mut counts = [0, 0];
    let until = tokio::time::Instant::now() + support::PATIENCE;
    while counts[1] < 5 && tokio::time::Instant::now() < until {
        counts[usize::from(get(running.address, "/", "").await.text() == "recovered")] += 1;
    }
    assert!(counts[1] >= 5, "{counts:?}");
    drop(recovered);
    running.done().await;
}

/// A socket on which nobody listens yet, so that connections are refused and nobody else gets the port.
fn unused() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

/// Settings with an admin endpoint.
fn observed(upstreams: &[SocketAddr]) -> Config {
    let mut settings = config(upstreams);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings
}

/// The value of each series of a metric, in the order of the upstreams.
async fn values(running: &Running, metric: &str) -> Vec<u64> {
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let series = page.lines().filter(|line| line.starts_with(&format!("{metric}{{")));
    series.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn a_sole_upstream_that_fails_is_down_and_is_asked_all_the_same() {
    let socket = unused();
    let mut settings = observed(&[socket.local_addr().unwrap()]);
    settings.health.failures = 3;
    settings.health.pause = Duration::from_secs(30);
    let running = start(settings).await;
    for (failures, is_up) in [(1, 1), (2, 1), (3, 0), (4, 0)] {
        assert_eq!(get(running.address, "/", "").await.status, 502);
        assert_eq!(values(&running, "evenkeel_upstream_up").await, [is_up], "after {failures} failures");
    }
    let failed: u64 = values(&running, "evenkeel_upstream_failures_total").await.iter().sum();
    assert_eq!((failed, values(&running, "evenkeel_upstream_ejections_total").await), (4, vec![0]));
    // It is asked in spite of its pause: there is no other.
    let back = Upstream::at(socket.listen(16).unwrap(), |client, _| answer_all(client, |_| ok("back")));
    assert_eq!(get(running.address, "/", "").await.text(), "back");
    assert_eq!(values(&running, "evenkeel_upstream_up").await, [1]);
    drop(back);
    running.done().await;
}

#[tokio::test]
async fn a_sole_upstream_that_closes_connections_is_down() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
    })
    .await;
    let running = start(observed(&[upstream.address])).await;
    for _ in 0..3 {
        assert_eq!(get(running.address, "/", "").await.status, 502);
    }
    assert_eq!(values(&running, "evenkeel_upstream_up").await, [0]);
    running.done().await;
}

#[tokio::test]
async fn all_upstreams_that_fail_are_down() {
    let sockets = [unused(), unused()];
    let mut settings = observed(&sockets.each_ref().map(|socket| socket.local_addr().unwrap()));
    settings.health.failures = 2;
    settings.health.pause = Duration::from_secs(30);
    let running = start(settings).await;
    for _ in 0..4 {
        assert_eq!(get(running.address, "/", "").await.status, 502);
    }
    assert_eq!(values(&running, "evenkeel_upstream_up").await, [0, 0]);
    assert_eq!(values(&running, "evenkeel_upstream_ejections_total").await, [1, 1]);
    running.done().await;
}

#[tokio::test]
async fn when_all_fail_they_are_asked_all_the_same() {
    let mut addresses = Vec::new();
    for _ in 0..2 {
        addresses.push(TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap());
    }
    let mut settings = config(&addresses);
    settings.health.failures = 1;
    settings.health.pause = Duration::from_secs(60);
    let running = start(settings).await;
    for _ in 0..3 {
        assert_eq!(get(running.address, "/", "").await.status, 502);
    }
    // One comes back before its pause is over: it is found.
    let back =
        Upstream::at(TcpListener::bind(addresses[1]).await.unwrap(), |client, _| answer_all(client, |_| ok("back")));
    let mut found = 0;
    for _ in 0..4 {
        found += usize::from(get(running.address, "/", "").await.status == 200);
    }
    assert!(found >= 3, "{found}");
    drop(back);
    running.done().await;
}

#[tokio::test]
async fn a_flapping_upstream_loses_nothing_that_can_be_saved() {
    let well = named("well").await;
    let flapping = Upstream::new(|mut client, number| async move {
        // Every other connection is closed at once.
        if number % 2 == 0 {
            return;
        }
        client.head().await;
        client.send(&ok("flapping")).await;
    })
    .await;
    let mut settings = config(&[well.address, flapping.address]);
    settings.health.pause = Duration::from_millis(50);
    let running = start(settings).await;
    let mut statuses = [0, 0];
    for _ in 0..100 {
        statuses[usize::from(get(running.address, "/", "").await.status != 200)] += 1;
    }
    assert!(statuses[0] >= 70, "{statuses:?}");
    let connections = flapping.connections.clone();
    eventually("it was asked", move || connections.load(Ordering::SeqCst) > 3).await;
    running.done().await;
}
