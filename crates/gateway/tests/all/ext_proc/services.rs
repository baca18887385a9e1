//! Several services behind an Envoy: each request takes a seat of the service that it belongs to.

use std::time::Instant;

use evenkeel_gateway::config::Config;
use serde_json::Value;

use super::envoy::Envoy;
use super::{Deciding, deciding};
use crate::support::client::{Client, get};
use crate::support::upstream::{Upstream, ok};
use crate::support::{self, PATIENCE};

/// How many requests run and wait, by service.
async fn counts(deciding: &Deciding) -> Vec<(String, u64, u64)> {
    let page = get(deciding.gateway.admin_address().unwrap(), "/debug/status", "").await;
    let status: Value = serde_json::from_str(&page.text()).unwrap();
    let services = status["services"].as_array().unwrap();
    let sum = |service: &Value, of: &str| {
        service["levels"].as_array().unwrap().iter().map(|level| level[of].as_u64().unwrap_or(0)).sum()
    };
    let counts =
        |one: &Value| (one["service"].as_str().unwrap().to_owned(), sum(one, "executing"), sum(one, "waiting"));
    services.iter().map(counts).collect()
}

async fn eventually(deciding: &Deciding, expected: [(&str, u64, u64); 3]) {
    let expected = expected.map(|(name, executing, waiting)| (name.to_owned(), executing, waiting));
    let until = Instant::now() + PATIENCE;
    loop {
        let found = counts(deciding).await;
        if found == expected {
            return;
        }
        assert!(Instant::now() < until, "{found:?} instead of {expected:?}");
    }
}

async fn ask(address: std::net::SocketAddr, host: &str, path: &str) -> Client {
    let mut client = Client::connect(address).await;
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    client
}

/// Services need no upstreams here: Envoy has them.
fn services(concurrency: u32) -> Config {
    let text = "{extProc: {}, services: {shop: {host: shop.example, concurrency: 1}, \
                 api: {path: /api, concurrency: 2}}}";
    let parsed = Config::parse("x", text).unwrap();
    let mut settings = Config { services: parsed.services, ..deciding(concurrency) };
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    assert_eq!(settings.check(), []);
    settings
}

#[tokio::test]
async fn requests_take_the_seats_of_their_services() {
    let (upstream, mut told, leave) = Upstream::held().await;
    let deciding = Deciding::start(services(1)).await;
    assert!(deciding.gateway.addresses().is_empty(), "it forwards nothing itself");
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    let mut clients = Vec::new();
    for (host, path) in
        [("shop.example", "/"), ("SHOP.example:80", "/"), ("a", "/api"), ("b", "/api/x"), ("a", "/api"), ("c", "/x")]
    {
        clients.push(ask(envoy.address, host, path).await);
    }
    eventually(&deciding, [("api", 2, 1), ("shop", 1, 1), ("default", 1, 0)]).await;
    for _ in 0..clients.len() {
        told.recv().await.unwrap();
        leave.add_permits(1);
    }
    for mut client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
    eventually(&deciding, [("api", 0, 0), ("shop", 0, 0), ("default", 0, 0)]).await;
    deciding.done().await;
}

/// A gateway that forwards for one service and decides for another: over HTTP, requests of the other one are misdirected.
#[tokio::test]
async fn a_service_without_upstreams_is_only_decided_about() {
    let upstream = Upstream::answering(|_| ok("here")).await;
    let mut settings = services(1);
    settings.listen = support::config(&[]).listen;
    let forwarded = format!("{{services: {{own: {{path: /own, upstream: 'http://{}'}}}}}}", upstream.address);
    settings.services.extend(Config::parse("x", &forwarded).unwrap().services);
    let deciding = Deciding::start(settings).await;
    let own = deciding.gateway.addresses()[0];
    assert_eq!(ask(own, "a", "/own").await.answer().await.text(), "here");
    let misdirected = ask(own, "a", "/api").await.answer().await;
    assert_eq!(misdirected.status, 421, "{}", misdirected.text());
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    for path in ["/own", "/api", "/"] {
        assert_eq!(ask(envoy.address, "a", path).await.answer().await.status, 200);
    }
    deciding.done().await;
}
