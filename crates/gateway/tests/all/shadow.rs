//! The shadow: a second configuration decides beside the first, and no request notices (SH).

use crate::support;

use std::time::Duration;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::{ReturnIfConfig, ShadowConfig};
use serde_json::Value;
use support::client::get;
use support::upstream::{Upstream, ok};
use support::{ONE_LEVEL, Running, config, start, start_with};
use tempfile::TempDir;

/// Orders have a level of their own, and the others get nothing.
const NEW: &str = "
levels:
  orders: {share: 1}
  nobody: {share: 0}
match:
- {path: /orders/*, level: orders}
- {level: nobody}
";

async fn upstream() -> Upstream {
    Upstream::answering(|_| ok("fine")).await
}

fn settings(upstream: &Upstream, shadow: ShadowConfig) -> Config {
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    settings.shadow = Some(shadow);
    assert_eq!(settings.check(), []);
    settings
}

async fn report(running: &Running) -> Value {
    let answer = get(running.gateway.admin_address().unwrap(), "/debug/shadow", "").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

/// Waits until the shadow has decided about so many requests.
async fn decided(running: &Running, requests: u64) -> Value {
    let until = std::time::Instant::now() + support::PATIENCE;
    loop {
        let report = report(running).await;
        if report["requests"].as_u64() >= Some(requests) {
            return report;
        }
        assert!(std::time::Instant::now() < until, "{report:#}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn sh_1_requests_are_served_as_if_there_were_no_shadow() {
    let (upstream, folder) = (upstream().await, TempDir::new().unwrap());
    let file = folder.path().join("new.yaml");
    std::fs::write(&file, NEW).unwrap();
    let shadow = ShadowConfig { objects: Some(file.clone()), concurrency: Some(5), ..ShadowConfig::default() };
    let running = start_with(settings(&upstream, shadow), ONE_LEVEL).await;
    for number in 0..20 {
        let path = if number % 2 == 0 { "/orders/1" } else { "/reports" };
        assert_eq!(get(running.address, path, "").await.status, 200);
    }
    let report = decided(&running, 20).await;
    assert_eq!(report["totals"]["rejected"], serde_json::json!({"real": 0, "shadow": 10}), "{report:#}");
    assert_eq!(report["seats"], 5);
    let levels: Vec<_> = report["moved"].as_array().unwrap().iter().map(|moved| moved["to"].as_str()).collect();
    assert_eq!((levels.len(), report["moved"][0]["requests"].as_u64()), (2, Some(10)), "{report:#}");
    assert!(report["summary"].as_str().unwrap().contains("more requests rejected"), "{report:#}");

    // Files that change are another shadow, which begins from nothing.
    std::fs::write(&file, NEW.replace("share: 0", "share: 1")).unwrap();
    let until = std::time::Instant::now() + 2 * support::PATIENCE;
    while self::report(&running).await["requests"].as_u64() != Some(0) {
        assert!(std::time::Instant::now() < until, "the file is not read again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // If a request was still under way when it began, those of the first second do not count.
    let report = loop {
        get(running.address, "/reports", "").await;
        let report = self::report(&running).await;
        if report["requests"].as_u64() >= Some(1) {
            break report;
        }
        assert!(std::time::Instant::now() < until, "{report:#}");
    };
    assert_eq!(report["totals"]["rejected"]["shadow"], 0);
    running.done().await;
}

/// A canary that rejects everything returns by itself, and all clients are served again (SH-5).
#[tokio::test]
async fn sh_5_a_canary_that_is_worse_returns_by_itself() {
    let (upstream, folder) = (upstream().await, TempDir::new().unwrap());
    let file = folder.path().join("new.yaml");
    std::fs::write(&file, "{levels: {nobody: {share: 0}}, match: [{level: nobody}]}").unwrap();
    let mut settings =
        settings(&upstream, ShadowConfig { objects: Some(file), percent: Some(50), ..ShadowConfig::default() });
    settings.concurrency = Some(20_u32.into());
    let who = "identity: {sources: [{trustedHeaders: {fromAddresses: [127.0.0.0/8], userHeader: x-user}}]}";
    settings.identity = Config::parse("x", who).unwrap().identity;
    let old = "{levels: {everybody: {share: 1, queue: 50}}, match: [{level: everybody}]}";
    let running = start_with(settings, old).await;
    let until = std::time::Instant::now() + support::PATIENCE;
    let (mut served, mut rejected) = (0, 0);
    let returned = loop {
        for user in 0..40 {
            match get(running.address, "/orders", &format!("x-user: user-{user}\r\n")).await.status {
                200 => served += 1,
                429 => rejected += 1,
                other => panic!("status {other}"),
            }
        }
        let canary = report(&running).await["canary"].clone();
        if canary["phase"] == "returned" {
            break canary;
        }
        assert_eq!((&canary["phase"], &canary["percent"]), (&"running".into(), &50.into()), "{canary:#}");
        assert!(std::time::Instant::now() < until, "{canary:#}");
    };
    assert!(served > 0 && rejected > 0, "{served} served, {rejected} rejected");
    let reason = returned["returned"].as_str().unwrap();
    assert!(reason.ends_with("requests were rejected, which is more than 5.0 %"), "{reason}");
    for user in 0..40 {
        assert_eq!(get(running.address, "/orders", &format!("x-user: user-{user}\r\n")).await.status, 200);
    }
    assert_eq!(running.gateway.flow().canary_returns(), 1);
    running.done().await;
}

/// Every request of a flow lands on the same side of a canary, on whatever connection it comes (SH-5).
#[tokio::test]
async fn sh_5_a_flow_is_on_one_side_of_a_canary() {
    let (upstream, folder) = (upstream().await, TempDir::new().unwrap());
    let file = folder.path().join("new.yaml");
    std::fs::write(&file, "{levels: {nobody: {share: 0}}, match: [{level: nobody}]}").unwrap();
    // Its side is told by its answers: everything is rejected there, and that is no reason to return.
    let return_if = ReturnIfConfig { rejected_percent: 100.0, ..ReturnIfConfig::default() };
    let shadow = ShadowConfig { objects: Some(file), percent: Some(50), return_if, ..ShadowConfig::default() };
    let mut settings = settings(&upstream, shadow);
    settings.concurrency = Some(20_u32.into());
    let who = "identity: {sources: [{trustedHeaders: {fromAddresses: [127.0.0.0/8], userHeader: x-user}}]}";
    settings.identity = Config::parse("x", who).unwrap().identity;
    let old = "{levels: {everybody: {share: 1, queue: 50}}, match: [{level: everybody}]}";
    let running = start_with(settings, old).await;
    let mut sides: Option<Vec<u16>> = None;
    for round in 0..5 {
        let mut now = Vec::new();
        for user in 0..40 {
            let path = format!("/orders/{round}");
            let who = format!("x-user: user-{user}\r\n");
            // Several at a time, each on a connection of its own.
            let (one, other) = tokio::join!(get(running.address, &path, &who), get(running.address, "/reports", &who));
            assert_eq!(one.status, other.status, "user-{user} is on both sides");
            now.push(one.status);
        }
        let before = sides.get_or_insert_with(|| now.clone());
        assert_eq!(*before, now, "round {round}");
    }
    let sides = sides.unwrap();
    let of_canary = sides.iter().filter(|status| **status == 429).count();
    assert!((8..=32).contains(&of_canary) && sides.iter().all(|status| [200, 429].contains(status)), "{sides:?}");
    let canary = report(&running).await["canary"].clone();
    assert_eq!((&canary["phase"], canary["requests"].as_u64()), (&"running".into(), Some(10 * of_canary as u64)));
    running.done().await;
}

#[tokio::test]
async fn settings_start_and_end_a_shadow() {
    let upstream = upstream().await;
    let mut without = settings(&upstream, ShadowConfig::default());
    without.shadow = None;
    let mut running = start_with(without, ONE_LEVEL).await;
    let admin = running.gateway.admin_address().unwrap();
    let answer = get(admin, "/debug/shadow", "").await;
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("there is no shadow; start the gateway with `--shadow FILE`"), "{}", answer.text());

    // The same objects with other seats.
    let mut with = (*running.gateway.config()).clone();
    with.shadow = Some(ShadowConfig { concurrency: Some(3), ..ShadowConfig::default() });
    let changed = running.gateway.reconfigure(with.clone()).await.unwrap();
    assert_eq!(changed.changed, ["shadow"]);
    get(running.address, "/", "").await;
    let report = decided(&running, 1).await;
    assert_eq!((report["seats"].as_i64(), report["moved"].as_array().map(Vec::len)), (Some(3), Some(0)));

    with.shadow = None;
    running.gateway.reconfigure(with).await.unwrap();
    assert_eq!(get(admin, "/debug/shadow", "").await.status, 404);
    running.done().await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_at_the_start() {
    let (upstream, folder) = (upstream().await, TempDir::new().unwrap());
    let file = folder.path().join("new.yaml");
    std::fs::write(&file, "levels: {a: {share: many}}").unwrap();
    let shadow = ShadowConfig { objects: Some(file), ..ShadowConfig::default() };
    let settings = settings(&upstream, shadow);
    let error = evenkeel_gateway::Gateway::start(settings.clone(), evenkeel_gateway::objects::source(&settings)).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("new.yaml:1:"), "{error}");
}

#[tokio::test]
async fn each_service_has_its_shadow() {
    let upstream = upstream().await;
    let mut settings = settings(&upstream, ShadowConfig { concurrency: Some(3), ..ShadowConfig::default() });
    let text = format!("services: {{shop: {{path: /shop, upstream: 'http://{}'}}}}", upstream.address);
    settings.services = Config::parse("evenkeel.yaml", &text).unwrap().services;
    let running = start(settings).await;
    get(running.address, "/shop/1", "").await;
    let until = std::time::Instant::now() + support::PATIENCE;
    loop {
        let report = report(&running).await;
        let shop = report["services"].as_array().unwrap().iter().find(|one| one["service"] == "shop").unwrap().clone();
        if shop["shadow"]["requests"] == 1 {
            break;
        }
        assert!(std::time::Instant::now() < until, "{report:#}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.done().await;
}
