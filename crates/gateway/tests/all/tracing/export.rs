//! How spans reach a collector, and what becomes of them if it does not take them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use evenkeel_gateway::Config;
use evenkeel_gateway::config::OtlpProtocol;
use prost::Message;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tonic::{Code, Status};

use super::collector::Collector;
use super::{of, traced};
use crate::authority::{Authority, ClientCertificates};
use crate::support::client::{Client, find, get};
use crate::support::upstream::{Upstream, ok};
use crate::support::{PATIENCE, Running, config, start};

/// Settings with an admin endpoint, and tracing to this collector.
fn watched(upstream: &Upstream, collector: &Collector) -> Config {
    let mut settings = traced(config(&[upstream.address]), collector);
    settings.admin.address = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings
}

/// How many spans were exported, rejected and lost, by the metrics.
async fn counted(running: &Running) -> [u64; 3] {
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    ["exported", "rejected", "lost"].map(|outcome| {
        let series = format!("evenkeel_trace_spans_total{{outcome=\"{outcome}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
    })
}

/// Waits until these many spans were exported, rejected and lost.
async fn has_counted(running: &Running, expected: [u64; 3]) {
    let patience = tokio::time::Instant::now() + PATIENCE;
    loop {
        let found = counted(running).await;
        if found == expected {
            return;
        }
        assert!(tokio::time::Instant::now() < patience, "{found:?} are not {expected:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn spans_are_exported_while_the_gateway_runs() {
    let (upstream, collector) = (Upstream::answering(|_| ok("")).await, Collector::http().await);
    let running = start(watched(&upstream, &collector)).await;
    get(running.address, "/", "").await;
    collector.has_spans(3).await;
    has_counted(&running, [3, 0, 0]).await;
    let head = &collector.heads()[0];
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert_eq!(find(head, "content-type").as_deref(), Some("application/x-protobuf"));
    assert_eq!(find(head, "host"), Some(collector.address.to_string()));
    running.done().await;
}

#[tokio::test]
async fn many_spans_are_exported_in_few_messages() {
    let (upstream, collector) = (Upstream::answering(|_| ok("")).await, Collector::http().await);
    let running = start(traced(config(&[upstream.address]), &collector)).await;
    let mut client = Client::connect(running.address).await;
    for number in 0..1000 {
        client.send(&format!("GET /{number} HTTP/1.1\r\nHost: shop.example\r\n\r\n")).await;
        client.answer().await;
    }
    drop(client);
    running.done().await;
    let (spans, messages) = (collector.spans(), collector.messages().len());
    assert_eq!(spans.len(), 3000);
    let paths: Vec<_> = spans.iter().filter(|span| span.kind == 2).map(|span| of(span, "url.path").unwrap()).collect();
    assert!((0..1000).all(|number| paths[number] == format!("/{number}")), "{paths:?}");
    assert!(messages <= 100, "{messages}");
}

#[tokio::test]
async fn headers_for_the_collector_come_from_a_file_that_may_change() {
    let upstream = Upstream::answering(|_| ok("")).await;
    let collector = Collector::grpc(Vec::new(), Some("s3cret-2")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    std::fs::write(&file, "X-Api-Key: s3cret-1\n").unwrap();
    let mut settings = watched(&upstream, &collector);
    settings.tracing.protocol = OtlpProtocol::Grpc;
    settings.tracing.headers_file = Some(file.clone());
    let running = start(settings).await;
    let shown = format!("{:?} {}", running.gateway, running.gateway.config().to_yaml());
    assert!(!shown.contains("s3cret") && shown.contains("headers"), "{shown}");
    get(running.address, "/", "").await;
    has_counted(&running, [0, 0, 3]).await;
    std::fs::write(&file, "X-Api-Key: s3cret-2\n").unwrap();
    // The file is looked at once a second.
    let patience = Instant::now() + PATIENCE;
    while collector.spans().is_empty() {
        assert!(Instant::now() < patience, "the new key was never used");
        get(running.address, "/", "").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    running.done().await;
}

#[tokio::test]
async fn a_collector_that_asks_for_patience_gets_the_spans_later_and_once() {
    let upstream = Upstream::answering(|_| ok("")).await;
    let http = Collector::responding(|before| match before {
        0 => "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
    });
    let grpc = Collector::grpc(vec![Status::unavailable("not yet"), Status::aborted("nor now")], None);
    for (collector, protocol, messages) in [(http.await, OtlpProtocol::Http, 2), (grpc.await, OtlpProtocol::Grpc, 1)] {
        let mut settings = watched(&upstream, &collector);
        settings.tracing.protocol = protocol;
        let running = start(settings).await;
        get(running.address, "/", "").await;
        has_counted(&running, [3, 0, 0]).await;
        assert_eq!(collector.messages().len(), messages);
        running.done().await;
    }
}

#[tokio::test]
async fn an_exporter_that_was_replaced_goes_on_with_its_pauses() {
    let upstream = Upstream::echo().await;
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let collector = Collector::responding(move |before| {
        noted.lock().unwrap().push(Instant::now());
        match before {
            0..=3 => "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n".to_owned(),
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
        }
    });
    let collector = collector.await;
    let on = watched(&upstream, &collector);
    let mut off = on.clone();
    off.tracing.endpoint = None;
    let mut running = start(off.clone()).await;
    let (address, patience) = (running.address, Instant::now() + PATIENCE);
    let is_traced = async || find(&get(address, "/", "").await.text(), "traceparent").is_some();
    // Workers follow soon after.
    running.gateway.reconfigure(on).await.unwrap();
    while !is_traced().await {
        assert!(Instant::now() < patience, "no request was ever traced");
    }
    collector.has_spans(3).await;
    running.gateway.reconfigure(off).await.unwrap();
    while is_traced().await {
        assert!(Instant::now() < patience, "requests are traced for ever");
    }
    // A listener lets go of the old settings when it accepts a connection.
    assert!(!is_traced().await);
    while counted(&running).await[0] < 3 {
        assert!(Instant::now() < patience, "the spans were never exported");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let times = times.lock().unwrap().clone();
    for (earlier, later) in times.iter().zip(&times[1..=4]) {
        // The collector notes the time before it has said so.
        assert!(later.duration_since(*earlier) >= Duration::from_secs(1), "{times:?}");
    }
    running.done().await;
}

#[tokio::test]
async fn a_response_that_breaks_off_is_asked_for_again() {
    let upstream = Upstream::answering(|_| ok("")).await;
    let breaking = Upstream::new(|mut client, connections_before| async move {
        client.answer().await;
        if connections_before == 0 {
            client.send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").await;
            client.stream.shutdown().await.unwrap();
        } else {
            client.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
        client.rest().await;
    });
    let collector = Collector::odd(breaking.await);
    let running = start(watched(&upstream, &collector)).await;
    get(running.address, "/", "").await;
    has_counted(&running, [3, 0, 0]).await;
    running.done().await;
}

/// The messages of `google.rpc` that tell a client when to retry.
mod rpc {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Status {
        #[prost(message, repeated, tag = "3")]
        pub(super) details: Vec<Any>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Any {
        #[prost(string, tag = "1")]
        pub(super) type_url: String,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) value: Vec<u8>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct RetryInfo {
        #[prost(message, optional, tag = "1")]
        pub(super) retry_delay: Option<Duration>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Duration {
        #[prost(int64, tag = "1")]
        pub(super) seconds: i64,
        #[prost(int32, tag = "2")]
        pub(super) nanos: i32,
    }
}

/// A collector without room. Details of another type come before when to retry, if that is known.
fn exhausted(retry_delay: Option<rpc::Duration>) -> Status {
    let any = |name: &str, value| rpc::Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value };
    let retry = retry_delay.map(|delay| rpc::RetryInfo { retry_delay: Some(delay) }.encode_to_vec());
    let mut details = vec![any("QuotaFailure", b"\x0a\x00".to_vec())];
    details.extend(retry.map(|retry| any("RetryInfo", retry)));
    Status::with_details(Code::ResourceExhausted, "no room", rpc::Status { details }.encode_to_vec().into())
}

#[tokio::test]
async fn a_collector_without_room_gets_the_spans_later_if_it_says_when() {
    let upstream = Upstream::answering(|_| ok("")).await;
    // Longer than the exporter gathers spans and pauses by itself.
    let delay = Duration::from_millis(3500);
    let later = exhausted(Some(rpc::Duration { seconds: 3, nanos: 500_000_000 }));
    for (status, expected) in
        [(later, [3, 0, 0]), (exhausted(None), [0, 0, 3]), (Status::resource_exhausted("never any room"), [0, 0, 3])]
    {
        let collector = Collector::grpc(vec![status], None).await;
        let mut settings = watched(&upstream, &collector);
        settings.tracing.protocol = OtlpProtocol::Grpc;
        let running = start(settings).await;
        let began = Instant::now();
        get(running.address, "/", "").await;
        has_counted(&running, expected).await;
        assert!(expected[0] == 0 || began.elapsed() >= delay, "{:?}", began.elapsed());
        running.done().await;
    }
}

#[tokio::test]
async fn spans_that_a_collector_refuses_are_counted() {
    let upstream = Upstream::answering(|_| ok("")).await;
    // `partial_success` with two spans rejected, and why.
    let partial = "\u{a}\u{7}\u{8}\u{2}\u{12}\u{3}bad";
    let partial = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{partial}", partial.len());
    let bad = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned();
    for (response, expected) in [(partial, [1, 2, 0]), (bad, [0, 0, 3])] {
        let collector = Collector::responding(move |_| response.clone()).await;
        let running = start(watched(&upstream, &collector)).await;
        get(running.address, "/", "").await;
        has_counted(&running, expected).await;
        assert_eq!(collector.messages().len(), 1, "it is not sent again");
        running.done().await;
    }
    let collector = Collector::grpc(vec![Status::invalid_argument("never")], None).await;
    let mut settings = watched(&upstream, &collector);
    settings.tracing.protocol = OtlpProtocol::Grpc;
    let running = start(settings).await;
    get(running.address, "/", "").await;
    has_counted(&running, [0, 0, 3]).await;
    running.done().await;
}

#[tokio::test]
async fn a_collector_that_is_down_disturbs_nobody() {
    let upstream = Upstream::answering(|_| ok("")).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for protocol in [OtlpProtocol::Http, OtlpProtocol::Grpc] {
        let mut settings = config(&[upstream.address]);
        settings.tracing.protocol = protocol;
        settings.tracing.endpoint = Some(format!("http://{gone}").parse().unwrap());
        let running = start(settings).await;
        assert_eq!(get(running.address, "/", "").await.status, 200);
        let began = Instant::now();
        running.done().await;
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_collector_that_never_responds_does_not_keep_the_gateway_from_stopping() {
    let upstream = Upstream::answering(|_| ok("")).await;
    for protocol in [OtlpProtocol::Http, OtlpProtocol::Grpc] {
        let collector = Collector::odd(Upstream::silent().await);
        let mut settings = watched(&upstream, &collector);
        settings.tracing.protocol = protocol;
        settings.tracing.timeout = Duration::from_secs(3600);
        let running = start(settings).await;
        assert_eq!(get(running.address, "/", "").await.status, 200);
        let drained = tokio::time::timeout(PATIENCE, running.done()).await;
        assert!(drained.is_ok(), "the gateway has not stopped");
    }
}

#[tokio::test]
async fn collectors_may_say_what_they_like() {
    let upstream = Upstream::answering(|_| ok("")).await;
    // A body without an end, one that is cut, no HTTP at all, and nothing.
    let endless = Upstream::new(|mut client, _| async move {
        client.head().await;
        let _ = client.stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while client.stream.write_all(b"1000\r\n").await.is_ok()
            && client.stream.write_all(&[b'x'; 4096]).await.is_ok()
            && client.stream.write_all(b"\r\n").await.is_ok()
        {}
    });
    let cut = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").await;
        client.stream.shutdown().await.unwrap();
        client.rest().await;
    });
    let noise = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("\u{0}\u{1}\u{2} this is no HTTP\r\n\r\n").await;
    });
    let closing = Upstream::new(|_, _| async move {});
    for (odd, is_retried) in [(endless.await, false), (cut.await, true), (noise.await, true), (closing.await, true)] {
        let collector = Collector::odd(odd);
        for protocol in [OtlpProtocol::Http, OtlpProtocol::Grpc] {
            let mut settings = watched(&upstream, &collector);
            settings.tracing.protocol = protocol;
            settings.tracing.timeout = Duration::from_secs(1);
            let running = start(settings).await;
            assert_eq!(get(running.address, "/", "").await.status, 200);
            if protocol == OtlpProtocol::Http && !is_retried {
                has_counted(&running, [0, 0, 3]).await;
            }
            assert_eq!(get(running.address, "/", "").await.status, 200);
            running.done().await;
        }
    }
}

#[tokio::test]
async fn spans_that_nobody_takes_are_bounded_and_counted() {
    let upstream = Upstream::answering(|_| ok("")).await;
    let collector = Collector::odd(Upstream::silent().await);
    let mut settings = watched(&upstream, &collector);
    settings.tracing.timeout = Duration::from_secs(3600);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    let head = format!("GET /{} HTTP/1.1\r\nHost: shop.example\r\n\r\n", "x".repeat(1000));
    // More than the queue, the message and the worker's buffer have room for.
    let mut lost = 0;
    for _ in 0..40 {
        for _ in 0..200 {
            client.send(&head).await;
            client.answer().await;
        }
        lost = counted(&running).await[2];
        if lost > 0 {
            break;
        }
    }
    assert!(lost > 0, "nothing was ever lost");
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn a_collector_may_be_behind_tls() {
    let (authority, upstream) = (Authority::new(), Upstream::answering(|_| ok("")).await);
    authority.sign("collector", "collector.example");
    for protocol in [OtlpProtocol::Http, OtlpProtocol::Grpc] {
        let collector = match protocol {
            OtlpProtocol::Grpc => Collector::grpc(Vec::new(), None).await,
            _ => Collector::http().await,
        };
        let acceptor = authority.server("collector", &["h2", "http/1.1"], ClientCertificates::Ignored);
        let (acceptor, behind) = (TlsAcceptor::from(Arc::new(acceptor)), collector.address);
        let encrypted = Upstream::new(move |client, _| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut stream) = acceptor.accept(client.stream).await else { return };
                let mut collector = TcpStream::connect(behind).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut collector).await;
            }
        });
        let encrypted = encrypted.await;
        for (name, spans) in [("other.example", 0), ("collector.example", 3)] {
            let mut settings = watched(&upstream, &collector);
            settings.tracing.protocol = protocol;
            settings.tracing.endpoint = Some(format!("https://{}", encrypted.address).parse().unwrap());
            settings.tracing.tls = authority.towards(name);
            let running = start(settings).await;
            get(running.address, "/", "").await;
            running.done().await;
            assert_eq!(collector.spans().len(), spans, "{protocol:?} {name}");
        }
    }
}

#[tokio::test]
async fn tracing_can_be_switched_on_and_off_while_the_gateway_runs() {
    let (upstream, collector) = (Upstream::echo().await, Collector::http().await);
    let on = traced(config(&[upstream.address]), &collector);
    let mut off = on.clone();
    off.tracing.endpoint = None;
    let mut running = start(off.clone()).await;
    let is_traced =
        async |running: &Running| find(&get(running.address, "/", "").await.text(), "traceparent").is_some();
    assert!(!is_traced(&running).await);
    let changed = running.gateway.reconfigure(on.clone()).await.unwrap();
    assert_eq!((changed.changed, changed.needs_restart), (vec!["tracing.endpoint".to_owned()], Vec::new()));
    // Workers follow soon after.
    let patience = Instant::now() + PATIENCE;
    while !is_traced(&running).await {
        assert!(Instant::now() < patience, "no request was ever traced");
    }
    let mut rarely = on.clone();
    rarely.tracing.sample_ratio = 0.0;
    running.gateway.reconfigure(rarely).await.unwrap();
    running.gateway.reconfigure(off).await.unwrap();
    while is_traced(&running).await {
        assert!(Instant::now() < patience, "requests are traced for ever");
    }
    collector.has_spans(3).await;
    running.done().await;
}
