//! `concurrency: auto`: what the upstream does is counted, settings change under load, and what was learnt is kept (AL).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel::limit::LimitState;
use evenkeel_api::Preset;
use evenkeel_gateway::config::{Config, HoldWhile};

use crate::support::client::{Client, get};
use crate::support::upstream::Upstream;
use crate::support::{Running, config, eventually, start};

const GET: &str = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";

fn auto(upstream: SocketAddr, concurrency: &str) -> Config {
    Config { concurrency: Some(concurrency.parse().unwrap()), ..config(&[upstream]) }
}

fn limit(running: &Running) -> LimitState {
    running.gateway.flow().limit_state().unwrap()
}

fn ok(_: crate::support::client::Answer) -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned()
}

/// AL-3: a gateway that is told nothing finds out how many seats are right, and so does each of its services; in front of a Kubernetes API, it
/// has as many as a kube-apiserver.
#[tokio::test]
async fn the_preset_says_how_many_seats_there_are_if_nobody_else_does() {
    let upstream = Upstream::answering(ok).await;
    let of_preset = |preset| Config { preset, concurrency: None, ..config(&[upstream.address]) };
    let mut running = start(of_preset(Preset::Plain)).await;
    assert_eq!(
        (running.gateway.flow().concurrency().to_string().as_str(), limit(&running).status.applied),
        ("auto", 20)
    );
    assert!(running.gateway.config().to_yaml().contains("concurrency: auto\n"));
    running.gateway.reconfigure(auto(upstream.address, "7")).await.unwrap();
    assert_eq!(running.gateway.flow().concurrency().to_string(), "7");
    running.gateway.reconfigure(of_preset(Preset::Plain)).await.unwrap();
    assert_eq!(running.gateway.flow().concurrency().to_string(), "auto");
    running.done().await;

    let running = start(of_preset(Preset::Kubernetes)).await;
    assert_eq!(running.gateway.flow().concurrency().to_string(), "600");
    assert!(running.gateway.config().to_yaml().contains("concurrency: 600\n"));
    running.done().await;

    let services = "{services: {shop: {host: shop, upstream: 'http://127.0.0.1:1'}, pay: {host: pay, upstream: 'http://127.0.0.1:1', \
                    concurrency: 3}}}";
    let services = Config::parse("file", services).unwrap();
    let seats = ["shop", "pay"].map(|service| services.concurrency_of(service).to_string());
    assert_eq!(seats, ["auto", "3"]);
}

/// AL-5: failures of the upstream brake: responses that say so, and connections that are refused.
#[tokio::test]
async fn failures_of_the_upstream_brake() {
    let failing = Upstream::answering(|_| "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for upstream in [failing.address, gone] {
        let running = start(auto(upstream, "auto:1..100")).await;
        assert_eq!(limit(&running).status.applied, 20);
        while !limit(&running).counts.contains_key("brake") {
            assert!(get(running.address, "/", "").await.status >= 500);
        }
        let state = limit(&running);
        let told = state.steps.iter().find(|step| step.change.reason.as_str() == "brake").unwrap().change.to_string();
        assert_eq!(told, "brake 20 → 14: 100 % of the requests failed");
        running.done().await;
    }
}

/// AL-3: from a number to `auto` and back, with requests that run and wait: each gets its response.
#[tokio::test]
async fn settings_change_between_a_number_and_auto_under_load() {
    let upstream = Upstream::answering(ok).await;
    let mut running = start(auto(upstream.address, "2")).await;
    let (address, sent) = (running.address, Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..16)
        .map(|_| {
            let sent = Arc::clone(&sent);
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                for _ in 0..200 {
                    client.send(GET).await;
                    assert_eq!(client.answer().await.status, 200);
                    sent.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for (round, concurrency) in ["auto:2..8", "3", "auto", "auto:1..4", "2"].into_iter().enumerate() {
        eventually("some requests have been answered", || sent.load(Ordering::SeqCst) > 300 * round).await;
        let changed = running.gateway.reconfigure(auto(upstream.address, concurrency)).await.unwrap();
        assert_eq!(changed.changed, ["concurrency"]);
        assert_eq!(running.gateway.flow().concurrency().to_string(), concurrency);
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(running.gateway.flow().limit_state(), None);
    running.done().await;
}

/// AL-3: what was learnt is where the next run starts; a file that is damaged is a cold start, and not the end.
#[tokio::test]
async fn what_was_learnt_is_kept_in_a_file() {
    let (upstream, folder) = (Upstream::answering(ok).await, tempfile::tempdir().unwrap());
    let path = folder.path().join("limit.json");
    let settings = || {
        let mut settings = auto(upstream.address, "auto:1..100");
        settings.limit.state_file = Some(path.clone());
        settings
    };
    std::fs::write(&path, "{\"version\":1,\"limit\":37.2,\"lnCost\":-4.0,\"peak\":800,\"savedAt\":0}").unwrap();
    let running = start(settings()).await;
    assert_eq!(limit(&running).status.applied, 37);
    std::fs::remove_file(&path).unwrap();
    running.done().await;
    assert!(std::fs::read_to_string(&path).unwrap().contains("\"limit\":37.2"), "it is written as the gateway stops");

    std::fs::write(&path, "no JSON").unwrap();
    let running = start(settings()).await;
    let state = limit(&running);
    assert_eq!((state.status.applied, state.status.is_known), (20, false));
    running.done().await;
}

/// AL-10: a metric of the service holds the limit; a service that does not say has no opinion.
#[tokio::test]
async fn a_metric_of_the_service_holds_the_limit() {
    let waiting = Arc::new(AtomicUsize::new(9));
    let shown = Arc::clone(&waiting);
    let service = Upstream::answering(move |_| {
        let page = match shown.load(Ordering::SeqCst) {
            0 => "other 1\n".to_owned(),
            waiting => format!("# TYPE waiting gauge\nwaiting{{model=\"a\"}} {waiting}\n"),
        };
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len())
    })
    .await;
    let mut settings = auto(service.address, "auto");
    let url = format!("http://{}/metrics", service.address);
    settings.limit.hold_while = Some(HoldWhile { url, metric: "waiting".to_owned(), above: 5.0 });
    let mut running = start(settings.clone()).await;
    eventually("the limit is held", || limit(&running).is_held_down).await;
    waiting.store(3, Ordering::SeqCst);
    eventually("few wait", || !limit(&running).is_held_down).await;
    waiting.store(7, Ordering::SeqCst);
    eventually("many wait", || limit(&running).is_held_down).await;
    waiting.store(0, Ordering::SeqCst);
    eventually("there is no such metric", || !limit(&running).is_held_down).await;
    waiting.store(7, Ordering::SeqCst);
    eventually("many wait", || limit(&running).is_held_down).await;
    settings.limit.hold_while = None;
    running.gateway.reconfigure(settings).await.unwrap();
    eventually("nobody asks any more", || !limit(&running).is_held_down).await;
    running.done().await;
}

/// The status of a service at the admin endpoint.
async fn service(running: &Running, name: &str) -> serde_json::Value {
    let page = get(running.gateway.admin_address().unwrap(), "/debug/status", "").await;
    let status: serde_json::Value = serde_json::from_str(&page.text()).unwrap();
    let found = status["services"].as_array().unwrap().iter().find(|one| one["service"] == name);
    found.unwrap_or_else(|| panic!("no service {name}: {status}")).clone()
}

/// Two services: `good`, and `bad`, which fails.
async fn two_services(limit: &str) -> (Upstream, Upstream, Config) {
    let good = Upstream::answering(ok).await;
    let bad = Upstream::answering(|_| "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    let text = format!(
        "{{services: {{good: {{path: /good, upstream: 'http://{}', concurrency: 'auto:1..100'{limit}}}, \
          bad: {{path: /bad, upstream: 'http://{}'}}}}, concurrency: 'auto:1..100'}}",
        good.address, bad.address
    );
    let parsed = Config::parse("x", &text).unwrap();
    let mut settings = Config { services: parsed.services, concurrency: parsed.concurrency, ..config(&[]) };
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    (good, bad, settings)
}

/// AL-3, AL-5: each service finds its own limit, which is kept in a file of its own, and failures of one brake only that one.
#[tokio::test]
async fn each_service_finds_its_own_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (_good, _bad, mut settings) = two_services("").await;
    settings.limit.state_file = Some(folder.path().join("limit.json"));
    assert_eq!(settings.check(), []);
    let learnt = "{\"version\":1,\"limit\":37.2,\"lnCost\":-4.0,\"peak\":800,\"savedAt\":0}";
    std::fs::write(folder.path().join("limit-good.json"), learnt).unwrap();
    let running = start(settings.clone()).await;
    assert_eq!(service(&running, "good").await["limit"]["applied"], 37);
    assert_eq!(service(&running, "bad").await["limit"]["applied"], 20);
    let until = std::time::Instant::now() + crate::support::PATIENCE;
    while service(&running, "bad").await["limit"]["applied"] != 14 {
        assert_eq!(get(running.address, "/bad", "").await.status, 503);
        assert!(std::time::Instant::now() < until, "failures never brake");
    }
    let good = service(&running, "good").await;
    assert_eq!((&good["limit"]["applied"], &good["concurrency"]), (&37.into(), &37.into()));
    std::fs::remove_file(folder.path().join("limit-good.json")).unwrap();
    running.done().await;
    let kept = std::fs::read_to_string(folder.path().join("limit-good.json")).unwrap();
    assert!(kept.contains("\"limit\":37.2"), "it is written as the gateway stops: {kept}");

    // Two services cannot write the same file.
    settings.services.get_mut("bad").unwrap().limit.state_file = Some(folder.path().join("limit-good.json"));
    let problems: Vec<_> = settings.check().into_iter().map(|problem| problem.to_string()).collect();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("services.good.limit.stateFile: "), "{problems:?}");
    assert!(problems[0].ends_with("is also that of services.bad.limit.stateFile; name another file"), "{problems:?}");
}

/// AL-10: what holds the limit of a service is its own, and follows the settings.
#[tokio::test]
async fn a_metric_of_a_service_holds_its_own_limit() {
    let page = "waiting 9\n";
    let metrics =
        Upstream::answering(move |_| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len())).await;
    let hold = format!(", limit: {{holdWhile: {{url: 'http://{}/', metric: waiting, above: 5}}}}", metrics.address);
    let (_good, _bad, mut settings) = two_services(&hold).await;
    let mut running = start(settings.clone()).await;
    let until = std::time::Instant::now() + crate::support::PATIENCE;
    while service(&running, "good").await["limit"]["isHeldDown"] != true {
        assert!(std::time::Instant::now() < until, "the limit is never held");
    }
    let is_held = |service: &serde_json::Value| service["limit"]["isHeldDown"].as_bool().unwrap_or(false);
    assert!(!is_held(&service(&running, "bad").await));
    settings.services.get_mut("good").unwrap().limit.hold_while = None;
    running.gateway.reconfigure(settings).await.unwrap();
    while is_held(&service(&running, "good").await) {
        assert!(std::time::Instant::now() < until, "the limit is held for ever");
    }
    running.done().await;
}
