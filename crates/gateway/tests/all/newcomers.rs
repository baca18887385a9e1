//! A client with slow requests does not starve the others (PF-10), through the gateway.

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_gateway::config::{HeaderIdentity, IdentitySource};
use support::client::{Client, get};
use support::upstream::{Upstream, has_more, ok};
use support::{PATIENCE, Running, config, eventually, start};
use tokio::sync::Semaphore;

/// How many requests run and wait, and how many seats are kept.
fn in_level(running: &Running) -> (usize, usize, i64) {
    let status = running.gateway.flow().status();
    let level = status.iter().find(|level| level.name == "everyone").unwrap();
    (level.executing, level.waiting, level.kept_seats)
}

#[tokio::test]
async fn pf_10_a_client_with_slow_requests_leaves_seats_to_others() {
    let ends = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&ends);
    let upstream = Upstream::new(move |mut client, _| {
        let held = Arc::clone(&held);
        async move {
            while has_more(&mut client).await {
                if client.answer().await.head.starts_with("GET /slow ") {
                    held.acquire().await.unwrap().forget();
                }
                client.send(&ok("done")).await;
            }
        }
    })
    .await;
    let mut settings = config(&[upstream.address]);
    (settings.concurrency, settings.timeouts.queue) = (Some(10.into()), PATIENCE);
    let trusted = vec!["127.0.0.1".parse().unwrap()];
    let headers = HeaderIdentity { from_addresses: trusted, ..HeaderIdentity::default() };
    settings.identity.sources = vec![IdentitySource::TrustedHeaders(headers)];
    let mut running = start(settings.clone()).await;

    let mut slow = Vec::new();
    for _ in 0..30 {
        let mut client = Client::connect(running.address).await;
        client.send("GET /slow HTTP/1.1\r\nHost: a\r\nX-Remote-User: greedy\r\n\r\n").await;
        slow.push(client);
    }
    eventually("they run or wait", || in_level(&running) == (8, 22, 2)).await;
    for _ in 0..20 {
        // It would wait until the slow requests end, which they do not.
        let answer = get(running.address, "/quick", "X-Remote-User: other\r\n").await;
        assert_eq!(answer.status, 200);
    }
    eventually("the quick ones have ended", || in_level(&running).0 == 8).await;

    // With an hour, no request is slow; what is known of the flows is forgotten when the rules change.
    settings.flow_control.newcomer_wait = Duration::from_secs(3600);
    let changed = running.gateway.reconfigure(settings).await.unwrap().changed;
    assert_eq!(changed, ["flowControl.newcomerWait"]);
    ends.add_permits(30);
    for mut client in slow {
        assert_eq!(client.answer().await.status, 200);
    }
    running.done().await;
}
