//! Metrics: what is declared is what a scrape shows, in both formats.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use evenkeel::metrics::{Metric, MetricKind};
use evenkeel_gateway::observe::metrics;
use serde_json::Value;
use support::client::get;
use support::upstream::Upstream;
use support::{ONE_LEVEL, Running, config, eventually, one_level_with_long_running, start_with};

fn declared() -> Vec<Metric> {
    metrics::declared().chain(evenkeel::metrics::declared()).collect()
}

/// The name as Prometheus shows it.
fn shown(metric: &Metric) -> String {
    let end = if metric.kind == MetricKind::Counter { "_total" } else { "" };
    format!("{}{end}", metric.name)
}

/// A gateway of which every kind of metric has something to say.
async fn busy() -> (Running, SocketAddr, Upstream) {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.identity.sources = vec![
        serde_json::from_value(serde_json::json!({"trustedHeaders": {"fromAddresses": ["127.0.0.0/8"]}})).unwrap(),
    ];
    let objects = one_level_with_long_running(7);
    let accounted =
        "name: everybody, annotations: {evenkeel.dev/cost: bytes, evenkeel.dev/rate: 9999/s}}\nspec:\n  matching";
    let objects = objects.replace("name: everybody}\nspec:\n  matching", accounted);
    assert!(objects.contains(accounted));
    let running = start_with(settings, &objects).await;
    let admin = running.gateway.admin_address().unwrap();
    for user in ["alice", "alice", "bo\"b\\ \u{3b1}", "bo\"b\\ \u{3b1}"] {
        assert_eq!(get(running.address, "/", &format!("X-Remote-User: {user}\r\n")).await.status, 200);
    }
    (running, admin, upstream)
}

/// The names and labels of the series of a page, with those of its heads.
fn series(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once(['{', ' ']).unwrap();
        let labels = found.entry(name.to_owned()).or_default();
        if line.as_bytes()[name.len()] == b'{' {
            // Label values of this test contain no `="`.
            let pieces: Vec<&str> = rest.split("=\"").collect();
            labels.extend(
                pieces[..pieces.len() - 1].iter().map(|piece| piece.rsplit([',', '{']).next().unwrap().to_owned()),
            );
        }
    }
    found
}

#[tokio::test]
async fn a_scrape_shows_what_is_declared_in_both_formats() {
    let (running, admin, _upstream) = busy().await;
    let open = get(admin, "/metrics", "Accept: application/openmetrics-text\r\n").await;
    assert_eq!(open.header("content-type").unwrap(), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let plain = get(admin, "/metrics", "").await;
    assert_eq!(plain.header("content-type").unwrap(), "text/plain; version=0.0.4; charset=utf-8");
    let (open, plain) = (open.text(), plain.text());
    assert!(open.ends_with("\n# EOF\n") && !plain.contains("# EOF"));
    let declared: BTreeMap<_, _> = declared().into_iter().map(|metric| (shown(&metric), metric)).collect();
    for (name, labels) in series(&plain) {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| {
            let family = name.strip_suffix(end)?;
            declared.get(family).filter(|metric| metric.kind == MetricKind::Histogram)
        });
        let metric = family.or_else(|| declared.get(&name)).unwrap_or_else(|| panic!("{name} is not declared"));
        let known: BTreeSet<_> = metric.labels.iter().map(ToString::to_string).chain(["le".to_owned()]).collect();
        assert!(labels.is_subset(&known), "{name}: {labels:?}");
    }
    for (name, metric) in &declared {
        let head = format!("# HELP {name} {}", metric.help.replace('\\', "\\\\"));
        assert!(plain.contains(&head), "{head}\n{plain}");
        assert!(plain.contains(&format!("\n# TYPE {name} {}\n", metric.kind.as_str())), "{name}");
        assert!(
            open.contains(&format!("\n# TYPE {} {}\n", metric.name, metric.kind.as_str()))
                || open.starts_with(&format!("# HELP {}", metric.name)),
            "{name}"
        );
    }
    if cfg!(target_os = "linux") {
        assert!(plain.contains("\nprocess_resident_memory_bytes "), "{plain}");
    }
    running.done().await;
}

#[tokio::test]
async fn status_and_flows_are_json() {
    let upstream = Upstream::silent().await;
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.concurrency = Some(1.into());
    settings.timeouts.response = std::time::Duration::from_millis(300);
    let running = start_with(settings, ONE_LEVEL).await;
    let admin = running.gateway.admin_address().unwrap();
    let requests = (0..3).map(|_| tokio::spawn(get(running.address, "/", "")));
    let requests: Vec<_> = requests.collect();
    let flow = running.gateway.flow().clone();
    eventually("requests wait", || flow.status().iter().any(|level| level.waiting == 2)).await;
    let status: Value = serde_json::from_slice(&get(admin, "/debug/status", "").await.body).unwrap();
    let level = status["levels"].as_array().unwrap().iter().find(|level| level["name"] == "everybody").unwrap().clone();
    assert_eq!((&level["waiting"], &level["executing"], &status["phase"]), (&2.into(), &1.into(), &"ready".into()));
    assert_eq!(status["upstreams"][0]["inFlight"], 1);
    assert_eq!(status["upstreams"][0]["url"], format!("http://{}", upstream.address));
    for request in requests {
        assert_eq!(request.await.unwrap().status, 504);
    }
    let answer = get(admin, "/debug/flows?limit=5", "").await;
    assert_eq!(answer.header("content-type").unwrap(), "application/json");
    let flows: Value = serde_json::from_slice(&answer.body).unwrap();
    let level = flows["levels"].as_array().unwrap().iter().find(|level| level["level"] == "everybody").unwrap().clone();
    assert_eq!(level["flows"][0]["schema"], "everybody");
    let (seats, wait) = (&level["flows"][0]["seatSeconds"], &level["flows"][0]["waitSeconds"]);
    assert!(seats.as_f64().unwrap() >= 0.5 && wait.as_f64().unwrap() >= 0.5, "{level}");
    assert_eq!(level["delays"][0]["behind"]["schema"], "everybody");
    assert_eq!(get(admin, "/debug/flows?limit=x", "").await.status, 400);
    running.done().await;
}
