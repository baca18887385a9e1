//! Settings that change while the gateway runs.

use crate::support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::division::Borrowing;
use evenkeel_gateway::config::{
    AnonymousRequests, BorrowingConfig, IdentityConfig, Paths, Protocol, RouteConfig, UpstreamConfig,
};
use evenkeel_gateway::{Config, Reconfigured};
use support::client::{Client, get};
use support::upstream::{Upstream, answer_all, has_more, ok};
use support::{ONE_LEVEL, Running, config, eventually, start};
use tokio::sync::Semaphore;

const GET: &str = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";

async fn named(name: &'static str) -> Upstream {
    Upstream::answering(move |_| ok(name)).await
}

/// An upstream that responds when it may.
async fn patient(name: &'static str) -> (Upstream, Arc<Semaphore>, Arc<Semaphore>) {
    let (begun, ends) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (told, end) = (Arc::clone(&begun), Arc::clone(&ends));
    let upstream = Upstream::new(move |mut client, _| {
        let (told, end) = (Arc::clone(&told), Arc::clone(&end));
        async move {
            while has_more(&mut client).await {
                client.answer().await;
                told.add_permits(1);
                end.acquire().await.unwrap().forget();
                client.send(&ok(name)).await;
            }
        }
    })
    .await;
    (upstream, begun, ends)
}

fn to(upstreams: &[SocketAddr], running: &Running) -> Config {
    Config { upstreams: config(upstreams).upstreams, ..(*running.gateway.config()).clone() }
}

async fn reconfigure(running: &mut Running, config: Config, changed: &[&str]) {
    let done = running.gateway.reconfigure(config).await.unwrap();
    assert_eq!((done.changed, done.needs_restart), (changed.iter().map(ToString::to_string).collect(), vec![]));
}

/// Asks again and again on one connection, until somebody else responds: workers are told of new settings, and follow soon.
async fn until_responds(client: &mut Client, name: &str) {
    loop {
        client.send(GET).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 200);
        if answer.text() == name {
            return;
        }
    }
}

#[tokio::test]
async fn open_connections_go_to_new_upstreams_and_running_requests_finish() {
    let ((old, begun, ends), new) = (patient("old").await, named("new").await);
    let mut running = start(config(&[old.address])).await;
    let mut idle = Client::connect(running.address).await;
    ends.add_permits(1);
    idle.send(GET).await;
    assert_eq!(idle.answer().await.text(), "old");
    let mut busy = Client::connect(running.address).await;
    busy.send(GET).await;
    begun.acquire_many(2).await.unwrap().forget();

    let settings = to(&[new.address], &running);
    reconfigure(&mut running, settings, &["upstreams"]).await;
    // A request that still went to the old upstream would wait for a permit, which the one that is running needs.
    let idle = tokio::time::timeout(support::PATIENCE, async {
        // The worker may not know yet when the first request arrives.
        loop {
            let mut client = Client::connect(running.address).await;
            client.send(GET).await;
            if let Ok(answer) = tokio::time::timeout(Duration::from_secs(1), client.answer()).await {
                assert_eq!(answer.text(), "new");
                break;
            }
        }
        until_responds(&mut idle, "new").await;
        idle
    });
    let mut idle = idle.await.unwrap();
    ends.add_permits(10);
    assert_eq!(busy.answer().await.text(), "old");
    until_responds(&mut busy, "new").await;
    let count = old.connections();
    for client in [&mut idle, &mut busy] {
        client.send(GET).await;
        assert_eq!(client.answer().await.text(), "new");
    }
    assert_eq!(old.connections(), count);
    drop((idle, busy));
    running.done().await;
}

#[tokio::test]
async fn a_request_that_waits_for_a_seat_goes_to_the_new_upstream() {
    let ((old, begun, ends), new) = (patient("old").await, named("new").await);
    let manifest = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(manifest.path(), ONE_LEVEL).unwrap();
    let objects = Some(manifest.path().to_owned());
    let mut settings = Config { concurrency: Some(1.into()), objects, ..config(&[old.address]) };
    settings.requests.paths = Paths::Reject;
    let source = evenkeel_gateway::objects::source(&settings);
    let gateway = evenkeel_gateway::Gateway::start(settings, source).await.unwrap();
    let mut running = Running { address: gateway.addresses()[0], gateway, objects: None };
    let mut first = Client::connect(running.address).await;
    first.send(GET).await;
    begun.acquire().await.unwrap().forget();
    let mut second = Client::connect(running.address).await;
    second.send(GET).await;
    let flow = running.gateway.flow().clone();
    eventually("it waits", || flow.status().iter().any(|level| level.waiting == 1)).await;
    let mut settings = to(&[new.address], &running);
    settings.requests.paths = Paths::AsIs;
    reconfigure(&mut running, settings, &["requests.paths", "upstreams"]).await;
    // The reason for rejecting this path tells when the worker follows the new settings, and takes no seat.
    let probe = async || get(running.address, "/x/../y", "").await;
    while probe().await.text().contains("needless escapes") {}
    assert_eq!(probe().await.status, 400);
    assert!(flow.status().iter().any(|level| level.waiting == 1));
    ends.add_permits(2);
    assert_eq!((first.answer().await.text(), second.answer().await.text()), ("old".to_owned(), "new".to_owned()));
    drop((first, second));
    running.done().await;
}

#[tokio::test]
async fn connections_of_http2_go_to_new_upstreams() {
    let (old, new) = (named("old").await, named("new").await);
    let mut running = start(config(&[old.address])).await;
    let stream = tokio::net::TcpStream::connect(running.address).await.unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let mut ask = async || {
        let request = http::Request::get("http://shop.example/").body(http_body_util::Empty::<bytes::Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes()
    };
    assert_eq!(ask().await, "old");
    let settings = to(&[new.address], &running);
    reconfigure(&mut running, settings, &["upstreams"]).await;
    while ask().await == "old" {}
    assert_eq!(ask().await, "new");
    drop(sender);
    running.done().await;
}

#[tokio::test]
async fn an_upstream_that_stays_keeps_its_connections_and_one_that_goes_loses_them() {
    let closed = Arc::new(Semaphore::new(0));
    let told = Arc::clone(&closed);
    let going = Upstream::new(move |client, _| {
        let told = Arc::clone(&told);
        async move {
            answer_all(client, |_| ok("going")).await;
            told.add_permits(1);
        }
    })
    .await;
    let staying = named("staying").await;
    let mut running = start(config(&[staying.address, going.address])).await;
    let mut client = Client::connect(running.address).await;
    until_responds(&mut client, "going").await;
    until_responds(&mut client, "staying").await;
    assert_eq!((staying.connections(), going.connections()), (1, 1));
    let settings = Config { concurrency: Some(599.into()), ..to(&[staying.address], &running) };
    reconfigure(&mut running, settings, &["concurrency", "upstreams"]).await;
    // The idle connection to it is closed, though nobody sends a request.
    tokio::time::timeout(support::PATIENCE, closed.acquire()).await.unwrap().unwrap().forget();
    for _ in 0..4 {
        client.send(GET).await;
        assert_eq!(client.answer().await.text(), "staying");
    }
    assert_eq!((staying.connections(), going.connections()), (1, 1));
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn the_protocol_of_an_upstream_can_change() {
    let upstream = named("http1").await;
    let mut wrong = config(&[upstream.address]);
    wrong.upstreams[0].protocol = Protocol::Http2;
    let mut running = start(wrong).await;
    assert_eq!(get(running.address, "/", "").await.status, 502);
    let settings = to(&[upstream.address], &running);
    reconfigure(&mut running, settings, &["upstreams"]).await;
    while get(running.address, "/", "").await.status != 200 {}
    running.done().await;
}

#[tokio::test]
async fn seats_are_divided_anew() {
    let upstream = named("upstream").await;
    let mut running = start(Config { concurrency: Some(100.into()), ..config(&[upstream.address]) }).await;
    let seats =
        |running: &Running| running.gateway.flow().status().iter().map(|level| level.current_limit).sum::<i64>();
    let before = seats(&running);
    let settings = Config { concurrency: Some(300.into()), ..to(&[upstream.address], &running) };
    reconfigure(&mut running, settings, &["concurrency"]).await;
    assert!((before * 2..before * 4).contains(&seats(&running)), "{before} became {}", seats(&running));
    running.done().await;
}

#[tokio::test]
async fn bm_3_the_way_of_borrowing_changes_under_load() {
    let (upstream, begun, ends) = patient("slow").await;
    let mut running = start(Config { concurrency: Some(1.into()), ..config(&[upstream.address]) }).await;
    assert_eq!(running.gateway.flow().borrowing(), Borrowing::Immediate);
    let address = running.address;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(address).await;
        client.send(GET).await;
        clients.push(client);
    }
    begun.acquire().await.unwrap().forget();
    for borrowing in [BorrowingConfig::Periodic, BorrowingConfig::Immediate] {
        let mut settings = to(&[upstream.address], &running);
        settings.concurrency = Some(1.into());
        settings.flow_control.borrowing = Some(borrowing);
        reconfigure(&mut running, settings, &["flowControl.borrowing"]).await;
        assert_eq!(running.gateway.flow().borrowing(), borrowing.into());
    }
    ends.add_permits(3);
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
    running.done().await;
}

#[tokio::test]
async fn time_outs_and_limits_hold_for_the_next_request_of_a_connection() {
    let (upstream, _begun, ends) = patient("slow").await;
    let mut running = start(config(&[upstream.address])).await;
    let mut client = Client::connect(running.address).await;
    ends.add_permits(1);
    client.send(GET).await;
    assert_eq!(client.answer().await.status, 200);
    let mut settings = to(&[upstream.address], &running);
    settings.timeouts.response = Duration::from_millis(200);
    settings.limits.body_bytes = 3;
    settings.limits.connections = 2;
    settings.limits.connections_per_client = 2;
    let changed = ["limits.bodyBytes", "limits.connections", "limits.connectionsPerClient", "timeouts.response"];
    reconfigure(&mut running, settings, &changed).await;
    let post = "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\nbody";
    let address = running.address;
    let refused = async {
        loop {
            let mut other = Client::connect(address).await;
            other.send(post).await;
            ends.add_permits(1);
            if other.answer().await.status == 413 {
                return;
            }
        }
    };
    tokio::time::timeout(support::PATIENCE, refused).await.unwrap();
    ends.forget_permits(usize::MAX);
    client.send(GET).await;
    assert_eq!(client.answer().await.status, 504);
    drop(client);
    eventually("the connections are closed", || running.gateway.connections() == 0).await;
    let (_one, _two) = (Client::connect(address).await, Client::connect(address).await);
    eventually("both are there", || running.gateway.connections() == 2).await;
    assert_eq!(Client::connect(address).await.answer().await.status, 503);
    ends.add_permits(10);
}

#[tokio::test]
async fn routes_and_identities_can_change() {
    let upstream = Upstream::echo().await;
    let mut running = start(config(&[upstream.address])).await;
    let mut client = Client::connect(running.address).await;
    client.send(GET).await;
    assert_eq!(client.answer().await.status, 200);
    let mut settings = to(&[upstream.address], &running);
    settings.identity = IdentityConfig {
        sources: Vec::new(),
        anonymous: AnonymousRequests::Deny,
        open_paths: vec!["/healthz".to_owned()],
        ..IdentityConfig::default()
    };
    let route: RouteConfig = serde_json::from_value(serde_json::json!({"path": "/big", "seats": 2})).unwrap();
    settings.requests.routes.push(route);
    let changed = ["identity.anonymous", "identity.openPaths", "identity.sources", "requests.routes"];
    reconfigure(&mut running, settings, &changed).await;
    loop {
        client.send(GET).await;
        if client.answer().await.status == 401 {
            break;
        }
    }
    assert_eq!(get(running.address, "/healthz", "").await.status, 200);
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn what_needs_a_restart_stays_and_is_named() {
    let upstream = named("upstream").await;
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    let mut running = start(settings.clone()).await;
    let admin = running.gateway.admin_address().unwrap();
    assert!(get(admin, "/config", "").await.text().contains("concurrency: auto"));
    let wanted = Config { concurrency: Some(70.into()), workers: Some(2), listen: Vec::new(), ..settings.clone() };
    let done = running.gateway.reconfigure(wanted).await.unwrap();
    let expected: (Vec<String>, Vec<String>) =
        (vec!["concurrency".to_owned()], vec!["listen".to_owned(), "workers".to_owned()]);
    assert_eq!((done.changed, done.needs_restart), expected);
    assert_eq!(*running.gateway.config(), Config { concurrency: Some(70.into()), ..settings });
    assert!(get(admin, "/config", "").await.text().contains("concurrency: 70"));
    assert!(get(admin, "/metrics", "").await.text().contains("evenkeel_settings_changes_total{outcome=\"applied\"} 1"));
    let same = (*running.gateway.config()).clone();
    assert_eq!(running.gateway.reconfigure(same).await.unwrap(), Reconfigured::default());
    running.done().await;
}

#[tokio::test]
async fn settings_that_cannot_be_used_change_nothing() {
    let upstream = named("upstream").await;
    let mut running = start(config(&[upstream.address])).await;
    let before = running.gateway.config();
    let mut settings = Config { concurrency: Some(70.into()), ..to(&[upstream.address], &running) };
    settings.upstreams.push(UpstreamConfig::new("https://127.0.0.1:1").unwrap());
    settings.upstreams[1].tls.ca = Some("there/is/no.such".into());
    let error = running.gateway.reconfigure(settings.clone()).await.unwrap_err().to_string();
    assert!(error.contains("no.such"), "{error}");
    assert_eq!(running.gateway.config(), before);
    settings.upstreams.clear();
    assert!(running.gateway.reconfigure(settings).await.is_err());
    assert_eq!(get(running.address, "/", "").await.status, 200);
    running.done().await;
}
