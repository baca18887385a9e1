//! Envoy forwards, and the gateway decides: requests over external processing (`docs/spec/ext_proc.md`, EP).

mod envoy;
mod files;
mod http2;
mod log;
mod observe;
mod protocol;
mod services;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use envoy::Envoy;
use evenkeel_gateway::config::{Config, ExtProcConfig};
use evenkeel_gateway::{Drained, Gateway, objects};
use log::Log;
use tokio::process::Command;

use crate::support::client::{Client, get};
use crate::support::upstream::{Upstream, has_more, ok};
use crate::support::{PATIENCE, config, eventually};

/// A gateway that forwards nothing.
struct Deciding {
    gateway: Gateway,
    address: SocketAddr,
}

/// Settings with so many seats.
fn deciding(concurrency: u32) -> Config {
    let address = SocketAddr::from(([127, 0, 0, 1], 0)).into();
    let ext_proc = Some(ExtProcConfig { address, ..ExtProcConfig::default() });
    Config { ext_proc, concurrency: Some(concurrency.into()), ..config(&[]) }
}

/// One level, in which so many requests of a client may wait.
fn one_level(concurrency: u32, waiting: u32) -> Config {
    let text = format!(
        "{{levels: {{clients: {{share: 100, queue: {waiting}, perClient: {waiting}}}}}, match: [{{level: clients}}]}}"
    );
    let short = Config::parse("x", &text).unwrap();
    Config { levels: short.levels, matches: short.matches, ..deciding(concurrency) }
}

impl Deciding {
    async fn start(config: Config) -> Self {
        let objects = objects::source(&config);
        let gateway = Gateway::start(config, objects).await.unwrap();
        let address = gateway.ext_proc_addresses()[0];
        Self { gateway, address }
    }

    fn executing(&self) -> usize {
        self.gateway.flow().status().iter().map(|level| level.executing).sum()
    }

    fn waiting(&self) -> usize {
        self.gateway.flow().status().iter().map(|level| level.waiting).sum()
    }

    async fn has(&self, executing: usize, waiting: usize) {
        let what = format!("{executing} requests run and {waiting} wait");
        eventually(&what, || (self.executing(), self.waiting()) == (executing, waiting)).await;
    }

    /// No seat is left behind, and nothing had to be cut.
    async fn done(self) {
        self.has(0, 0).await;
        assert_eq!(self.gateway.drain().await, Drained { requests_cut: 0 });
    }
}

async fn send(address: SocketAddr, path: &str) -> Client {
    let mut client = Client::connect(address).await;
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n")).await;
    client
}

/// EP-1, EP-3: a request holds its seat until its response has ended, and others wait.
#[tokio::test]
async fn requests_hold_seats_until_they_are_over() {
    let (upstream, mut told, leave) = Upstream::held().await;
    let deciding = Deciding::start(deciding(2)).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(send(envoy.address, "/").await);
    }
    deciding.has(2, 3).await;
    for _ in 0..5 {
        told.recv().await.unwrap();
        assert!(deciding.executing() <= 2);
        leave.add_permits(1);
    }
    for mut client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
    assert!(told.try_recv().is_err());
    deciding.done().await;
}

/// EP-1: the seat is held while the body of the response is sent, not only until its head.
#[tokio::test]
async fn a_response_under_way_holds_its_seat() {
    let upstream = Upstream::halting().await;
    let deciding = Deciding::start(deciding(1)).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    let mut first = send(envoy.address, "/").await;
    first.until(b"half").await;
    let second = send(envoy.address, "/").await;
    deciding.has(1, 1).await;
    drop((first, second));
    deciding.done().await;
}

/// EP-1: a client that leaves while its request waits, and one that leaves while it runs.
#[tokio::test]
async fn a_client_that_leaves_gives_back_its_place() {
    let upstream = Upstream::silent().await;
    let deciding = Deciding::start(deciding(1)).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    let running = send(envoy.address, "/").await;
    deciding.has(1, 0).await;
    let waiting = send(envoy.address, "/").await;
    deciding.has(1, 1).await;
    drop(waiting);
    deciding.has(1, 0).await;
    let next = send(envoy.address, "/").await;
    deciding.has(1, 1).await;
    drop(running);
    deciding.has(1, 0).await;
    drop(next);
    deciding.done().await;
}

/// A name, an upstream, what is replaced in the settings of Envoy, the status, and how many connections the upstream gets from three requests: one
/// for each try.
type Becoming<'a> = (&'a str, Upstream, (&'a str, &'a str), u16, usize);

/// EP-1: an upstream that closes, one that never responds, one that fails and is tried again, and a response of another filter.
#[tokio::test]
async fn whatever_becomes_of_a_request_its_seat_comes_back() {
    let abort = "          - name: envoy.filters.http.fault
            typed_config:
              \"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault
              abort: {http_status: 418, percentage: {numerator: 100, denominator: HUNDRED}}
          - name: envoy.filters.http.router\n";
    let route = "timeout: 60s";
    let cases: [Becoming<'_>; 4] = [
        (
            "closes",
            Upstream::new(|mut client, _| async move { drop(client.head().await) }).await,
            (route, route),
            503,
            3,
        ),
        ("never responds", Upstream::silent().await, (route, "timeout: 0.2s"), 504, 3),
        (
            "fails twice",
            Upstream::new(|mut client, number| async move {
                client.head().await;
                let status = if number < 2 { "503 Later" } else { "200 OK" };
                client.send(&format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")).await;
            })
            .await,
            (route, "timeout: 60s, retry_policy: {retry_on: 5xx, num_retries: 5}"),
            200,
            5,
        ),
        ("another filter", Upstream::silent().await, ("          - name: envoy.filters.http.router\n", abort), 418, 0),
    ];
    for (name, upstream, replaced, status, tries) in cases {
        let deciding = Deciding::start(deciding(1)).await;
        let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[replaced]).await else { return };
        for _ in 0..3 {
            assert_eq!(get(envoy.address, "/", "").await.status, status, "{name}");
            deciding.has(0, 0).await;
        }
        assert_eq!(upstream.connections(), tries, "{name}");
        deciding.done().await;
    }
}

/// EP-4: the response to a rejected request is the gateway's.
#[tokio::test]
async fn a_rejection_is_the_gateways_own() {
    let upstream = Upstream::silent().await;
    let deciding = Deciding::start(one_level(1, 1)).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    let running = send(envoy.address, "/").await;
    deciding.has(1, 0).await;
    let waiting = send(envoy.address, "/").await;
    deciding.has(1, 1).await;
    let answer = get(envoy.address, "/", "").await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("x-evenkeel-reason").as_deref(), Some("queue-full"));
    assert_eq!(answer.header("content-type").as_deref(), Some("application/problem+json"));
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert!(answer.text().contains("\"reason\":\"queue-full\""), "{}", answer.text());
    // A call of gRPC gets a status of gRPC, over HTTP/2.
    let call = ["-s", "-D", "-", "--http2-prior-knowledge", "-H", "content-type: application/grpc", "-d", ""];
    let output = Command::new("curl").args(call).arg(format!("http://{}/x.Y/Z", envoy.address)).output().await.unwrap();
    let head = String::from_utf8(output.stdout).unwrap().to_lowercase();
    assert!(head.contains("http/2 200") && head.contains("grpc-status: 8"), "{head}");
    assert!(head.contains("grpc-retry-pushback-ms: "), "{head}");
    drop((running, waiting));
    deciding.done().await;
}

/// EP-2: who sends a request is what Envoy says and what the settings believe, and the upstream is told.
#[tokio::test]
async fn identity_is_that_of_the_gateway() {
    let upstream = Upstream::echo().await;
    let mut settings = deciding(4);
    settings.identity =
        Config::parse("x", "identity: {sources: [{address: {}}], tellUpstream: true}").unwrap().identity;
    let deciding = Deciding::start(settings).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    let answer = get(envoy.address, "/", "X-Remote-User: root\r\nX-Remote-Group: system:masters\r\n").await;
    let head = answer.text().to_lowercase();
    assert!(head.contains("x-remote-user: address:127.0.0.1"), "{head}");
    assert!(!head.contains("root") && !head.contains("masters"), "{head}");
    deciding.done().await;
}

/// EP-1: a long-running request gives its seat back when its response begins, which Envoy is asked to tell.
#[tokio::test]
async fn a_long_running_request_holds_no_seat_while_it_streams() {
    let upstream = Upstream::halting().await;
    let mut settings = deciding(1);
    let route = serde_json::json!({"path": "/events", "longRunning": true});
    settings.requests.routes.push(serde_json::from_value(route).unwrap());
    let deciding = Deciding::start(settings).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = send(envoy.address, "/events").await;
        stream.until(b"half").await;
        streams.push(stream);
    }
    deciding.has(0, 0).await;
    drop(streams);
    deciding.done().await;
}

/// EP-3: Envoy's default time for a response is shorter than a wait. Its client gets an error, and nothing is left behind.
#[tokio::test]
async fn an_impatient_envoy_leaks_no_seat() {
    let upstream = Upstream::silent().await;
    let deciding = Deciding::start(deciding(1)).await;
    let replaced = ("message_timeout: 20s", "message_timeout: 0.2s");
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[replaced]).await else { return };
    let running = send(envoy.address, "/").await;
    deciding.has(1, 0).await;
    assert_eq!(get(envoy.address, "/", "").await.status, 504);
    deciding.has(1, 0).await;
    drop(running);
    deciding.done().await;
}

/// EP-7: what happens while the gateway is away, in both failure modes. Nothing hangs.
#[tokio::test]
async fn without_the_gateway_requests_fail_or_pass() {
    let upstream = Upstream::answering(|_| ok("")).await;
    for (mode, status) in [("failure_mode_allow: false", 500), ("failure_mode_allow: true", 200)] {
        let deciding = Deciding::start(deciding(4)).await;
        let replaced = ("failure_mode_allow: false", mode);
        let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[replaced]).await else { return };
        assert_eq!(get(envoy.address, "/", "").await.status, 200);
        let address = deciding.address;
        deciding.done().await;
        assert_eq!(get(envoy.address, "/", "").await.status, status, "{mode}");
        let mut settings = self::deciding(4);
        settings.ext_proc.as_mut().unwrap().address = address.into();
        let back = Deciding::start(settings).await;
        let is_back = async { while get(envoy.address, "/", "").await.status != 200 {} };
        tokio::time::timeout(Duration::from_secs(30), is_back).await.unwrap();
        back.done().await;
    }
}

/// EP-3: when all requests that wait are given up after the same time, the log names the setting of Envoy.
#[tokio::test]
async fn ep_3_the_log_names_the_setting_of_an_impatient_envoy() {
    let log = Log::begin();
    let upstream = Upstream::silent().await;
    let deciding = Deciding::start(deciding(1)).await;
    let replaced = ("message_timeout: 20s", "message_timeout: 0.2s");
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[replaced]).await else { return };
    let running = send(envoy.address, "/").await;
    deciding.has(1, 0).await;
    let is_told = async {
        while !log.text().contains("message_timeout of Envoy's ext_proc filter") {
            assert_eq!(get(envoy.address, "/", "").await.status, 504);
        }
    };
    assert!(tokio::time::timeout(PATIENCE, is_told).await.is_ok(), "{}", log.text());
    drop(running);
    deciding.done().await;
}

/// Requests whose clients leave at any moment: those that stay are never more than the seats, and no seat is left behind. (Of a request whose
/// client has left, the upstream learns a little later than the gateway.)
#[tokio::test]
async fn clients_that_leave_at_any_moment_leak_no_seat() {
    const SEATS: u32 = 4;
    let inside = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
    let counted = Arc::clone(&inside);
    let upstream = Upstream::new(move |mut client, _| {
        let counted = Arc::clone(&counted);
        async move {
            let (now, most) = &*counted;
            while has_more(&mut client).await {
                let counts = u32::from(client.answer().await.head.starts_with("GET /stay "));
                most.fetch_max(now.fetch_add(counts, SeqCst) + counts, SeqCst);
                tokio::time::sleep(Duration::from_millis(2)).await;
                now.fetch_sub(counts, SeqCst);
                client.send(&ok("done")).await;
            }
        }
    })
    .await;
    let deciding = Deciding::start(one_level(SEATS, 1000)).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..16_u64 {
        let address = envoy.address;
        tasks.spawn(async move {
            for number in 0..25_u64 {
                if (lane + number) % 2 == 0 {
                    let client = send(address, "/leave").await;
                    tokio::time::sleep(Duration::from_micros(997 * ((lane * 7 + number * 13) % 20))).await;
                    client.reset();
                } else {
                    assert_eq!(send(address, "/stay").await.answer().await.status, 200);
                }
            }
        });
    }
    tasks.join_all().await;
    deciding.done().await;
    let most = inside.1.load(SeqCst);
    assert!((2..=SEATS).contains(&most), "{most} requests at the upstream");
}

/// EP-1: Envoy ends the stream early unless it is to tell of trailers. Where it lets the gateway choose, its own mode does not matter. The second mode
/// is that of Envoy Gateway with `processingMode: {request: {}}`.
#[tokio::test]
async fn the_gateway_asks_for_the_mode_that_holds_a_seat() {
    let no_trailers = ("response_trailer_mode: SEND", "response_trailer_mode: SKIP");
    let heads = ("response_header_mode: SKIP", "response_header_mode: SEND");
    for replaced in [&[no_trailers, heads][..], &[no_trailers]] {
        let upstream = Upstream::halting().await;
        let deciding = Deciding::start(deciding(1)).await;
        let Some(envoy) = Envoy::start(upstream.address, deciding.address, replaced).await else { return };
        let mut first = send(envoy.address, "/").await;
        first.until(b"half").await;
        let second = send(envoy.address, "/").await;
        deciding.has(1, 1).await;
        drop((first, second));
        deciding.done().await;
    }
}

/// EP-6: with `limits.headBytes`, a head that is longer gets the gateway's response, not an error of the stream.
#[tokio::test]
async fn ep_6_a_head_is_as_long_as_the_settings_allow() {
    let upstream = Upstream::answering(|_| ok("")).await;
    let mut settings = deciding(1);
    settings.limits.head_bytes = 8192;
    let deciding = Deciding::start(settings).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
    for (length, status) in [(6_000, 200), (9_000, 431)] {
        let header = format!("X-Long: {}\r\n", "x".repeat(length));
        assert_eq!(get(envoy.address, "/", &header).await.status, status);
    }
    deciding.done().await;
}

/// EP-8: with statuses, the gateway knows what became of a request; the access log says by which way it came.
#[tokio::test]
async fn statuses_and_the_access_log() {
    let upstream = Upstream::answering(|_| "HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    let folder = tempfile::tempdir().unwrap();
    for (statuses, logged) in [(true, 404), (false, 0)] {
        let mut settings = deciding(1);
        settings.ext_proc.as_mut().unwrap().statuses = statuses;
        let file = folder.path().join(format!("{statuses}.log"));
        settings.log.access = Config::parse("x", "log: {access: json}").unwrap().log.access;
        settings.log.access_file = Some(file.clone());
        let deciding = Deciding::start(settings).await;
        let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[]).await else { return };
        assert_eq!(get(envoy.address, "/", "").await.status, 404);
        deciding.done().await;
        let line: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!((&line["via"], &line["status"]), (&"ext_proc".into(), &logged.into()), "{line}");
    }
}
