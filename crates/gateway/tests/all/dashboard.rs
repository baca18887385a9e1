//! The dashboard over real connections: the page, the stream of frames, and who may see them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use evenkeel::{Attributes, FlowControl, FlowSchema, PriorityLevelConfiguration, RequestInfo, User, WorkEstimate};
use evenkeel_gateway::config::AdminConfig;
use evenkeel_gateway::observe::admin::AdminToken;
use evenkeel_gateway::observe::dashboard::{Frames, Recording, Viewer};
use evenkeel_gateway::observe::frame::{DiagnosisState, Frame, PastLevel};
use evenkeel_gateway::{Gateway, Readiness, objects};
use http_body::Body;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::admin::{get, send, serve, start_with};
use crate::support::upstream::Upstream;
use crate::support::{self, PATIENCE, client};

const TOKEN: &str = "a-token-that-is-long-enough";

/// A stream of server-sent events over a connection.
pub(crate) struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET /debug/frames HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        Self { stream, text: String::new() }
    }

    /// The data of the next event of a kind. Chunk sizes of the transfer are on lines of their own, and data is not.
    async fn next(&mut self, kind: &str) -> String {
        let begin = format!("event: {kind}\ndata: ");
        timeout(PATIENCE, async {
            loop {
                if let Some(at) = self.text.find(&begin)
                    && let Some(end) = self.text[at..].find("\n\n")
                {
                    let data = self.text[at + begin.len()..at + end].to_owned();
                    self.text.drain(..at + end);
                    return data;
                }
                let mut buffer = vec![0; 65536];
                let count = self.stream.read(&mut buffer).await.unwrap();
                assert!(count > 0, "the stream has ended: {}", self.text);
                self.text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
            }
        })
        .await
        .expect("an event")
    }

    pub(crate) async fn frame(&mut self) -> Frame {
        serde_json::from_str(&self.next("frame").await).unwrap()
    }
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A gateway with an admin endpoint, in front of a service that responds at once.
async fn start() -> (Gateway, SocketAddr, Upstream) {
    let service = Upstream::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone".to_owned()).await;
    let mut config = support::config(&[service.address]);
    config.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    let source = objects::source(&config);
    let gateway = Gateway::start(config, source).await.unwrap();
    let admin = gateway.admin_address().unwrap();
    (gateway, admin, service)
}

/// What a response says of its length.
fn length(response: &str) -> usize {
    response.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_page_is_packed_cached_and_closed_to_other_scripts() {
    let address = start_with(&Readiness::default(), None).await;
    for (path, kind) in [("/", "text/html"), ("/dashboard.css", "text/css"), ("/dashboard.js", "text/javascript")] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n");
        let plain = send(address, &head).await;
        let (headers, _) = plain.split_once("\r\n\r\n").unwrap();
        for part in [
            format!("content-type: {kind}; charset=utf-8"),
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'".to_owned(),
            "x-content-type-options: nosniff".to_owned(),
            "cross-origin-resource-policy: same-origin".to_owned(),
        ] {
            assert!(headers.contains(&part), "{path}: {part}\n{headers}");
        }
        assert!(!headers.contains("content-encoding"));
        let packed = send(address, &format!("{head}Accept-Encoding: br, gzip\r\n")).await;
        assert!(packed.contains("content-encoding: gzip"), "{path}");
        assert!(length(&packed) < length(&plain) / 2, "{path}");
        let etag = headers.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        let again = send(address, &format!("{head}If-None-Match: {etag}\r\n")).await;
        assert!(again.starts_with("HTTP/1.1 304"), "{again}");
        let changed = send(address, &format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n")).await;
        assert!(changed.starts_with("HTTP/1.1 405"), "{changed}");
    }
}

#[tokio::test]
async fn a_stream_begins_with_the_past_and_goes_on_with_fresh_frames() {
    let (gateway, admin, _service) = start().await;
    for _ in 0..3 {
        assert_eq!(client::get(gateway.addresses()[0], "/", "").await.text(), "done");
    }
    let mut events = Events::open(admin).await;
    // The gateway may have started this very moment; then there is no past yet.
    let mut frame = events.frame().await;
    let mut youngest = u64::MAX;
    while youngest > 100
        || frame.level("everyone").is_none_or(|level| level.schemas[0].hits < 3)
        || frame.interval_ms == 0
    {
        frame = events.frame().await;
        // A busy machine may be late once, and is not always.
        youngest = youngest.min(now_ms().saturating_sub(frame.time_ms));
    }
    println!("a frame is {youngest} ms old when it arrives, bar: at most 1100 a second later");
    assert_eq!((frame.version, frame.upstreams.len(), frame.diagnosis.state), (1, 1, DiagnosisState::Well));
    let mut late = Events::open(admin).await;
    let past: PastLevel = serde_json::from_str(&late.next("past").await).unwrap();
    assert!(!past.in_use.is_empty() && past.in_use.len() == past.waiting.len(), "{past:?}");
    assert!(late.frame().await.time_ms >= frame.time_ms);
    // Whoever watches does not keep the gateway from stopping.
    timeout(PATIENCE, gateway.drain()).await.unwrap();
}

#[tokio::test]
async fn viewers_are_bounded_and_make_room_when_they_leave() {
    let (_gateway, admin, _service) = start().await;
    let mut viewers = Vec::new();
    for _ in 0..16 {
        let mut events = Events::open(admin).await;
        events.frame().await;
        viewers.push(events);
    }
    let refused = get(admin, "/debug/frames").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 10"), "{refused}");
    viewers.clear();
    timeout(PATIENCE, async {
        loop {
            let mut events = Events::open(admin).await;
            let mut status = [0; 12];
            events.stream.read_exact(&mut status).await.unwrap();
            if &status == b"HTTP/1.1 200" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

/// The next piece of a stream without a connection.
async fn piece(viewer: &mut Viewer) -> String {
    let frame: Option<Result<http_body::Frame<bytes::Bytes>, Infallible>> =
        std::future::poll_fn(|context| Pin::new(&mut *viewer).poll_frame(context)).await;
    let data = frame.unwrap().unwrap().into_data().unwrap();
    String::from_utf8(data.to_vec()).unwrap()
}

fn of(text: &str) -> Frame {
    serde_json::from_str(text.strip_prefix("event: frame\ndata: ").unwrap().trim_end()).unwrap()
}

#[tokio::test]
async fn who_reads_slowly_skips_frames_and_keeps_nothing() {
    let flow = FlowControl::builder().build();
    let frames = Frames::default();
    let mut recording = Recording::alone(frames.clone(), flow);
    recording.look();
    let mut slow = frames.watch().unwrap();
    assert_eq!(piece(&mut slow).await, "retry: 500\n\n");
    let first = of(&piece(&mut slow).await);
    // It misses sixty of them. Of those, only the last is there.
    (0..60).for_each(|_| recording.look());
    let latest = frames.latest();
    assert_eq!(of(&piece(&mut slow).await), latest);
    assert!(latest.time_ms >= first.time_ms);
    let waiting = timeout(Duration::from_millis(50), piece(&mut slow)).await;
    assert!(waiting.is_err(), "{waiting:?}");
    // All viewers share the same text.
    let mut viewers: Vec<_> = (0..3).map(|_| frames.watch().unwrap()).collect();
    for viewer in &mut viewers {
        let mut text = piece(viewer).await;
        while !text.starts_with("event: frame") {
            text = piece(viewer).await;
        }
        assert_eq!(of(&text), latest);
    }
}

#[tokio::test]
async fn a_viewer_that_does_not_read_stalls_nobody() {
    let (gateway, admin, _service) = start().await;
    let stopped = Events::open(admin).await;
    let mut reader = Events::open(admin).await;
    let first = reader.frame().await;
    assert_eq!(client::get(gateway.addresses()[0], "/", "").await.text(), "done");
    let mut last = reader.frame().await;
    for _ in 0..2 {
        let next = reader.frame().await;
        assert!(next.time_ms > last.time_ms);
        last = next;
    }
    assert!(last.time_ms > first.time_ms);
    drop(stopped);
}

/// What a viewer reads that has not read for long, before it comes to the latest frame, was kept for it somewhere.
#[tokio::test]
async fn a_viewer_that_stops_reading_costs_little() {
    const RECEIVED: u32 = 4096;
    let flow = FlowControl::builder().build();
    let frames = Frames::default();
    let mut recording = Recording::alone(frames.clone(), flow.clone());
    recording.look();
    let address = serve(&Readiness::default(), None, flow, frames.clone()).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVED).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(format!("GET /debug/frames HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).await.unwrap();
    let mut sent = 0;
    for _ in 0..1000 {
        recording.look();
        sent += serde_json::to_vec(&frames.latest()).unwrap().len();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let latest = format!("\"timeMs\":{}", frames.latest().time_ms);
    let mut read = String::new();
    let mut buffer = vec![0; 4096];
    while !read.contains(&latest) {
        let count = timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(count > 0);
        read.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let kept = read.len() - RECEIVED as usize;
    println!("a viewer that stopped reading: {kept} bytes of {sent} were kept for it, bar: at most 65536");
    assert!(sent > 4 * 65536 && kept <= 65536, "{kept} of {sent}");
}

/// 200 levels with a schema each, and 50 users in each level. How many there are makes no difference to the length of a frame;
/// `cargo xtask bench dashboard` has 50,000.
#[tokio::test]
async fn a_frame_of_many_levels_and_flows_is_small() {
    let names: Vec<_> = (0..200).map(|index| format!("level-{index:03}")).collect();
    let levels = names.iter().map(|name| {
        PriorityLevelConfiguration::builder(name)
            .limited(|l| l.shares(10).queue(|q| q.queues(64).hand_size(4).queue_length_limit(50)))
            .build()
    });
    let schemas = names.iter().map(|name| {
        let schema = FlowSchema::builder(format!("schema-of-{name}")).priority_level(name).matching_precedence(100);
        schema.by_user().rule(|r| r.group(name).everything()).build()
    });
    let objects = evenkeel::objects::Objects {
        priority_levels: levels.map(Arc::new).collect(),
        flow_schemas: schemas.map(Arc::new).collect(),
    };
    let flow =
        FlowControl::builder().server_concurrency(2000).attribute_flows().objects(objects).drive_by_hand().build();
    let frames = Frames::default();
    let mut recording = Recording::alone(frames.clone(), flow.clone());
    recording.look();
    let request = RequestInfo::default();
    let mut held = Vec::new();
    for name in &names {
        for index in 0..50 {
            let user = User::new(format!("some-user-of-{name}-{index:03}"), [name.clone()]);
            held.push(flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT));
        }
    }
    held.truncate(5_000);
    recording.look();
    let mut viewer = frames.watch().unwrap();
    let mut text = piece(&mut viewer).await;
    while !text.starts_with("event: frame") {
        text = piece(&mut viewer).await;
    }
    let (bytes, frame) = (text.len(), of(&text));
    println!("a frame of {} levels and {} flows: {bytes} bytes, bar: at most 65536", frame.levels.len(), 10_000);
    assert!(frame.levels.len() >= 200 && frame.levels.iter().any(|level| !level.flows.is_empty()));
    assert!(frame.levels.iter().filter(|level| !level.schemas.is_empty()).count() >= 200);
    assert!(bytes <= 65536, "{bytes}");
}

#[tokio::test]
async fn an_address_for_other_machines_needs_a_token() {
    let mut config = support::config(&[SocketAddr::from(([127, 0, 0, 1], 9))]);
    config.admin.address = Some("0.0.0.0:0".parse().unwrap());
    let source = objects::source(&config);
    let error = Gateway::start(config, source).await.unwrap_err().to_string();
    assert!(error.contains("needs a token: set `admin.tokenFile` or the variable EVENKEEL_ADMIN_TOKEN"), "{error}");
}

#[tokio::test]
async fn with_a_token_only_health_checks_are_free() {
    let token = AdminToken::open(&AdminConfig::default(), Some(TOKEN.to_owned())).unwrap();
    let address = start_with(&Readiness::default(), token).await;
    for path in ["/", "/metrics", "/config", "/debug/frames", "/debug/explain?url=/", "/dashboard.js"] {
        let refused = get(address, path).await;
        assert!(
            refused.starts_with("HTTP/1.1 401") && refused.contains("www-authenticate: Basic"),
            "{path}: {refused}"
        );
        assert!(!refused.contains(TOKEN));
    }
    for path in ["/livez", "/healthz", "/readyz"] {
        assert!(!get(address, path).await.starts_with("HTTP/1.1 401"), "{path}");
    }
    let basic = "Basic OmEtdG9rZW4tdGhhdC1pcy1sb25nLWVub3VnaA==";
    for credential in [format!("Bearer {TOKEN}"), basic.to_owned()] {
        let head = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: {credential}\r\n");
        assert!(send(address, &head).await.starts_with("HTTP/1.1 200"), "{credential}");
    }
    let wrong = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}x\r\n");
    assert!(send(address, &wrong).await.starts_with("HTTP/1.1 401"));
    let page = send(address, &wrong.replace(&format!("{TOKEN}x"), TOKEN)).await;
    for series in ["{reason=\"no-token\"} 6\n", "{reason=\"wrong-token\"} 1\n"] {
        assert!(page.contains(&format!("\nevenkeel_admin_authentication_failures_total{series}")), "{series}: {page}");
    }
}
