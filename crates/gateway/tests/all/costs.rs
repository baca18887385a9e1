//! What requests cost, and rates: the service reports it, the gateway counts it, and clients do not see it (CO, RL).

use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use evenkeel_gateway::Config;
use evenkeel_gateway::config::{AccessLogFormat, Protocol, RouteConfig};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use support::client::{Client, get};
use support::upstream::{Upstream, ok};
use support::{ONE_LEVEL, Running, config, eventually, start_with};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

/// One level, whose flow schema has these annotations.
fn annotated(annotations: &str) -> String {
    let (level, schema) = ONE_LEVEL.split_once("---").unwrap();
    let schema = schema
        .replace("{name: everybody}\nspec", &format!("{{name: everybody, annotations: {{{annotations}}}}}\nspec"));
    assert!(schema.contains(annotations));
    format!("{level}---{schema}")
}

fn settings(upstream: SocketAddr, folder: &TempDir) -> Config {
    let mut settings = config(&[upstream]);
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    settings.concurrency = Some(100.into());
    settings.log.access = AccessLogFormat::Json;
    settings.log.access_file = Some(folder.path().join("access.log"));
    settings
}

async fn line(folder: &TempDir, count: usize) -> Value {
    let text = || std::fs::read_to_string(folder.path().join("access.log")).unwrap_or_default();
    eventually("a line in the access log", || text().lines().count() >= count).await;
    serde_json::from_str(text().lines().nth(count - 1).unwrap()).unwrap()
}

async fn explained(running: &Running) -> Value {
    let admin = running.gateway.admin_address().unwrap();
    let answer = get(admin, "/debug/explain?method=GET&url=%2Frows", "").await;
    serde_json::from_slice(&answer.body).unwrap()
}

/// An upstream of HTTP/2 whose responses have their cost in a trailer.
async fn with_trailers(cost: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service_fn(move |_: Request<Incoming>| async move {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-cost", cost.parse().unwrap());
                trailers.insert("checksum", "7".parse().unwrap());
                let frames = [Frame::data(Bytes::from_static(b"rows")), Frame::trailers(trailers)];
                let frames: Vec<Result<_, Infallible>> = frames.into_iter().map(Ok).collect();
                Ok::<_, Infallible>(Response::new(StreamBody::new(tokio_stream::iter(frames))))
            });
            let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

const BY_HEADER: &str =
    "evenkeel.dev/cost: 'header:X-Cost', evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '10'";

#[tokio::test]
async fn co_2_a_cost_in_a_header_reaches_the_log_and_not_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let upstream =
        Upstream::answering(|_| "HTTP/1.1 200 OK\r\nX-Cost: 37\r\nContent-Length: 4\r\n\r\nrows".to_owned()).await;
    let running = start_with(settings(upstream.address, &folder), &annotated(BY_HEADER)).await;
    let answer = get(running.address, "/rows", "").await;
    assert_eq!((answer.status, answer.text().as_str(), answer.header("x-cost")), (200, "rows", None));
    let first = line(&folder, 1).await;
    assert_eq!((&first["cost"], &first["costExpected"], &first["seats"]), (&37.into(), &0.into(), &1.into()));
    for _ in 0..7 {
        get(running.address, "/rows", "").await;
    }
    let ninth = get(running.address, "/rows", "").await;
    assert_eq!(ninth.status, 200);
    let last = line(&folder, 9).await;
    assert_eq!((&last["cost"], &last["costExpected"], &last["seats"]), (&37.into(), &37.into(), &4.into()));
    let explained = explained(&running).await;
    assert_eq!(explained["seats"]["initial"], 4);
    let rule = "expected 37 units, learnt from 9 requests of its flow on its route; 10 units are one seat";
    assert_eq!(explained["seats"]["rule"], rule);
    let metrics = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let series =
        "evenkeel_request_cost_total{flow_schema=\"everybody\",priority_level=\"everybody\",unit=\"units\"} 333.0";
    assert!(metrics.contains(series), "{metrics}");
    running.done().await;
}

#[tokio::test]
async fn co_2_a_route_says_what_its_cost_is_counted_in() {
    let folder = tempfile::tempdir().unwrap();
    let upstream =
        Upstream::answering(|_| "HTTP/1.1 200 OK\r\nX-Cost: 37\r\nContent-Length: 4\r\n\r\nrows".to_owned()).await;
    let mut settings = settings(upstream.address, &folder);
    let route = |path: &str, cost: &str| RouteConfig { cost: Some(cost.parse().unwrap()), ..RouteConfig::new(path) };
    settings.requests.routes = vec![route("/rows/{*}", "header:X-Cost"), route("/files/{*}", "bytes")];
    let running = start_with(settings, ONE_LEVEL).await;
    let requests = [
        ("/rows/a", 37.into(), None),
        ("/files/a", 4.into(), Some("37".to_owned())),
        ("/rows/b", 37.into(), None),
        ("/other", Value::Null, Some("37".to_owned())),
    ];
    for (index, (path, cost, header)) in requests.into_iter().enumerate() {
        assert_eq!(get(running.address, path, "").await.header("x-cost"), header, "{path}");
        assert_eq!(line(&folder, index + 1).await["cost"], cost, "{path}");
    }
    assert_eq!(line(&folder, 3).await["costExpected"], 37, "of the route, whatever its last segment is");
    running.done().await;
}

#[tokio::test]
async fn co_2_a_cost_in_a_trailer_over_http1_and_http2() {
    let folder = tempfile::tempdir().unwrap();
    let old = Upstream::answering(|_| {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nrows\r\n0\r\nX-Cost: 21\r\nChecksum: 7\r\n\r\n"
            .to_owned()
    })
    .await;
    let mut lines = 0;
    for (upstream, protocol) in [(old.address, Protocol::Http1), (with_trailers("21").await, Protocol::Http2)] {
        let mut settings = settings(upstream, &folder);
        settings.upstreams[0].protocol = protocol;
        let running = start_with(settings, &annotated(BY_HEADER)).await;
        let mut client = Client::connect(running.address).await;
        client.send("GET /rows HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n").await;
        let answer = client.answer().await;
        assert_eq!((answer.text().as_str(), answer.trailers.as_str()), ("rows", "checksum: 7\r\n"));
        drop(client);
        lines += 1;
        assert_eq!(line(&folder, lines).await["cost"], 21);

        let stream = TcpStream::connect(running.address).await.unwrap();
        let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(format!("http://{}/rows", running.address)).body(Full::<Bytes>::default()).unwrap();
        let collected = sender.send_request(request).await.unwrap().into_body().collect().await.unwrap();
        let trailers = collected.trailers().unwrap();
        assert_eq!((trailers["checksum"].to_str().unwrap(), trailers.get("x-cost")), ("7", None));
        drop(sender);
        lines += 1;
        assert_eq!(line(&folder, lines).await["cost"], 21);
        running.done().await;
    }
}

#[tokio::test]
async fn co_2_bytes_of_responses_count_also_where_the_client_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::answering(|_| ok(&"x".repeat(5000))).await;
    let annotations = "evenkeel.dev/cost: bytes, evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '1000'";
    let running = start_with(settings(upstream.address, &folder), &annotated(annotations)).await;
    assert_eq!(get(running.address, "/rows", "").await.body.len(), 5000);
    assert_eq!(line(&folder, 1).await["cost"], 5000);
    assert_eq!(explained(&running).await["seats"]["initial"], 5);
    running.done().await;
}

#[tokio::test]
async fn rl_2_requests_over_the_rate_wait_and_those_that_cannot_are_told_when_to_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::answering(|_| ok("hello")).await;
    let running = start_with(settings(upstream.address, &folder), &annotated("evenkeel.dev/rate: 5/s;burst=1")).await;
    let begun = Instant::now();
    for _ in 0..4 {
        assert_eq!(get(running.address, "/rows", "").await.status, 200);
    }
    let took = begun.elapsed();
    assert!((580..2000).contains(&took.as_millis()), "three waits of 200 ms: {took:?}");
    let last = line(&folder, 4).await;
    assert!((150.0..900.0).contains(&last["waitMs"].as_f64().unwrap()), "{last}");
    let explained = explained(&running).await;
    assert_eq!(explained["rate"]["rate"], "5/s;burst=1");
    let metrics = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let series = "evenkeel_rate_delayed_requests_total{flow_schema=\"everybody\",priority_level=\"everybody\"} 3";
    assert!(metrics.contains(series), "{metrics}");
    running.done().await;

    let rejecting = annotated("evenkeel.dev/rate: 1/h;burst=1;excess=reject");
    let running = start_with(settings(upstream.address, &folder), &rejecting).await;
    assert_eq!(get(running.address, "/rows", "").await.status, 200);
    let refused = get(running.address, "/rows", "").await;
    let header = |name| refused.header(name).unwrap_or_default();
    assert_eq!(
        (refused.status, header("x-evenkeel-reason"), header("retry-after")),
        (429, "rate-limit".into(), "3600".into())
    );
    assert_eq!(line(&folder, 6).await["rejected"], "rate-limit");
    running.done().await;
}

#[tokio::test]
async fn rl_5_responses_tell_clients_how_they_stand_if_the_settings_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::answering(|_| ok("hello")).await;
    let objects = annotated("evenkeel.dev/rate: 2/h;burst=2;excess=reject");
    for tells in [false, true] {
        let mut settings = settings(upstream.address, &folder);
        settings.responses.rate_limit_fields = tells;
        let running = start_with(settings, &objects).await;
        for (status, left) in [(200, 1), (200, 0), (429, 0)] {
            let answer = get(running.address, "/rows", "").await;
            assert_eq!(answer.status, status);
            let fields = ["ratelimit-policy", "ratelimit"].map(|name| answer.header(name).unwrap_or_default());
            if !tells {
                assert_eq!(fields, ["", ""]);
                continue;
            }
            let [policy, limit] = fields.map(|field| field.split(", ").map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(policy[0], "\"everybody\";q=2;w=3600");
            assert!(limit[0].starts_with(&format!("\"everybody\";r={left};t=")), "{limit:?}");
            let seconds: u32 = limit[0].rsplit_once('=').unwrap().1.parse().unwrap();
            assert!((1700..=3600).contains(&seconds), "{limit:?}");
            assert!(
                policy[1].starts_with("\"everybody-seats\";q=") && policy[1].ends_with(";qu=\"concurrent-requests\"")
            );
            assert!(limit[1].starts_with("\"everybody-seats\";r="), "{limit:?}");
        }
        running.done().await;
    }
}
