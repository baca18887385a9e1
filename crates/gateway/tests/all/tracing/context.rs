//! The W3C trace context: which requests are traced, and what upstreams learn.

use evenkeel_gateway::Config;
use evenkeel_gateway::config::Protocol;
use http::{Response, Version};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::collector::Collector;
use super::{hex, traced};
use crate::support::client::{Client, find, get};
use crate::support::upstream::Upstream;
use crate::support::{Running, config, start};

const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
const STATE: &str = "tracestate: congo=t61rcWkgMzE\r\ntracestate: rojo=00f067aa0ba902b7\r\n";

struct Scene {
    collector: Collector,
    _upstream: Upstream,
    running: Running,
}

impl Scene {
    async fn new(change: impl FnOnce(&mut Config)) -> Self {
        let (upstream, collector) = (Upstream::echo().await, Collector::http().await);
        let mut settings = traced(config(&[upstream.address]), &collector);
        change(&mut settings);
        let running = start(settings).await;
        Self { collector, _upstream: upstream, running }
    }

    /// The lines of the trace context that the upstream gets.
    async fn forwarded(&self, headers: &str) -> Vec<String> {
        let head = get(self.running.address, "/", headers).await.text();
        let is_of_context = |line: &&str| line.to_ascii_lowercase().starts_with("trace");
        head.lines().filter(is_of_context).map(ToOwned::to_owned).collect()
    }

    async fn end(self) -> Collector {
        self.running.done().await;
        self.collector
    }
}

/// The parts of a `traceparent`: trace, span and flags.
fn parts(lines: &[String]) -> [String; 3] {
    let value = find(&lines.join("\r\n"), "traceparent").unwrap();
    let parts: Vec<_> = value.split('-').map(ToOwned::to_owned).collect();
    assert!(parts[0] == "00" && parts[1].len() == 32 && parts[2].len() == 16, "{value}");
    [parts[1].clone(), parts[2].clone(), parts[3].clone()]
}

#[tokio::test]
async fn a_client_that_samples_is_continued() {
    let scene = Scene::new(|settings| settings.tracing.sample_ratio = 0.0).await;
    let lines = scene.forwarded(&format!("traceparent: {SAMPLED}\r\n{STATE}")).await;
    let collector = scene.end().await;
    let (spans, [trace, span, flags]) = (collector.spans(), parts(&lines));
    assert_eq!(spans.len(), 3);
    assert!(spans.iter().all(|span| hex(&span.trace_id) == "0af7651916cd43dd8448eb211c80319c"));
    assert_eq!(hex(&spans[0].parent_span_id), "b7ad6b7169203331");
    assert_eq!(spans[0].flags & 0x300, 0x300, "the parent is in another process");
    assert_eq!((trace, span, flags.as_str()), (hex(&spans[0].trace_id), hex(&spans[2].span_id), "01"));
    assert_eq!(find(&lines.join("\r\n"), "tracestate").unwrap(), "congo=t61rcWkgMzE, rojo=00f067aa0ba902b7");
}

#[tokio::test]
async fn a_client_that_does_not_sample_is_respected() {
    let scene = Scene::new(|_| ()).await;
    let lines = scene.forwarded(&format!("traceparent: {UNSAMPLED}\r\n{STATE}")).await;
    let mut expected = vec![format!("traceparent: {UNSAMPLED}")];
    expected.extend(STATE.lines().map(ToOwned::to_owned));
    assert_eq!(lines, expected);
    assert_eq!(scene.end().await.spans(), []);
}

#[tokio::test]
async fn the_random_flag_goes_on_and_unknown_flags_do_not() {
    let scene = Scene::new(|_| ()).await;
    for (sent, forwarded) in [("03", "03"), ("ff", "03"), ("05", "01")] {
        let lines = scene.forwarded(&format!("traceparent: {}{sent}\r\n", &SAMPLED[..53])).await;
        assert_eq!(parts(&lines)[2], forwarded, "{sent}");
    }
    scene.end().await;
}

#[tokio::test]
async fn malformed_contexts_begin_a_new_trace() {
    let scene = Scene::new(|_| ()).await;
    let twice = format!("traceparent: {SAMPLED}\r\ntraceparent: {SAMPLED}\r\n");
    for headers in ["", "traceparent: 00-zz-b7ad6b7169203331-01\r\n", "traceparent:\r\n", &twice] {
        let lines = scene.forwarded(&format!("{headers}{STATE}")).await;
        let [trace, _, flags] = parts(&lines);
        assert_eq!(lines.len(), 1, "the state of a trace that cannot be read is dropped: {lines:?}");
        assert_ne!(trace, &SAMPLED[3..35], "{headers}");
        assert_eq!(flags, "01", "{headers}");
    }
    let spans = scene.end().await.spans();
    assert_eq!(spans.len(), 12);
    assert!(
        spans.iter().filter(|span| span.name == "GET" && span.kind == 2).all(|span| span.parent_span_id.is_empty())
    );
}

#[tokio::test]
async fn a_request_that_is_not_sampled_is_forwarded_as_it_came() {
    let scene = Scene::new(|settings| settings.tracing.sample_ratio = 0.0).await;
    for headers in ["", "traceparent: 00-zz-b7ad6b7169203331-01\r\n", &format!("traceparent: {UNSAMPLED}\r\n")] {
        let sent = format!("{headers}{STATE}");
        assert_eq!(scene.forwarded(&sent).await.join("\r\n"), sent.trim_end(), "{headers}");
    }
    assert_eq!(scene.end().await.spans(), []);
}

#[tokio::test]
async fn clients_do_not_decide_where_the_ratio_does() {
    let scene = Scene::new(|settings| {
        (settings.tracing.parent_based, settings.tracing.sample_ratio) = (false, 0.0);
    });
    let scene = scene.await;
    assert_eq!(scene.forwarded(&format!("traceparent: {SAMPLED}\r\n")).await, [format!("traceparent: {SAMPLED}")]);
    assert_eq!(scene.end().await.spans(), []);
    let scene = Scene::new(|settings| settings.tracing.parent_based = false).await;
    let lines = scene.forwarded(&format!("traceparent: {UNSAMPLED}\r\n")).await;
    let [trace, _, flags] = parts(&lines);
    assert_eq!((trace.as_str(), flags.as_str()), (&UNSAMPLED[3..35], "01"));
    assert_eq!(scene.end().await.spans().len(), 3);
}

#[tokio::test]
async fn without_tracing_nothing_is_touched() {
    let scene = Scene::new(|settings| settings.tracing.endpoint = None).await;
    assert_eq!(scene.forwarded("").await, [""; 0]);
    for value in [SAMPLED, UNSAMPLED, "nonsense"] {
        let lines = scene.forwarded(&format!("traceparent: {value}\r\n{STATE}traceparent: {value}\r\n")).await;
        let mut sorted = lines.clone();
        sorted.sort();
        let parent = format!("traceparent: {value}");
        let state: Vec<_> = STATE.lines().map(ToOwned::to_owned).collect();
        assert_eq!(sorted, [parent.clone(), parent, state[0].clone(), state[1].clone()]);
    }
    assert_eq!(scene.end().await.spans(), []);
}

#[tokio::test]
async fn a_client_cannot_have_the_context_removed() {
    let scene = Scene::new(|_| ()).await;
    let lines = scene.forwarded("Connection: traceparent, tracestate\r\n").await;
    assert_eq!(parts(&lines)[2], "01");
    scene.end().await;
}

#[tokio::test]
async fn a_part_of_the_requests_is_sampled() {
    let scene = Scene::new(|settings| settings.tracing.sample_ratio = 0.25).await;
    let mut client = Client::connect(scene.running.address).await;
    let mut sampled = 0;
    for _ in 0..400 {
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        let head = client.answer().await.text();
        let parent = find(&head, "traceparent");
        assert!(parent.as_ref().is_none_or(|parent| parent.ends_with("-01")), "{parent:?}");
        sampled += usize::from(parent.is_some());
    }
    drop(client);
    let spans = scene.end().await.spans();
    assert_eq!(spans.len(), 3 * sampled, "what upstreams are told is what is exported");
    // Six standard deviations.
    assert!((48..=152).contains(&sampled), "{sampled}");
    let traces: std::collections::HashSet<_> = spans.iter().map(|span| span.trace_id.clone()).collect();
    let ids: std::collections::HashSet<_> = spans.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!((traces.len(), ids.len()), (sampled, spans.len()), "ids are used once");
}

#[tokio::test]
async fn upstreams_of_http2_get_the_context() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let echo = service_fn(async |request: http::Request<hyper::body::Incoming>| {
            assert_eq!(request.version(), Version::HTTP_2);
            let values = request.headers().get_all("traceparent").iter();
            let values: Vec<_> = values.map(|value| value.to_str().unwrap().to_owned()).collect();
            Ok::<_, std::convert::Infallible>(Response::new(Full::<bytes::Bytes>::from(values.join("\n"))))
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server.serve_connection(TokioIo::new(stream), echo).await
    });
    let collector = Collector::http().await;
    let mut settings = traced(config(&[address]), &collector);
    settings.upstreams[0].protocol = Protocol::Http2;
    let running = start(settings).await;
    let answer = get(running.address, "/", &format!("traceparent: {SAMPLED}\r\n")).await;
    running.done().await;
    let spans = collector.spans();
    assert_eq!(answer.text(), format!("00-{}-{}-01", hex(&spans[0].trace_id), hex(&spans[2].span_id)));
}
