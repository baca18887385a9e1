//! `GET /debug/explain`: what a running gateway says of a request, and whether the wait that it expects is the real one.

use crate::support;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use evenkeel_gateway::Config;
use evenkeel_gateway::config::{HeaderIdentity, IdentitySource};
use serde_json::Value;
use support::client::{Answer, Client, get};
use support::upstream::{Upstream, has_more, ok};
use support::{ONE_LEVEL, PATIENCE, Running, config, start, start_with};

const SEATS: u32 = 4;
/// How long the upstream works on a request.
const SERVICE: Duration = Duration::from_millis(20);
const CLIENTS: usize = 48;
/// How often they are compared.
const ATTEMPTS: usize = 3;
/// How often the expected wait is asked for before it is compared with what was measured meanwhile.
const SAMPLES: usize = 20;

/// Settings with an admin endpoint, for users whose names are in a header.
fn settings(upstream: SocketAddr) -> Config {
    let mut settings = config(&[upstream]);
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    settings.concurrency = Some(SEATS.into());
    settings.timeouts.queue = PATIENCE;
    let trusted = vec!["127.0.0.1".parse().unwrap()];
    let headers = HeaderIdentity { from_addresses: trusted, ..HeaderIdentity::default() };
    settings.identity.sources = vec![IdentitySource::TrustedHeaders(headers)];
    settings
}

async fn explained(running: &Running, query: &str) -> Answer {
    get(running.gateway.admin_address().unwrap(), &format!("/debug/explain?{query}"), "").await
}

async fn explanation(running: &Running, query: &str) -> Value {
    let answer = explained(running, query).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test]
async fn requests_are_explained_with_the_gateways_own_routes_and_objects() {
    let upstream = Upstream::echo().await;
    let mut settings = settings(upstream.address);
    let route = serde_json::json!({"path": "/{resource}/{name}", "seats": 3});
    settings.requests.routes.push(serde_json::from_value(route).unwrap());
    let running = start_with(settings, ONE_LEVEL).await;
    let json = explanation(&running, "method=DELETE&url=%2Forders%2F%2F7%3Fa%3Db&user=alice&group=staff").await;
    assert_eq!(json["request"]["resource"], "orders", "the path is put into its normal form: {json}");
    assert_eq!((&json["request"]["verb"], &json["request"]["name"]), (&"delete".into(), &"7".into()));
    assert_eq!((&json["request"]["user"], &json["request"]["groups"][0]), (&"alice".into(), &"staff".into()));
    assert_eq!((&json["flowSchema"], &json["priorityLevel"]), (&"everybody".into(), &"everybody".into()));
    assert_eq!(json["seats"]["initial"], 3);
    assert_eq!(json["seats"]["rule"], "the route \"/{resource}/{name}\" of the settings");
    assert_eq!(json["live"]["wait"]["outcome"], "starts");
    assert_eq!(explanation(&running, "url=/other").await["seats"]["initial"], 1);
    let status = running.gateway.flow().status();
    assert!(status.iter().all(evenkeel::status::LevelStatus::is_idle), "nothing is counted");
    for (query, part) in [
        ("", "the parameter \"url\" is missing; use ?method=GET&url=/path"),
        ("url=/a&verb=get", "unknown parameter \"verb\""),
        ("url=/a%2525/%25zz", "the gateway would reject the request"),
    ] {
        let answer = explained(&running, query).await;
        assert_eq!((answer.status, answer.text().contains(part)), (400, true), "{query}: {}", answer.text());
    }
    running.done().await;
}

/// SF-2: flow schemas see headers and addresses, and so does an explanation.
#[tokio::test]
async fn headers_and_addresses_are_explained() {
    let upstream = Upstream::echo().await;
    let read = Config::parse(
        "evenkeel.yaml",
        "levels: {gold: {share: 80}, tin: {share: 20}}\n\
         match:\n- {header: {X-Plan: gold}, level: gold, per: header:X-Team}\n- {level: tin, per: address}\n\
         identity: {sources: [{address: {trustedProxies: [10.0.0.1]}}]}\n",
    )
    .unwrap();
    let mut settings =
        Config { levels: read.levels, matches: read.matches, identity: read.identity, ..config(&[upstream.address]) };
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    let running = start(settings).await;
    for (query, expected) in [
        ("url=/", ("tin", "127.0.0.1")),
        ("url=/&address=10.0.0.7", ("tin", "10.0.0.7")),
        ("url=/&address=10.0.0.1&header=X-Forwarded-For:192.0.2.9", ("tin", "192.0.2.9")),
        ("url=/&address=10.0.0.2&header=X-Forwarded-For:192.0.2.9", ("tin", "10.0.0.2")),
        ("url=/&header=x-plan:%20gold&header=X-Team:blue", ("gold", "blue")),
        // Of a header that is there twice, it is not known which one the service would go by.
        ("url=/&header=X-Plan:gold&header=X-Plan:gold", ("tin", "127.0.0.1")),
    ] {
        let json = explanation(&running, query).await;
        assert_eq!(
            (&json["priorityLevel"], &json["flow"]),
            (&expected.0.into(), &expected.1.into()),
            "{query}: {json}"
        );
    }
    running.done().await;
}

/// What the clients and the upstream know of the requests.
#[derive(Default)]
struct Requests {
    last: AtomicU64,
    is_over: AtomicBool,
    /// When requests were sent that the upstream has not got.
    sent: Mutex<HashMap<u64, Instant>>,
    /// How long requests of the first user waited.
    waits: Mutex<Vec<Duration>>,
}

impl Requests {
    /// An upstream that works on each request for the same time, and notes how long it took to get there.
    async fn upstream(self: Arc<Self>) -> Upstream {
        Upstream::new(move |mut client, _| {
            let requests = Arc::clone(&self);
            async move {
                while has_more(&mut client).await {
                    let head = client.answer().await.head;
                    let number = head.split(['/', ' ']).find_map(|part| part.parse().ok());
                    let sent = number.and_then(|number: u64| requests.sent.lock().unwrap().remove(&number));
                    requests.waits.lock().unwrap().extend(sent.map(|sent| sent.elapsed()));
                    tokio::time::sleep(SERVICE).await;
                    client.send(&ok("done")).await;
                }
            }
        })
        .await
    }

    /// A client that sends one request after the other.
    async fn client(self: Arc<Self>, gateway: SocketAddr, user: usize) {
        let mut client = Client::connect(gateway).await;
        while !self.is_over.load(Ordering::SeqCst) {
            let number = self.last.fetch_add(1, Ordering::SeqCst) + 1;
            if user == 0 {
                self.sent.lock().unwrap().insert(number, Instant::now());
            }
            let head = format!("GET /{number} HTTP/1.1\r\nHost: shop.example\r\nX-Remote-User: user-{user}\r\n\r\n");
            client.send(&head).await;
            assert_eq!(client.answer().await.status, 200);
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The expected and the measured wait of the first user, in milliseconds, while so many users keep the level saturated.
/// They are compared again with what comes next if `is_near` does not hold: a machine that stands still for a while changes
/// the measured wait at once, and the expected one later.
async fn expected_and_measured(manifest: &str, users: usize, is_near: impl Fn(f64, f64) -> bool) -> (f64, f64) {
    let requests = Arc::<Requests>::default();
    let upstream = Arc::clone(&requests).upstream().await;
    let running = start_with(settings(upstream.address), manifest).await;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(Arc::clone(&requests).client(running.address, number % users)))
        .collect();
    let mut last = (0.0, 0.0);
    for _ in 0..ATTEMPTS {
        let mut expected = Vec::new();
        requests.waits.lock().unwrap().clear();
        // As long as some hundred requests take: half of them wait, and the others arrive.
        let first = requests.last.load(Ordering::SeqCst);
        while expected.len() < SAMPLES || requests.last.load(Ordering::SeqCst) < first + 4 * CLIENTS as u64 {
            let json = explanation(&running, "url=/1&user=user-0&group=system:authenticated").await;
            expected.extend(json["live"]["wait"]["expectedMs"].as_f64());
            tokio::time::sleep(SERVICE / 2).await;
        }
        let waits = requests.waits.lock().unwrap().iter().map(|wait| wait.as_secs_f64() * 1e3).collect();
        last = (median(expected), median(waits));
        if is_near(last.0, last.1) {
            break;
        }
    }
    requests.is_over.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    running.done().await;
    last
}

async fn the_wait_is_as_expected(manifest: &str, users: usize) {
    let is_near = |expected: f64, measured: f64| (0.75..=1.25).contains(&(expected / measured));
    let (expected, measured) = expected_and_measured(manifest, users, is_near).await;
    assert!(is_near(expected, measured), "{users} users: expected {expected:.1} ms, measured {measured:.1} ms");
}

/// [`ONE_LEVEL`] with queues and flows.
fn by_user(annotations: &str) -> String {
    ONE_LEVEL
        .replacen("{name: everybody}", &format!("{{name: everybody, annotations: {{{annotations}}}}}"), 1)
        .replace(
            "{queues: 1, handSize: 1, queueLengthLimit: 10000}",
            "{queues: 64, handSize: 4, queueLengthLimit: 100}",
        )
        .replace("matchingPrecedence: 2", "matchingPrecedence: 2\n  distinguisherMethod: {type: ByUser}")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_expected_wait_in_one_queue_is_near_the_median() {
    the_wait_is_as_expected(ONE_LEVEL, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_expected_wait_in_shared_queues_is_near_the_median() {
    the_wait_is_as_expected(&by_user(""), 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_expected_wait_in_queues_per_flow_is_near_the_median() {
    the_wait_is_as_expected(&by_user("evenkeel.dev/queuing: per-flow"), 4).await;
}
