//! Upstreams that are given by name.

use crate::support;

use evenkeel_gateway::config::UpstreamConfig;
use support::client::{find, get};
use support::upstream::Upstream;
use support::{config, start};

/// A part of a name has 63 letters at most, so that this one is no name, and nobody on the network has to be asked.
const NO_NAME: &str = "http://there-is-nobody-of-this-name-because-it-has-more-letters-than-there-may-be.invalid";

#[tokio::test]
async fn an_upstream_is_found_by_its_name() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[]);
    let url = format!("http://localhost:{}", upstream.address.port());
    settings.upstreams.push(UpstreamConfig::new(&url).unwrap());
    let running = start(settings).await;
    for _ in 0..2 {
        let answer = get(running.address, "/", "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(find(&answer.text(), "host").as_deref(), Some("shop.example"));
    }
    running.done().await;
}

#[tokio::test]
async fn a_name_that_nobody_has_is_told_from_an_upstream_that_does_not_listen() {
    let mut settings = config(&[]);
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    settings.upstreams.push(UpstreamConfig::new(NO_NAME).unwrap());
    let running = start(settings).await;
    let answer = get(running.address, "/", "").await;
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains(r#""detail":"the upstream's name cannot be resolved""#), "{}", answer.text());
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    assert!(page.lines().any(|line| line == format!(r#"evenkeel_upstream_failures_total{{kind="resolve",upstream="{NO_NAME}"}} 1"#)), "{page}");
    running.done().await;
}

#[tokio::test]
async fn an_upstream_without_an_address_does_not_keep_others_from_being_asked() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    settings.upstreams.push(UpstreamConfig::new(NO_NAME).unwrap());
    let running = start(settings).await;
    for _ in 0..8 {
        assert_eq!(get(running.address, "/", "").await.status, 200);
    }
    running.done().await;
}
