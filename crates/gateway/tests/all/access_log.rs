//! The access log, the debug header, and why requests are not authenticated.

use crate::{frames, support};

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_gateway::Config;
use evenkeel_gateway::config::{AccessLogFormat, AnonymousRequests, DebugHeaderConfig, Protocol};
use frames::{END_STREAM, Frames, Outcome, request};
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use support::client::{Answer, Client, get};
use support::upstream::{Upstream, ok};
use support::{ONE_LEVEL, config, eventually, start, start_with};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

/// One level with a queue for each of some hands, so that users have flows.
fn level_with_flows() -> String {
    let queues = "{queues: 8, handSize: 1, queueLengthLimit: 1}";
    let text = ONE_LEVEL.replace("{queues: 1, handSize: 1, queueLengthLimit: 10000}", queues);
    text.replace("  matchingPrecedence: 2\n", "  matchingPrecedence: 2\n  distinguisherMethod: {type: ByUser}\n")
}

/// Settings with an access log in a folder, and users by token.
fn logged(mut config: Config, folder: &TempDir) -> Config {
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, "secret-a,alice,1,\"staff,night shift\"\nsecret-b,\"bo\"\"b\",2\n").unwrap();
    config.log.access = AccessLogFormat::Json;
    config.log.access_file = Some(folder.path().join("access.log"));
    config.identity.sources = vec![serde_json::from_value(json!({"tokens": {"file": tokens}})).unwrap()];
    config
}

fn lines(folder: &TempDir) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The fields of a line, without those that differ from run to run.
fn steady(line: &Value) -> Value {
    let mut line = line.clone();
    let members = line.as_object_mut().unwrap();
    for name in ["time", "requestId", "receiveMs", "waitMs", "serviceMs"] {
        assert!(members.remove(name).is_some(), "{name} is missing");
    }
    line
}

fn as_alice(rest: &str) -> String {
    format!("Authorization: Bearer secret-a\r\n{rest}")
}

async fn post(address: std::net::SocketAddr, path: &str, headers: &str, body: &str) -> Answer {
    let mut client = Client::connect(address).await;
    let length = body.len();
    client
        .send(&format!("POST {path} HTTP/1.1\r\nHost: shop.example\r\ncontent-length: {length}\r\n{headers}\r\n{body}"))
        .await;
    client.answer().await
}

#[tokio::test]
async fn each_request_gets_a_line_with_everything_about_it() {
    let upstream = Upstream::answering(|_| ok("hello")).await;
    let folder = tempfile::tempdir().unwrap();
    let running = start_with(logged(config(&[upstream.address]), &folder), &level_with_flows()).await;
    let answer = get(running.address, "/a%2Fb?c=%22&d", &as_alice("X-Request-Id: mine-1\r\n")).await;
    assert_eq!(answer.text(), "hello");
    assert_eq!(post(running.address, "/x", &as_alice(""), "0123456789").await.status, 200);
    running.done().await;
    let found = lines(&folder);
    assert_eq!(found[0]["requestId"], "mine-1");
    let time = found[0]["time"].as_str().unwrap();
    assert!(time.len() == 30 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
    let (wait, service) = (found[0]["waitMs"].as_f64().unwrap(), found[0]["serviceMs"].as_f64().unwrap());
    assert!(wait >= 0.0 && service > 0.0, "{wait} {service}");
    let expected = |method: &str, path: &str, bytes_in: u64| {
        json!({
            "client": "127.0.0.1", "user": "alice", "groups": ["staff", "night shift", "system:authenticated"],
            "method": method, "path": path,
            "schema": "everybody", "level": "everybody", "flow": "alice", "seats": 1, "status": 200,
            "upstream": upstream.address.to_string(), "bytesIn": bytes_in, "bytesOut": 5,
        })
    };
    let steady: Vec<_> = found.iter().map(steady).collect();
    assert_eq!(steady, [expected("GET", "/a%2Fb?c=%22&d", 0), expected("POST", "/x", 10)]);
}

/// How many seconds after that time of day the request of a line reached the flow control; negative if it was before.
fn asked_after(line: &Value, time: SystemTime) -> f64 {
    const DAY: f64 = 86_400.0;
    let [hours, minutes, seconds] = [(11, 13), (14, 16), (17, 29)].map(|(from, to)| {
        let part: f64 = line["time"].as_str().unwrap()[from..to].parse().unwrap();
        part
    });
    let asked = hours * 3600.0 + minutes * 60.0 + seconds + line["receiveMs"].as_f64().unwrap() / 1000.0;
    let passed = (asked - time.duration_since(UNIX_EPOCH).unwrap().as_secs_f64()).rem_euclid(DAY);
    if passed > DAY / 2.0 { passed - DAY } else { passed }
}

/// A replay of the log lets requests arrive then.
#[tokio::test]
async fn a_line_says_when_the_request_asked_for_seats() {
    /// The clocks of the log and of the test are not read at the same moment.
    const NEAR: f64 = 0.001;
    let upstream = Upstream::answering(|_| ok("hello")).await;
    let folder = tempfile::tempdir().unwrap();
    let running = start_with(logged(config(&[upstream.address]), &folder), &level_with_flows()).await;
    let mut client = Client::connect(running.address).await;
    let asking =
        format!("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n{}\r\n", as_alice(""));
    client.send(&asking).await;
    // The gateway has the head, and wants the body.
    assert!(client.head().await.starts_with("HTTP/1.1 100 "));
    // Then and now are to be told apart.
    tokio::time::sleep(20 * Duration::from_secs_f64(NEAR)).await;
    let began = SystemTime::now();
    client.send("0123456789").await;
    assert_eq!(client.answer().await.status, 200);
    let passed = began.elapsed().unwrap().as_secs_f64();
    running.done().await;
    let [line] = &lines(&folder)[..] else { panic!("one request, one line") };
    let asked = asked_after(line, began);
    assert!(asked > -NEAR && asked <= passed + NEAR, "{asked} s after the end of the body was sent: {line}");
    let held = line["serviceMs"].as_f64().unwrap() / 1000.0;
    assert!(asked + held <= passed + NEAR, "it had its seat after its response was there: {line}");
}

/// The seat of a stream is free when its response begins, and a line says for how long it was taken.
#[tokio::test]
async fn the_service_time_of_a_stream_ends_with_its_seat() {
    let (end, ends) = tokio::sync::watch::channel(false);
    let upstream = Upstream::new(move |mut client, _| {
        let mut ends = ends.clone();
        async move {
            client.head().await;
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
            ends.wait_for(|ends| *ends).await.unwrap();
            client.send(" more").await;
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = logged(config(&[upstream.address]), &folder);
    let requests = "requests: {routes: [{path: /events, longRunning: true}]}";
    settings.requests = Config::parse("evenkeel.yaml", requests).unwrap().requests;
    let running = start_with(settings, &level_with_flows()).await;
    let mut client = Client::connect(running.address).await;
    let started = Instant::now();
    client.send(&format!("GET /events HTTP/1.1\r\nHost: a\r\n{}\r\n", as_alice(""))).await;
    client.until(b"half").await;
    let passed_ms = started.elapsed().as_secs_f64() * 1000.0;
    running.no_seat_is_taken().await;
    // The response lasts much longer than its seat was taken.
    tokio::time::sleep(Duration::from_millis(20)).await;
    end.send(true).unwrap();
    assert_eq!(client.exactly(5).await, b" more");
    running.done().await;
    let [line] = &lines(&folder)[..] else { panic!("one request, one line") };
    let service = line["serviceMs"].as_f64().unwrap();
    assert!(service > 0.0 && service <= passed_ms, "{passed_ms} ms until the response began: {line}");
}

#[tokio::test]
async fn a_line_says_how_the_upstream_failed() {
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let cut = Upstream::new(|mut client, _| async move {
        client.head().await;
    })
    .await;
    let half = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
    })
    .await;
    let (silent, malformed) = (Upstream::silent().await, Upstream::answering(|_| "nonsense\r\n\r\n".to_owned()).await);
    let well = Upstream::answering(|_| ok("hello")).await;
    for (address, status, error) in [
        (refused, 502, Some("connect")),
        (cut.address, 502, Some("cut")),
        (silent.address, 504, Some("timeout")),
        (malformed.address, 502, Some("malformed")),
        (half.address, 200, Some("cut")),
        (well.address, 200, None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = logged(config(&[address]), &folder);
        settings.admin.address = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into());
        settings.timeouts.response = std::time::Duration::from_millis(100);
        let running = start(settings).await;
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n").await;
        client.rest().await;
        let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
        let counted =
            page.lines().find(|line| line.starts_with("evenkeel_upstream_failures_total") && line.ends_with(" 1"));
        let kind = counted.map(|line| line.split("kind=\"").nth(1).unwrap().split('"').next().unwrap());
        assert_eq!(kind, error, "{page}");
        running.done().await;
        let [line] = &lines(&folder)[..] else { panic!("one request has one line") };
        assert_eq!((&line["status"], line.get("error")), (&json!(status), error.map(|error| json!(error)).as_ref()));
        assert_eq!(line["upstream"], json!(address.to_string()));
    }
}

#[tokio::test]
async fn the_client_is_the_one_behind_trusted_proxies() {
    let upstream = Upstream::answering(|_| ok("")).await;
    for (trusted, expected) in [(json!(["127.0.0.0/8"]), "203.0.113.9"), (json!([]), "127.0.0.1")] {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = logged(config(&[upstream.address]), &folder);
        let address = serde_json::from_value(json!({"address": {"trustedProxies": trusted}})).unwrap();
        settings.identity.sources = vec![address];
        let running = start(settings).await;
        get(running.address, "/", "X-Forwarded-For: 198.51.100.1, ::ffff:203.0.113.9, 127.0.0.5\r\n").await;
        running.done().await;
        assert_eq!(lines(&folder)[0]["client"], expected);
    }
}

#[tokio::test]
async fn requests_of_http2_get_the_same_lines() {
    let upstream = Upstream::answering(|_| ok("hello")).await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = logged(config(&[upstream.address]), &folder);
    settings.upstreams[0].protocol = Protocol::Http1;
    let running = start_with(settings, &level_with_flows()).await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = |token: &str| {
        let request = Request::builder().method("POST").uri(format!("http://{}/p?q=1", running.address));
        let request = request.version(Version::HTTP_2).header("authorization", format!("Bearer {token}"));
        request.body(Full::new(Bytes::from_static(b"four"))).unwrap()
    };
    let response = sender.send_request(request("secret-a")).await.unwrap();
    let id = response.headers()["x-request-id"].clone();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    assert_eq!(sender.send_request(request("wrong")).await.unwrap().status(), 401);
    drop(sender);
    running.done().await;
    let found = lines(&folder);
    assert_eq!(found[0]["requestId"], id.to_str().unwrap());
    let line = steady(&found[0]);
    for (name, value) in [
        ("client", json!("127.0.0.1")),
        ("path", json!("/p?q=1")),
        ("status", json!(200)),
        ("bytesIn", json!(4)),
        ("bytesOut", json!(5)),
    ] {
        assert_eq!(line[name], value, "{name}");
    }
    assert_eq!((&found[1]["status"], &found[1]["rejected"]), (&json!(401), &json!("unknown-token")));
    assert_eq!((&found[1]["waitMs"], &found[1]["serviceMs"]), (&json!(0.0), &json!(0.0)));
}

#[tokio::test]
async fn a_rejected_request_has_its_reason_and_one_whose_client_left_has_499() {
    let (upstream, mut told) = Upstream::telling().await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = logged(config(&[upstream.address]), &folder);
    settings.concurrency = Some(1.into());
    settings.timeouts.drain = std::time::Duration::from_millis(100);
    settings.timeouts.response = std::time::Duration::from_millis(500);
    let running = start_with(settings, &level_with_flows()).await;
    let request = format!("GET / HTTP/1.1\r\nHost: shop.example\r\n{}\r\n", as_alice(""));
    let mut first = Client::connect(running.address).await;
    first.send(&request).await;
    assert_eq!(told.recv().await, Some("begun"));
    let mut second = Client::connect(running.address).await;
    second.send(&request).await;
    let flow = running.gateway.flow().clone();
    eventually("a request waits", || flow.status().iter().any(|level| level.waiting == 1)).await;
    let third = get(running.address, "/third", &as_alice("")).await;
    assert_eq!(third.status, 429);
    second.reset();
    eventually("no request waits", || flow.status().iter().all(|level| level.waiting == 0)).await;
    first.reset();
    running.no_seat_is_taken().await;
    running.gateway.drain().await;
    let found = lines(&folder);
    let of = |status: u16| found.iter().filter(|line| line["status"] == status).collect::<Vec<_>>();
    let [rejected] = of(429)[..] else { panic!("{found:?}") };
    assert_eq!(rejected["rejected"], "queue-full");
    assert_eq!(Some("queue-full"), third.header("x-evenkeel-reason").as_deref());
    let body: serde_json::Value = serde_json::from_str(&third.text()).unwrap();
    assert_eq!(body["reason"], "queue-full");
    let seconds = &rejected["retryAfterSeconds"];
    assert_eq!((Some(seconds.to_string()), seconds), (third.header("retry-after"), &body["retryAfterSeconds"]));
    assert_eq!(rejected["requestId"].as_str(), third.header("x-request-id").as_deref());
    assert_eq!((&rejected["level"], &rejected["flow"]), (&json!("everybody"), &json!("alice")));
    assert_eq!(rejected.get("upstream"), None);
    let [one, other] = of(499)[..] else { panic!("{found:?}") };
    let upstreams = [one, other].iter().filter(|line| line.get("upstream").is_some()).count();
    assert_eq!(upstreams, 1, "only the first got to the upstream: {found:?}");
    for line in [one, other] {
        let waited = line["waitMs"].as_f64().unwrap();
        assert_eq!(waited > 1.0, line.get("upstream").is_none(), "the second waited until its client left: {line}");
        let reason = line.get("rejected").and_then(Value::as_str);
        assert_eq!(reason, line.get("upstream").is_none().then_some("cancelled"), "{line}");
    }
}

#[tokio::test]
async fn a_request_whose_time_is_over_while_it_waits_is_counted_as_one_that_timed_out() {
    let (upstream, mut told) = Upstream::telling().await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = logged(config(&[upstream.address]), &folder);
    settings.concurrency = Some(1.into());
    settings.timeouts.total = Duration::from_millis(300);
    settings.timeouts.drain = Duration::from_millis(100);
    // The first one keeps its seat until the others have waited in vain.
    let first = json!({"path": "/first", "timeouts": {"total": "1m"}});
    settings.requests.routes = vec![serde_json::from_value(first).unwrap()];
    let running = start_with(settings, &level_with_flows()).await;
    let mut first = Client::connect(running.address).await;
    first.send(&format!("GET /first HTTP/1.1\r\nHost: shop.example\r\n{}\r\n", as_alice(""))).await;
    assert_eq!(told.recv().await, Some("begun"));
    assert_eq!(get(running.address, "/http1", &as_alice("")).await.status, 504);
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/http2", &[("authorization", "Bearer secret-a")]), END_STREAM).await;
    let Outcome::Answered(body) = http2.outcome(1).await else { panic!("it is cut") };
    assert!(body.contains("took too long"), "{body}");
    drop(http2);
    let reading = running.gateway.flow().reading();
    let level = reading.levels.iter().find(|level| &*level.name == "everybody").unwrap();
    assert_eq!(level.rejected.iter().map(|(_, count)| count).sum::<u64>(), 2, "{level:?}");
    assert!(level.rejected.contains(&(Rejection::TimeOut, 2)), "{level:?}");
    running.gateway.drain().await;
    let found = lines(&folder);
    for path in ["/http1", "/http2"] {
        let line = found.iter().find(|line| line["path"] == path).unwrap();
        assert_eq!((&line["status"], &line["rejected"]), (&json!(504), &json!("time-out")), "{line}");
    }
}

#[tokio::test]
async fn a_request_that_the_gateway_cuts_off_is_not_its_client_s_fault() {
    let (upstream, mut told) = Upstream::telling().await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = logged(config(&[upstream.address]), &folder);
    settings.timeouts.drain = std::time::Duration::from_millis(100);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    assert_eq!(told.recv().await, Some("begun"));
    assert_eq!(running.gateway.drain().await.requests_cut, 1);
    let found = lines(&folder);
    assert_eq!((&found[0]["status"], &found[0]["rejected"]), (&json!(503), &json!("shutdown")), "{found:?}");
}

#[tokio::test]
async fn a_request_that_began_under_earlier_settings_gets_its_line_when_it_ends() {
    let (upstream, mut begun, leave) = Upstream::held().await;
    let folder = tempfile::tempdir().unwrap();
    let settings = logged(config(&[upstream.address]), &folder);
    let mut running = start(settings.clone()).await;
    let is_logged = |path: &str| lines(&folder).iter().any(|line| line["path"] == path);
    for generation in 1..=3 {
        let path = format!("/{generation}");
        // The connection stays open, and so keeps the settings that it began with.
        let mut client = Client::connect(running.address).await;
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n")).await;
        begun.recv().await.unwrap();
        let changed = Config { concurrency: Some((100 + generation).into()), ..settings.clone() };
        running.gateway.reconfigure(changed).await.unwrap();
        // Workers follow soon after: the line of a request under new settings is there.
        let later = format!("/{generation}/later");
        leave.add_permits(2);
        assert_eq!(client.answer().await.status, 200);
        get(running.address, &later, "").await;
        eventually("there is a line for each request", || is_logged(&path) && is_logged(&later)).await;
        begun.recv().await.unwrap();
        drop(client);
    }
    running.done().await;
}

#[tokio::test]
async fn denied_requests_have_their_reason_in_the_log_and_in_the_metrics() {
    let upstream = Upstream::echo().await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = logged(config(&[upstream.address]), &folder);
    settings.admin.address = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.identity.anonymous = AnonymousRequests::Deny;
    let running = start(settings).await;
    let admin = running.gateway.admin_address().unwrap();
    let denied =
        ["", "Authorization: Bearer secret-x\r\n", "Authorization: Bearer a\r\nAuthorization: Bearer secret-a\r\n"];
    for headers in denied {
        assert_eq!(get(running.address, "/", headers).await.status, 401, "{headers}");
    }
    let page = get(admin, "/metrics", "").await.text();
    for (reason, count) in [("no-credential", 1), ("unknown-token", 1), ("malformed-credential", 1), ("expired", 0)] {
        let series = format!("evenkeel_authentication_failures_total{{reason=\"{reason}\"}} {count}\n");
        assert!(page.contains(&series), "{series}\n{page}");
    }
    running.done().await;
    let found = lines(&folder);
    let reasons: Vec<_> = found.iter().map(|line| line["rejected"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["no-credential", "unknown-token", "malformed-credential"]);
    assert!(found.iter().all(|line| line.get("user").is_none() && line.get("schema").is_none()), "{found:?}");
    let text = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn the_debug_header_is_for_those_whom_the_settings_name() {
    let upstream = Upstream::echo().await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = logged(config(&[upstream.address]), &folder);
    settings.log.access = AccessLogFormat::Off;
    settings.debug_header =
        DebugHeaderConfig { users: vec!["bo\"b".to_owned()], groups: vec!["night shift".to_owned()] };
    let running = start_with(settings, &level_with_flows()).await;
    let debug = async |headers: &str| get(running.address, "/", headers).await.header("x-evenkeel-debug");
    let told = debug(&as_alice("X-Evenkeel-Debug: 1\r\n")).await.unwrap();
    assert!(told.starts_with("schema=everybody; level=everybody; flow=alice; seats=1; wait-ms=0."), "{told}");
    let told = debug("Authorization: Bearer secret-b\r\nX-Evenkeel-Debug: 1\r\n").await.unwrap();
    assert!(told.contains("flow=bo\"b;"), "{told}");
    assert_eq!(debug(&as_alice("")).await, None, "nobody asked");
    assert_eq!(debug("X-Evenkeel-Debug: 1\r\n").await, None, "anonymous is not named");
    running.done().await;
    assert!(!folder.path().join("access.log").exists(), "the log is off");
}

#[tokio::test]
async fn the_access_log_can_be_switched_on_while_the_gateway_runs() {
    let upstream = Upstream::echo().await;
    let folder = tempfile::tempdir().unwrap();
    let settings = logged(config(&[upstream.address]), &folder);
    let mut off = settings.clone();
    off.log.access = AccessLogFormat::Off;
    let mut running = start(off.clone()).await;
    get(running.address, "/before", "").await;
    let changed = running.gateway.reconfigure(settings).await.unwrap();
    assert_eq!((changed.changed, changed.needs_restart), (vec!["log.access".to_owned()], Vec::new()));
    // Workers follow soon after.
    let is_logged = async |path: &str| {
        get(running.address, path, "").await;
        let log: &Path = &folder.path().join("access.log");
        std::fs::read_to_string(log).is_ok_and(|text| !text.is_empty())
    };
    let patience = tokio::time::Instant::now() + support::PATIENCE;
    while !is_logged("/after").await {
        assert!(tokio::time::Instant::now() < patience, "no line was ever written");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    running.gateway.reconfigure(off).await.unwrap();
    running.done().await;
    assert!(lines(&folder).iter().all(|line| line["path"] == "/after"));
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_keeps_the_gateway_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = logged(config(&["127.0.0.1:9".parse().unwrap()]), &folder);
    settings.log.access_file = Some(folder.path().join("nowhere/access.log"));
    assert_eq!(settings.check(), [], "it is made when the gateway starts");
    let objects = evenkeel_gateway::objects::source(&settings);
    let error = evenkeel_gateway::Gateway::start(settings, objects).await.unwrap_err().to_string();
    assert!(error.starts_with("log.accessFile: cannot open ") && error.ends_with("name a writable file"), "{error}");
}

#[test]
fn settings_of_the_access_log_are_read_and_checked() {
    let text = "{upstreams: [{url: http://127.0.0.1:9000}], log: {access: off}}";
    assert_eq!(Config::parse("a", text).unwrap().log.access, AccessLogFormat::Off);
    let text = "{upstreams: [{url: http://127.0.0.1:9000}], log: {access: json, accessSample: 1.5, accessFile: a.log}}";
    let config = Config::parse("a", text).unwrap();
    let problems: Vec<_> = config.check().into_iter().map(|problem| problem.to_string()).collect();
    assert_eq!(problems, ["log.accessSample: must be a number from 0 to 1"]);
}

/// Headers that flow schemas ask for are in the log, so that a replay decides the same; credentials never are.
#[tokio::test]
async fn headers_that_decide_are_logged() {
    let upstream = Upstream::answering(|_| ok("hello")).await;
    let folder = tempfile::tempdir().unwrap();
    let form = "{levels: {gold: {share: 1}, rest: {share: 1}}, match: [{header: {X-Plan: gold, Authorization: '*'}, level: gold, \
                per: 'header:X-Tenant'}, {level: rest}]}";
    let form = Config::parse("x", form).unwrap();
    let settings =
        Config { levels: form.levels, matches: form.matches, ..logged(config(&[upstream.address]), &folder) };
    let running = crate::support::start(settings).await;
    for headers in ["X-PLAN: gold\r\nX-Tenant: \"a\"\r\n", "X-Plan: gold\r\nX-Plan: gold\r\n"] {
        assert_eq!(get(running.address, "/", &as_alice(headers)).await.status, 200);
    }
    running.done().await;
    let found: Vec<_> = lines(&folder).iter().map(|line| (line["headers"].clone(), line["level"].clone())).collect();
    assert_eq!(
        found,
        [
            (json!({"x-plan": "gold", "x-tenant": "\"a\""}), json!("gold")),
            (json!({"x-plan": null, "x-tenant": null}), json!("rest")),
        ]
    );
}
