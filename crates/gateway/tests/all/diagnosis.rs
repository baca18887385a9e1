//! The diagnosis of a gateway with real clients and upstreams, as the dashboard gets it.

use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_gateway::observe::frame::DiagnosisState;
use serde_json::json;

use crate::dashboard::Events;
use crate::support::client::Client;
use crate::support::upstream::Upstream;
use crate::support::{ONE_LEVEL, Running, config, eventually, start};

/// The first sentence of this kind, while a client sends requests.
async fn sentence(running: &Running, state: DiagnosisState, contains: &str) -> String {
    let admin = running.gateway.admin_address().unwrap();
    let address = running.address;
    let asking = tokio::spawn(async move {
        loop {
            let mut client = Client::connect(address).await;
            client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
            // Whatever comes back: the next request follows. A silent upstream is given up before this time is over.
            let _ = tokio::time::timeout(Duration::from_secs(5), client.rest()).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut events = Events::open(admin).await;
    let found = loop {
        let found = events.frame().await.diagnosis;
        if found.state == state && found.text.contains(contains) {
            break found.text;
        }
    };
    asking.abort();
    found
}

fn with_admin(upstream: SocketAddr) -> evenkeel_gateway::Config {
    let mut settings = config(&[upstream]);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.timeouts.response = Duration::from_millis(500);
    settings.timeouts.drain = Duration::from_millis(100);
    settings
}

#[tokio::test]
async fn failing_upstreams_are_told_by_how_they_fail() {
    let failing = Upstream::answering(|_| "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    let silent = Upstream::silent().await;
    let closing = Upstream::new(|mut client, _| async move {
        client.head().await;
    })
    .await;
    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    for (address, words) in [
        (failing.address, "responds with errors"),
        (silent.address, "does not respond in time"),
        (closing.address, "closes connections before it has responded"),
        (gone, "cannot be connected to"),
    ] {
        let running = start(with_admin(address)).await;
        let found = sentence(&running, DiagnosisState::Failing, words).await;
        assert!(found.starts_with(&format!("not flow control: the upstream {address} {words}: ")), "{found}");
        assert!(found.ends_with(" requests a second fail"), "{found}");
        running.gateway.drain().await;
    }
}

/// Nobody has ended a request yet, so all that is known is who holds seats and who waits.
#[tokio::test]
async fn the_holder_of_the_seats_is_named_and_not_those_who_wait() {
    let (upstream, mut begun, leave) = Upstream::held().await;
    let folder = tempfile::tempdir().unwrap();
    let [tokens, objects] = ["tokens.csv", "objects.yaml"].map(|name| folder.path().join(name));
    std::fs::write(&tokens, "secret-e,export,1\nsecret-a,alice,2\n").unwrap();
    // Users are told apart only where there is more than one queue to choose from (FM-14).
    let by_user = ONE_LEVEL
        .replace("queues: 1, handSize: 1", "queues: 64, handSize: 8")
        .replace("  matchingPrecedence: 2\n", "  matchingPrecedence: 2\n  distinguisherMethod: {type: ByUser}\n");
    std::fs::write(&objects, by_user).unwrap();
    let mut settings = with_admin(upstream.address);
    settings.objects = Some(objects);
    settings.concurrency = Some(2.into());
    settings.timeouts.response = Duration::from_secs(60);
    settings.identity.sources = vec![serde_json::from_value(json!({"tokens": {"file": tokens}})).unwrap()];
    let running = start(settings).await;
    let mut clients = Vec::new();
    for token in ["secret-e", "secret-e", "secret-a"] {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n")).await;
        if clients.len() < 2 {
            begun.recv().await.unwrap();
        }
        clients.push(client);
    }
    let flow = running.gateway.flow().clone();
    eventually("alice waits", || flow.status().iter().any(|level| level.waiting == 1)).await;
    let mut events = Events::open(running.gateway.admin_address().unwrap()).await;
    let found = loop {
        let found = events.frame().await.diagnosis;
        if found.state != DiagnosisState::Well {
            break found;
        }
    };
    assert!(found.text.starts_with("everybody has started no request for "), "{found:?}");
    assert!(found.text.ends_with(", 1 waits: export holds 2 of 2 seats"), "{found:?}");
    leave.add_permits(3);
    for mut client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
    running.done().await;
}
