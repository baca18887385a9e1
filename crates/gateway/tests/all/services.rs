//! Several services behind one gateway: host and path say whose a request is, and each has its own seats.

use crate::dashboard::Events;
use crate::support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use evenkeel_gateway::config::{AccessLogFormat, Paths};
use evenkeel_gateway::{Config, Gateway, objects};
use http::{Request, Version};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::client::{Answer, Client, find, get};
use support::upstream::{Upstream, ok};
use support::{Running, config, eventually, start};
use tokio::net::TcpStream;

async fn named(name: &'static str) -> Upstream {
    Upstream::answering(move |request| ok(&format!("{name} {}", request.head.lines().next().unwrap_or_default()))).await
}

/// Settings with services from a text, in which `$0`, `$1` … are the addresses of upstreams.
fn settings(text: &str, upstreams: &[&Upstream]) -> Config {
    let mut text = text.to_owned();
    for (index, upstream) in upstreams.iter().enumerate() {
        text = text.replace(&format!("${index}"), &format!("http://{}", upstream.address));
    }
    let parsed = Config::parse("evenkeel.yaml", &text).unwrap();
    let mut settings = Config {
        services: parsed.services,
        upstreams: parsed.upstreams,
        concurrency: parsed.concurrency,
        ..config(&[])
    };
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    assert_eq!(settings.check(), []);
    settings
}

async fn ask(address: SocketAddr, host: &str, path: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
    client.answer().await
}

async fn text(address: SocketAddr, host: &str, path: &str) -> String {
    let answer = ask(address, host, path).await;
    format!("{} {}", answer.status, answer.text())
}

/// Waits until the worker follows new settings, under which this path has this status.
async fn in_effect(gateway: SocketAddr, path: &str, status: u16) {
    let until = Instant::now() + support::PATIENCE;
    while ask(gateway, "a", path).await.status != status {
        assert!(Instant::now() < until, "the settings never come into effect");
    }
}

async fn admin(running: &Running, path: &str) -> String {
    get(running.gateway.admin_address().unwrap(), path, "").await.text()
}

const THREE: &str = "
services:
  shop: {host: shop.example.com, upstream: $0}
  api:  {host: [api.example.com, '*.api.example.com'], path: /v2, upstream: [$1]}
  docs: {path: /docs, replacePath: /, upstream: {url: $2, weight: 2}}
";

#[tokio::test]
async fn host_and_path_say_whose_a_request_is() {
    let (shop, api, docs) = (named("shop").await, named("api").await, named("docs").await);
    let running = start(settings(THREE, &[&shop, &api, &docs])).await;
    let at = running.address;
    assert_eq!(text(at, "shop.example.com", "/a?b").await, "200 shop GET /a?b HTTP/1.1");
    assert_eq!(text(at, "SHOP.example.com:8080", "/").await, "200 shop GET / HTTP/1.1");
    assert_eq!(text(at, "api.example.com", "/v2/x").await, "200 api GET /v2/x HTTP/1.1");
    assert_eq!(text(at, "eu.api.example.com", "//v2/./x").await, "200 api GET /v2/x HTTP/1.1");
    // The service of the host does not have the path; one that has it for all hosts does.
    assert_eq!(text(at, "api.example.com", "/docs").await, "200 docs GET / HTTP/1.1");
    assert_eq!(text(at, "elsewhere", "/docs/a/b?c=d").await, "200 docs GET /a/b?c=d HTTP/1.1");
    let (unknown_path, unknown_host) = (ask(at, "api.example.com", "/v3").await, ask(at, "elsewhere", "/").await);
    assert_eq!((unknown_path.status, unknown_host.status), (404, 404), "a service without a host has every host");
    assert!(unknown_path.text().contains("no service has the path of the request"), "{}", unknown_path.text());
    running.done().await;
}

#[tokio::test]
async fn an_unknown_host_is_misdirected_unless_there_are_upstreams_for_the_rest() {
    let (shop, rest) = (named("shop").await, named("rest").await);
    let service = "services: {shop: {host: shop.example.com, upstream: $0}}\n";
    let running = start(settings(service, &[&shop])).await;
    let answer = ask(running.address, "elsewhere", "/").await;
    assert_eq!(answer.status, 421);
    assert!(answer.text().contains("no service has the host of the request"), "{}", answer.text());
    let mut without_host = Client::connect(running.address).await;
    without_host.send("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(without_host.answer().await.status, 421);
    running.done().await;
    let running = start(settings(&format!("{service}upstreams: [{{url: $1}}]"), &[&shop, &rest])).await;
    assert_eq!(text(running.address, "shop.example.com", "/").await, "200 shop GET / HTTP/1.1");
    assert_eq!(text(running.address, "elsewhere", "/").await, "200 rest GET / HTTP/1.1");
    running.done().await;
}

#[tokio::test]
async fn each_service_has_its_own_seats() {
    let (slow, mut asked, leave) = Upstream::held().await;
    let quick = named("quick").await;
    let text = "
concurrency: 40
services:
  slow: {path: /slow, upstream: $0, concurrency: 2}
  quick: {path: /quick, upstream: $1}
";
    let running = start(settings(text, &[&slow, &quick])).await;
    let address = running.address;
    let waiting: Vec<_> = (0..3).map(|_| tokio::spawn(async move { get(address, "/slow", "").await.status })).collect();
    for _ in 0..2 {
        asked.recv().await.unwrap();
    }
    // Two run and one waits. It would start if the seats were shared.
    let waits = || async {
        let status: serde_json::Value = serde_json::from_str(&admin(&running, "/debug/status").await).unwrap();
        let slow = status["services"].as_array().unwrap().iter().find(|one| one["service"] == "slow").unwrap().clone();
        slow["levels"].as_array().unwrap().iter().map(|level| level["waiting"].as_u64().unwrap_or(0)).sum::<u64>()
    };
    let until = Instant::now() + support::PATIENCE;
    while waits().await != 1 {
        assert!(Instant::now() < until, "the third request never waits");
    }
    for _ in 0..20 {
        assert_eq!(get(address, "/quick", "").await.status, 200);
    }
    assert!(asked.try_recv().is_err(), "the third request must not have started");
    leave.add_permits(3);
    for request in waiting {
        assert_eq!(request.await.unwrap(), 200);
    }
    let metrics = admin(&running, "/metrics").await;
    let limit = |service: &str| {
        let start = "apiserver_flowcontrol_nominal_limit_seats{";
        let of_service = |line: &&str| line.starts_with(start) && line.contains(&format!("service=\"{service}\""));
        metrics
            .lines()
            .filter(of_service)
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum::<u64>()
    };
    assert_eq!((limit("slow"), limit("quick")), (2, 40), "{metrics}");
    running.done().await;
}

#[tokio::test]
async fn services_are_told_apart_where_operators_look() {
    let (shop, rest) = (named("shop").await, named("rest").await);
    let folder = tempfile::tempdir().unwrap();
    let mut settings =
        settings("services: {shop: {host: shop.example.com, upstream: $0}}\nupstreams: [{url: $1}]", &[&shop, &rest]);
    settings.log.access = AccessLogFormat::Json;
    settings.log.access_file = Some(folder.path().join("access.log"));
    let running = start(settings).await;
    assert_eq!(ask(running.address, "shop.example.com", "/").await.status, 200);
    assert_eq!(ask(running.address, "elsewhere", "/").await.status, 200);
    let metrics = admin(&running, "/metrics").await;
    for (service, upstream) in [("shop", &shop), ("default", &rest)] {
        for line in [
            format!(
                "evenkeel_upstream_requests_total{{code=\"2xx\",service=\"{service}\",upstream=\"http://{}\"}} 1",
                upstream.address
            ),
            format!(
                "apiserver_flowcontrol_dispatched_requests_total{{service=\"{service}\",flow_schema=\"everyone\",priority_level=\"everyone\"}} 1"
            ),
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
        }
        let types =
            metrics.lines().filter(|line| *line == "# TYPE apiserver_flowcontrol_dispatched_requests_total counter");
        assert_eq!(types.count(), 1, "a metric begins once");
        let dump = admin(&running, &format!("/debug/services/{service}/dump_priority_levels")).await;
        assert!(dump.contains("everyone"), "{dump}");
    }
    // Each service has its own seats, and so its own waits.
    let explained = admin(&running, "/debug/explain?url=http://shop.example.com/").await;
    assert!(explained.contains("everyone") && explained.contains("\"service\": \"shop\""), "{explained}");
    let by_header = admin(&running, "/debug/explain?url=/&header=Host:shop.example.com:8080").await;
    assert!(by_header.contains("\"service\": \"shop\""), "{by_header}");
    assert!(!admin(&running, "/debug/explain?url=/").await.contains("\"service\""));
    assert!(admin(&running, "/debug/services/nobody/dump_queues").await.contains("no service of that name"));
    assert!(admin(&running, "/debug/flows").await.contains("\"service\":\"shop\""));
    assert!(admin(&running, "/debug/api_priority_and_fairness/").await.contains("/debug/services/shop/"));
    let frame = Events::open(running.gateway.admin_address().unwrap()).await.frame().await;
    let shown = |name: &str| frame.levels.iter().any(|level| level.name == name);
    assert!(shown("shop/everyone") && shown("default/everyone") && !shown("everyone"), "{frame:?}");
    let upstream = format!("shop/{}", shop.address);
    assert!(frame.upstreams.iter().any(|one| one.name == upstream), "{frame:?}");
    running.done().await;
    let log = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    let services: Vec<_> = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["service"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(services, ["shop", "default"]);
}

#[tokio::test]
async fn without_services_nothing_is_called_by_one() {
    let upstream = named("only").await;
    let running = start(settings("upstreams: [{url: $0}]", &[&upstream])).await;
    assert_eq!(ask(running.address, "anything", "/").await.status, 200);
    for page in ["/metrics", "/debug/status", "/debug/flows"] {
        let page = admin(&running, page).await;
        assert!(!page.contains("service=") && !page.contains("\"service\""), "{page}");
    }
    running.done().await;
}

#[tokio::test]
async fn a_prefix_that_is_not_written_as_it_is_cannot_be_replaced() {
    let docs = named("docs").await;
    let mut settings = settings("services: {docs: {path: /docs, replacePath: /v1, upstream: $0}}", &[&docs]);
    settings.requests.paths = Paths::AsIs;
    let running = start(settings).await;
    assert_eq!(text(running.address, "a", "/docs/%61").await, "200 docs GET /v1/%61 HTTP/1.1");
    let answer = ask(running.address, "a", "/%64ocs/x").await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("not in its normal form"), "{}", answer.text());
    running.done().await;
}

#[tokio::test]
async fn http2_and_upgrades_reach_their_services() {
    let shop = named("shop").await;
    let chat = Upstream::new(|mut client, _| async move {
        let head = client.head().await;
        assert!(head.starts_with("GET /room HTTP/1.1"), "{head}");
        client
            .send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello",
            )
            .await;
        client.rest().await;
    })
    .await;
    let text =
        "services: {shop: {host: shop.example.com, upstream: $0}, chat: {path: /chat, replacePath: /, upstream: $1}}";
    let running = start(settings(text, &[&shop, &chat])).await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for (host, status) in [("shop.example.com", 200), ("Shop.Example.com:443", 200), ("elsewhere", 404)] {
        let request = Request::get(format!("http://{host}/x")).version(Version::HTTP_2).body(Empty::<Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), status, "{host}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(status != 200 || body == "shop GET /x HTTP/1.1", "{body:?}");
    }
    drop(sender);
    let mut client = Client::connect(running.address).await;
    client
        .send(
            "GET /chat/room HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        .await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert_eq!(find(&head, "upgrade").as_deref(), Some("websocket"));
    assert_eq!(client.exactly(5).await, b"hello");
    drop(client);
    running.done().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_settings_lose_no_request_and_keep_what_has_not_changed() {
    let (kept, one, other) = (named("kept").await, named("one").await, named("other").await);
    let all = [&kept, &one, &other];
    let base = "services:\n  kept: {path: /kept, upstream: $0}\n";
    let with_one = format!("{base}  moved: {{path: /moved, upstream: $1, concurrency: 30}}\n");
    let with_other = format!("{base}  moved: {{path: /moved, upstream: $2}}\n  new: {{path: /new, upstream: $2}}\n");
    let mut running = start(settings(&with_one, &all)).await;
    let (is_over, requests, address) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), running.address);
    let clients: Vec<_> = (0..6)
        .map(|number| {
            let (is_over, requests) = (Arc::clone(&is_over), Arc::clone(&requests));
            let path = if number % 2 == 0 { "/kept" } else { "/moved" };
            tokio::spawn(async move {
                let (mut client, mut failed) = (Client::connect(address).await, Vec::new());
                while !is_over.load(Ordering::Relaxed) {
                    client.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
                    let answer = client.answer().await;
                    if answer.status != 200 {
                        failed.push((answer.status, answer.text()));
                    }
                    requests.fetch_add(1, Ordering::Relaxed);
                }
                failed
            })
        })
        .collect();
    let admin_address = running.gateway.config().admin.address.clone();
    for round in 0..10 {
        let text = if round % 2 == 0 { &with_other } else { &with_one };
        let mut next = settings(text, &all);
        next.admin.address.clone_from(&admin_address);
        let changed = running.gateway.reconfigure(next).await.unwrap();
        assert!(changed.changed.iter().any(|name| name.starts_with("services.")), "{changed:?}");
        in_effect(address, "/new", if round % 2 == 0 { 200 } else { 404 }).await;
        let from = requests.load(Ordering::Relaxed);
        eventually("requests are served", || requests.load(Ordering::Relaxed) > from + 50).await;
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        assert_eq!(client.await.unwrap(), [], "requests failed");
    }
    assert!(kept.connections() <= 3, "{} connections to a service that has not changed", kept.connections());
    running.done().await;
}

#[tokio::test]
async fn a_request_that_waits_ends_although_its_service_is_gone() {
    let (held, mut asked, leave) = Upstream::held().await;
    let stays = named("stays").await;
    let both = "services: {gone: {path: /gone, upstream: $0, concurrency: 1}, stays: {path: /stays, upstream: $1}}";
    let mut running = start(settings(both, &[&held, &stays])).await;
    let address = running.address;
    let requests: Vec<_> =
        (0..2).map(|_| tokio::spawn(async move { get(address, "/gone", "").await.status })).collect();
    asked.recv().await.unwrap();
    let mut next = settings("services: {stays: {path: [/stays, /new], upstream: $1}}", &[&held, &stays]);
    next.admin.address.clone_from(&running.gateway.config().admin.address);
    running.gateway.reconfigure(next).await.unwrap();
    in_effect(address, "/new", 200).await;
    assert_eq!(get(address, "/gone", "").await.status, 404);
    leave.add_permits(2);
    for request in requests {
        assert_eq!(request.await.unwrap(), 200);
    }
    running.done().await;
}

#[tokio::test]
async fn a_service_with_too_few_seats_is_named() {
    let upstream = named("a").await;
    let mut settings = settings("services: {tiny: {upstream: $0, concurrency: 1}}", &[&upstream]);
    let text = "{levels: {gold: {share: 2}, silver: {share: 1}}, match: [{path: /gold, level: gold}, {level: silver}]}";
    let form = Config::parse("evenkeel.yaml", text).unwrap();
    (settings.levels, settings.matches) = (form.levels, form.matches);
    let source = objects::source(&settings);
    let error = Gateway::start(settings, source).await.err().unwrap().to_string();
    assert!(error.starts_with("services.tiny.concurrency: ") && error.contains("set it to at least"), "{error}");
}

#[test]
fn mistakes_are_told_kindly() {
    for (text, expected) in [
        (
            "{a: {host: h, upstream: $}, b: {host: H, upstream: $}}",
            "services.b: the host h is also that of services.a; each request needs one service: change one of them",
        ),
        (
            "{a: {host: h, path: /x/, upstream: $}, b: {host: h, path: /x, upstream: $}}",
            "services.b: the host h with the path /x is also that of services.a; each",
        ),
        ("{a: {path: [/x, /x/], upstream: $}}", "services.a: the path /x occurs twice; remove one"),
        (
            "{a: {upstream: $}, b: {upstream: $}}",
            "services.b: what it matches (every request) is also that of services.a; each",
        ),
        (
            "{a: {host: 'h:80', upstream: $}}",
            "services.a.host: \"h:80\" is not a host: it has a port, which hosts are matched without; write it as `shop.example.com`",
        ),
        (
            "{a: {host: 'http://h', upstream: $}}",
            "services.a.host: \"http://h\" is not a host: it has a scheme or a path",
        ),
        (
            "{a: {host: 'a.*.com', upstream: $}}",
            "services.a.host: \"a.*.com\" is not a host: `*` may only be its first part",
        ),
        (
            "{a: {path: x, upstream: $}}",
            "services.a.path: \"x\" is not a path: it does not begin with a slash; write it as `/api`",
        ),
        (
            "{a: {path: '/x/*', upstream: $}}",
            "services.a.path: \"/x/*\" is not a path: it has a `*`; all paths below it are meant anyway",
        ),
        (
            "{a: {path: /x/../y, upstream: $}}",
            "services.a.path: \"/x/../y\" is not a path: it is not in its normal form",
        ),
        (
            "{a: {host: h, replacePath: /, upstream: $}}",
            "services.a.replacePath: there is no `path` that it could replace",
        ),
        ("{a: {host: h}}", "services.a: has no upstream; name one, as `upstream: http://127.0.0.1:9000`"),
        ("{a: {host: h, upstream: $, concurrency: 0}}", "services.a.concurrency: must be at least 1"),
        (
            "{default: {host: h, upstream: $}}",
            "services.default: \"default\" is what `upstreams` are called; choose another name",
        ),
        ("{'A b': {host: h, upstream: $}}", "services.A b: \"A b\" cannot be the name of a service"),
        (
            "{a: {host: h, upstream: [$, $]}}",
            "services.a.upstream[1].url: http://127.0.0.1:9/ is already services.a.upstream[0]; remove it here",
        ),
        ("{a: {host: h, upstream: {url: $, weight: 0}}}", "services.a.upstream[0].weight: must be from 1 to 1000"),
    ] {
        let text = format!("services: {}", text.replace('$', "'http://127.0.0.1:9'"));
        let problems = Config::parse("evenkeel.yaml", &text).unwrap().check();
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(shown.len() == 1 && shown[0].starts_with(expected), "{text}: {shown:#?}");
    }
    let both = "{services: {a: {upstream: 'http://127.0.0.1:9'}}, upstreams: [{url: 'http://127.0.0.1:8'}]}";
    let problems = Config::parse("evenkeel.yaml", both).unwrap().check();
    assert!(problems[0].to_string().starts_with("services.a: has neither host nor path"), "{problems:?}");
    for (text, expected) in [
        (
            "services: {a: {upstream: nonsense}}",
            "services.a.upstream: \"nonsense\" is not the address of an upstream: it has no scheme",
        ),
        (
            "services: {a: {upstreams: []}}",
            "services.a.upstreams: unknown setting `upstreams`; did you mean `upstream`?",
        ),
        ("services: {a: {hosts: h}}", "services.a.hosts: unknown setting `hosts`; did you mean `host`?"),
    ] {
        let error = Config::parse("evenkeel.yaml", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
