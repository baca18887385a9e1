//! What operators see, over real connections.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use evenkeel::{FlowControl, Preset};
use evenkeel_gateway::config::{AdminConfig, UpstreamConfig};
use evenkeel_gateway::identity::Identification;
use evenkeel_gateway::objects::SourceStatus;
use evenkeel_gateway::observe::admin::{self, Admin, AdminToken, InEffect, SettingsInEffect};
use evenkeel_gateway::observe::dashboard::{Frames, Recording};
use evenkeel_gateway::observe::metrics::GatewayMetrics;
use evenkeel_gateway::{Config, Phase, Readiness, RequestRules};
use http::StatusCode;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn start(readiness: &Readiness) -> SocketAddr {
    start_with(readiness, None).await
}

pub(crate) async fn start_with(readiness: &Readiness, token: Option<AdminToken>) -> SocketAddr {
    let flow = FlowControl::builder().server_concurrency(100).build();
    let frames = Frames::default();
    tokio::spawn(Recording::alone(frames.clone(), flow.clone()).run());
    serve(readiness, token, flow, frames).await
}

/// An admin endpoint that shows these frames.
pub(crate) async fn serve(
    readiness: &Readiness,
    token: Option<AdminToken>,
    flow: FlowControl,
    frames: Frames,
) -> SocketAddr {
    let upstreams = vec![UpstreamConfig::new("http://127.0.0.1:9000").unwrap()];
    let metrics = GatewayMetrics::new(2);
    metrics.worker(1).request_ended(StatusCode::BAD_GATEWAY);
    let config = Arc::new(Config {
        upstreams,
        admin: AdminConfig { hosts: vec!["admin.example".to_owned()], ..AdminConfig::default() },
        ..Config::default()
    });
    let rules = RequestRules::new(&config.requests, Preset::Plain).unwrap();
    let identification = Identification::open(&config.identity).unwrap();
    let admin = Admin {
        flow,
        frames,
        token,
        metrics,
        readiness: readiness.clone(),
        settings: SettingsInEffect::new(move || InEffect {
            config: Arc::clone(&config),
            rules: rules.clone(),
            identification: Arc::clone(&identification),
            services: Vec::new(),
        }),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, admin.router()));
    address
}

/// The whole answer, head and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    get_as(address, path, &address.to_string()).await
}

/// The same, for this host.
pub(crate) async fn get_as(address: SocketAddr, path: &str, host: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n")).await
}

/// The response to a request with this head, which lacks its last line.
pub(crate) async fn send(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test]
async fn every_page_that_the_dashboard_links_to_is_there() {
    let readiness = Readiness::default();
    readiness.enter(Phase::Ready);
    let address = start(&readiness).await;
    let index = get(address, "/").await;
    let links = index.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let pages: Vec<_> = links.filter(|link| link.starts_with('/')).collect();
    assert_eq!(pages.len(), 11, "{index}");
    for page in pages {
        let answer = get(address, page).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{page}: {answer}");
    }
    assert!(get(address, "/other").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn the_dumps_have_an_index() {
    let address = start(&Readiness::default()).await;
    for path in ["/debug/api_priority_and_fairness", "/debug/api_priority_and_fairness/"] {
        let answer = get(address, path).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let listed: Vec<_> = body.lines().filter(|line| line.starts_with('/')).collect();
        assert_eq!(listed.len(), 3, "{body}");
        for dump in listed {
            assert!(get(address, dump).await.starts_with("HTTP/1.1 200 OK\r\n"), "{dump}");
        }
    }
    assert!(get(address, "/debug/api_priority_and_fairness/other").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn metrics_are_those_of_the_flow_control_and_of_the_gateway() {
    let page = get(start(&Readiness::default()).await, "/metrics").await;
    for part in [
        "text/plain; version=0.0.4",
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"catch-all\"}",
        "evenkeel_requests_total{code=\"5xx\"} 1\n",
        "evenkeel_build_info{version=",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
}

#[tokio::test]
async fn it_is_ready_only_while_it_serves_and_alive_all_the_time() {
    let readiness = Readiness::default();
    let address = start(&readiness).await;
    for (phase, status, words) in [
        (Phase::Starting, "503", "[-]phase failed: it is not listening yet"),
        (Phase::Ready, "200", "[+]phase ok"),
        (Phase::Draining, "503", "[-]phase failed: it is shutting down"),
    ] {
        readiness.enter(phase);
        let answer = get(address, "/readyz?verbose").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(words), "{answer}");
        assert!(get(address, "/readyz").await.starts_with(&format!("HTTP/1.1 {status}")));
        for path in ["/livez", "/healthz"] {
            assert!(get(address, path).await.ends_with("\r\n\r\nok"));
        }
    }
}

/// A store that comes and goes.
#[derive(Debug, Default)]
struct Source {
    is_away: AtomicBool,
}

impl SourceStatus for Source {
    fn stale(&self) -> Option<String> {
        self.store_problem().map(|why| format!("the store is away: {why}"))
    }

    fn store_problem(&self) -> Option<String> {
        self.is_away.load(Ordering::Relaxed).then(|| "no space left".to_owned())
    }

    fn encode_metrics(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut gauge = encoder.encode_descriptor("evenkeel_of_source", "A test", None, MetricType::Gauge)?;
        gauge.encode_gauge(&i64::from(self.is_away.load(Ordering::Relaxed)))
    }
}

#[tokio::test]
async fn a_store_that_is_away_is_told_and_does_not_make_it_unready() {
    let (readiness, source) = (Readiness::default(), Arc::new(Source::default()));
    let address = start(&readiness).await;
    readiness.enter(Phase::Ready);
    let page = get(address, "/readyz?verbose").await;
    assert!(page.contains("[+]objects ok\n") && !page.contains("]store"), "without a store: {page}");
    readiness.set_source(Arc::clone(&source) as _);
    let page = get(address, "/readyz?verbose").await;
    assert!(page.contains("[+]objects ok\n[+]store ok\n"), "{page}");
    // It is looked at whenever somebody asks.
    for is_away in [true, false] {
        source.is_away.store(is_away, Ordering::Relaxed);
        let page = get(address, "/readyz?verbose").await;
        let stale = "[+]objects ok, but they may be out of date: the store is away: no space left\n";
        let store = "[-]store unavailable, which does not fail this check: no space left\n";
        assert_eq!((page.contains(stale), page.contains(store)), (is_away, is_away), "{page}");
        assert!(get(address, "/readyz").await.ends_with("\r\n\r\nok"));
        let status = get(address, "/debug/status").await;
        assert_eq!(status.contains(r#""storeUnavailable":"no space left""#), is_away, "{status}");
        let metrics = get(address, "/metrics").await;
        for name in ["evenkeel_objects_stale", "evenkeel_of_source"] {
            assert!(metrics.contains(&format!("\n{name} {}\n", u8::from(is_away))), "{metrics}");
        }
    }
}

#[tokio::test]
async fn settings_are_shown_as_they_can_be_read() {
    let answer = get(start(&Readiness::default()).await, "/config").await;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(Config::parse("shown", body).unwrap().upstreams.len(), 1, "{body}");
}

#[tokio::test(start_paused = true)]
async fn connections_that_say_nothing_are_closed_and_make_room_for_others() {
    let address = start(&Readiness::default()).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let started = tokio::time::Instant::now();
    assert!(get(address, "/livez").await.ends_with("ok"));
    assert!(started.elapsed() <= Duration::from_secs(60), "{:?}", started.elapsed());
    let mut nothing = Vec::new();
    idle[0].read_to_end(&mut nothing).await.unwrap();
    // Closed, perhaps with a word about the time that is over.
    assert!(nothing.is_empty() || nothing.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&nothing));
}

/// How long a health check takes beside more connections with half of a head than are served at a time.
async fn time_beside_half_sent_heads() -> Duration {
    let address = start(&Readiness::default()).await;
    let mut half_sent = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: 127").await.unwrap();
        half_sent.push(stream);
    }
    let started = Instant::now();
    assert!(get(address, "/livez").await.ends_with("ok"));
    started.elapsed()
}

#[tokio::test]
async fn half_sent_heads_do_not_block_health_checks() {
    // A timeout takes seconds. A machine that stands still for one may take as long, but not each time.
    for _ in 0..3 {
        if time_beside_half_sent_heads().await < Duration::from_secs(1) {
            return;
        }
    }
    panic!("health checks wait for timeouts of other connections");
}

#[tokio::test]
async fn pages_are_served_only_under_names_that_are_known() {
    let address = start(&Readiness::default()).await;
    for host in ["localhost:9901", "[::1]", "10.0.0.7:9901", "admin.example", "ADMIN.example:80"] {
        assert!(get_as(address, "/config", host).await.starts_with("HTTP/1.1 200"), "{host}");
    }
    for page in ["/config", "/metrics", "/", "/debug/api_priority_and_fairness/dump_requests", "/other"] {
        let answer = get_as(address, page, "evil.example").await;
        assert!(answer.starts_with("HTTP/1.1 421"), "{page}: {answer}");
        assert!(answer.contains("evil.example") && answer.contains("add the name to `admin.hosts`"), "{answer}");
    }
    // The target goes before the header.
    let answer = get_as(address, "http://evil.example/config", "127.0.0.1").await;
    assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    assert!(get_as(address, "/livez", "evil.example").await.starts_with("HTTP/1.1 200"));
}
