//! What spans say of requests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use evenkeel_gateway::Config;
use evenkeel_gateway::config::{OtlpProtocol, WhenClientLeaves};
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::json;
use tokio::net::TcpStream;

use super::collector::Collector;
use super::{attribute, hex, of, steady, traced};
use crate::support::client::{Client, find, get};
use crate::support::upstream::{Upstream, ok};
use crate::support::{ONE_LEVEL, config, eventually, start, start_with};

const INTERNAL: i32 = SpanKind::Internal as i32;
const SERVER: i32 = SpanKind::Server as i32;
const CLIENT: i32 = SpanKind::Client as i32;

/// One level in which one request waits, with a queue and a flow for each user.
fn narrow(mut settings: Config) -> (Config, String) {
    settings.concurrency = Some(1.into());
    settings.timeouts.drain = Duration::from_millis(100);
    settings.timeouts.response = Duration::from_millis(500);
    let queues = "{queues: 8, handSize: 1, queueLengthLimit: 1}";
    let text = ONE_LEVEL.replace("{queues: 1, handSize: 1, queueLengthLimit: 10000}", queues);
    let by_user = "  matchingPrecedence: 2\n  distinguisherMethod: {type: ByUser}\n";
    (settings, text.replace("  matchingPrecedence: 2\n", by_user))
}

fn nests_in(inner: &Span, outer: &Span) {
    assert_eq!((&inner.trace_id, &inner.parent_span_id), (&outer.trace_id, &outer.span_id));
    assert!(outer.start_time_unix_nano <= inner.start_time_unix_nano, "{inner:#?}\n{outer:#?}");
    assert!(inner.start_time_unix_nano <= inner.end_time_unix_nano, "{inner:#?}");
    assert!(inner.end_time_unix_nano <= outer.end_time_unix_nano, "{inner:#?}\n{outer:#?}");
}

fn is_error(span: &Span) -> bool {
    span.status.as_ref().is_some_and(|status| status.code == StatusCode::Error as i32)
}

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

#[tokio::test]
async fn a_request_has_a_span_and_in_it_its_wait_and_its_call() {
    let upstream = Upstream::echo().await;
    let collector = Collector::grpc(Vec::new(), None).await;
    let mut settings = traced(config(&[upstream.address]), &collector);
    settings.tracing.protocol = OtlpProtocol::Grpc;
    settings.tracing.service_name = "shop-gateway".to_owned();
    settings.tracing.resource_attributes.insert("deployment.environment.name".to_owned(), "test".to_owned());
    let route = json!({"path": "/orders/{name}", "resource": "orders", "seats": 3});
    settings.requests.routes.push(serde_json::from_value(route).unwrap());
    let began = now();
    let running = start_with(settings, ONE_LEVEL).await;
    let answer = get(running.address, "/orders/7?token=secret", "User-Agent: test/1\r\nX-Request-Id: mine-1\r\n").await;
    running.done().await;
    let [message] = &collector.messages()[..] else { panic!("one message") };
    let [resource] = &message.resource_spans[..] else { panic!("one resource") };
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    assert_eq!(attribute(attributes, "service.name").as_deref(), Some("shop-gateway"));
    assert_eq!(attribute(attributes, "deployment.environment.name").as_deref(), Some("test"));
    assert_eq!(resource.scope_spans[0].scope.as_ref().unwrap().name, "evenkeel");

    let (server, wait, call) =
        (collector.span("GET /orders/{name}"), collector.span("wait for seat"), collector.span("GET"));
    assert_eq!(collector.spans().len(), 3);
    assert_eq!([server.kind, wait.kind, call.kind], [SERVER, INTERNAL, CLIENT]);
    assert!(server.parent_span_id.is_empty() && server.trace_id.len() == 16 && server.span_id.len() == 8);
    nests_in(&wait, &server);
    nests_in(&call, &server);
    assert!(wait.end_time_unix_nano <= call.start_time_unix_nano);
    let day = 86_400 * 1_000_000_000;
    assert!(server.start_time_unix_nano > began - day && server.end_time_unix_nano < now() + day, "it is today");
    assert!([&server, &wait, &call].into_iter().all(|span| !is_error(span) && span.flags & 0x3ff == 0x101));
    assert_eq!(
        steady(&server),
        [
            "evenkeel.flow_schema=everybody",
            "evenkeel.priority_level=everybody",
            "http.request.method=GET",
            "http.response.status_code=200",
            "http.route=/orders/{name}",
            "network.protocol.version=1.1",
            "server.address=shop.example",
            "url.path=/orders/7",
            "url.scheme=http",
            "user_agent.original=test/1",
        ]
    );
    assert_eq!(of(&server, "evenkeel.request_id").as_deref(), Some("mine-1"));
    assert_eq!(of(&server, "client.address").as_deref(), Some("127.0.0.1"));
    assert_eq!(
        steady(&wait),
        ["evenkeel.flow_schema=everybody", "evenkeel.priority_level=everybody", "evenkeel.queue=0", "evenkeel.seats=3"]
    );
    assert_eq!(steady(&call), ["http.request.method=GET", "http.response.status_code=200", "server.address=127.0.0.1"]);
    assert_eq!(of(&call, "url.full"), Some(format!("http://{}/orders/7", upstream.address)));
    assert_eq!(of(&call, "server.port"), Some(upstream.address.port().to_string()));
    // The upstream continues the trace at the span of the call.
    let expected = format!("00-{}-{}-01", hex(&server.trace_id), hex(&call.span_id));
    assert_eq!(find(&answer.text(), "traceparent"), Some(expected));
}

/// The attributes of `OpenTelemetry`'s conventions for generative AI.
#[tokio::test]
async fn lm_8_requests_to_language_models_say_the_operation_the_model_and_its_tokens() {
    const RESPONSE: &str = r#"{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":50}}"#;
    let length = RESPONSE.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}");
    let upstream = Upstream::answering(move |_| format!("{head}\r\n\r\n{RESPONSE}")).await;
    let collector = Collector::http().await;
    let settings = format!(
        "preset: llm\nlisten: [{{address: 127.0.0.1:0}}]\nupstreams: [{{url: http://{}}}]\nworkers: 1\nconcurrency: 4\n\
         admin: {{address: null}}",
        upstream.address
    );
    let settings = Config::parse("evenkeel.yaml", &settings).unwrap();
    let running = start(traced(settings, &collector)).await;
    for (path, body) in [
        ("/v1/chat/completions", r#"{"model":"org/Big-1","messages":[]}"#),
        ("/v1/completions", "no JSON"),
        ("/v1/embeddings", r#"{"model":"org/Big-1","input":"x"}"#),
        ("/v1/messages", r#"{"model":"org/Big-1","messages":[]}"#),
        ("/api/generate", r#"{"model":"org/Big-1","prompt":"x"}"#),
        ("/files", r#"{"model":"org/Big-1"}"#),
    ] {
        let mut client = Client::connect(running.address).await;
        let head = format!("POST {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {}", body.len());
        client.send(&format!("{head}\r\n\r\n{body}")).await;
        assert_eq!(client.answer().await.status, 200);
    }
    running.done().await;
    let spans: Vec<Span> = collector.spans().into_iter().filter(|span| span.kind == SERVER).collect();
    let said = |path: &str| {
        let span = spans.iter().find(|span| of(span, "url.path").as_deref() == Some(path)).unwrap();
        ["gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"].map(|key| of(span, key))
    };
    let operation = |path: &str| {
        let span = spans.iter().find(|span| of(span, "url.path").as_deref() == Some(path)).unwrap();
        ["gen_ai.operation.name", "gen_ai.provider.name"].map(|key| of(span, key))
    };
    let (model, prompt, output) = (Some("org/Big-1".to_owned()), Some("30".to_owned()), Some("50".to_owned()));
    assert_eq!(said("/v1/chat/completions"), [model, prompt.clone(), output.clone()]);
    assert_eq!(said("/v1/completions"), [None, prompt, output]);
    assert_eq!(said("/files"), [None, None, None], "its tokens are not counted");
    for (path, name, provider) in [
        ("/v1/chat/completions", "chat", "openai"),
        ("/v1/completions", "text_completion", "openai"),
        ("/v1/embeddings", "embeddings", "openai"),
        ("/v1/messages", "chat", "anthropic"),
        ("/api/generate", "text_completion", "ollama"),
    ] {
        assert_eq!(operation(path), [name, provider].map(|text| Some(text.to_owned())), "{path}");
    }
    assert_eq!(operation("/files"), [None, None]);
}

#[tokio::test]
async fn requests_of_http2_are_traced_alike() {
    let (upstream, collector) = (Upstream::answering(|_| ok("hello")).await, Collector::http().await);
    let running = start(traced(config(&[upstream.address]), &collector)).await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder().method("POST").uri(format!("http://{}/p?q=1", running.address));
    let request = request.version(Version::HTTP_2).body(Full::new(Bytes::from_static(b"four"))).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    drop(sender);
    running.done().await;
    let spans = collector.spans();
    let kinds: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.kind)).collect();
    assert_eq!(kinds, [("POST", SERVER), ("wait for seat", INTERNAL), ("POST", CLIENT)]);
    assert_eq!(of(&spans[0], "network.protocol.version").as_deref(), Some("2"));
    assert_eq!(of(&spans[0], "server.address").as_deref(), Some("127.0.0.1"));
    assert_eq!(of(&spans[0], "url.path").as_deref(), Some("/p"));
    nests_in(&spans[1], &spans[0]);
    nests_in(&spans[2], &spans[0]);
}

#[tokio::test]
async fn a_rejected_request_and_those_whose_clients_left_say_so() {
    let ((upstream, mut told), collector) = (Upstream::telling().await, Collector::http().await);
    let (settings, objects) = narrow(traced(config(&[upstream.address]), &collector));
    let running = start_with(settings, &objects).await;
    let flow = running.gateway.flow().clone();
    let mut first = Client::connect(running.address).await;
    first.send("GET /first HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    assert_eq!(told.recv().await, Some("begun"));
    let mut second = Client::connect(running.address).await;
    second.send("GET /second HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    eventually("a request waits", || flow.status().iter().any(|level| level.waiting == 1)).await;
    assert_eq!(get(running.address, "/third", "").await.status, 429);
    second.reset();
    eventually("no request waits", || flow.status().iter().all(|level| level.waiting == 0)).await;
    first.reset();
    running.no_seat_is_taken().await;
    running.gateway.drain().await;
    let spans = collector.spans();
    // The spans of the request with this path, by kind.
    let with = |path: &str, kind: i32| {
        let server = spans.iter().find(|span| of(span, "url.path").as_deref() == Some(path)).unwrap();
        spans.iter().find(|span| span.trace_id == server.trace_id && span.kind == kind)
    };
    let text = |span: Option<&Span>, key: &str| of(span.unwrap(), key);

    let (server, wait) = (with("/third", SERVER), with("/third", INTERNAL));
    assert_eq!(text(server, "http.response.status_code").as_deref(), Some("429"));
    assert_eq!(text(server, "evenkeel.rejected").as_deref(), Some("queue-full"));
    assert!(!is_error(server.unwrap()), "by the conventions a 4xx is no error of the server");
    assert_eq!(text(wait, "evenkeel.rejected").as_deref(), Some("queue-full"));
    assert_eq!(text(wait, "error.type").as_deref(), Some("queue-full"));
    assert!(text(wait, "evenkeel.queue").unwrap().parse::<u32>().unwrap() < 8);
    assert!(is_error(wait.unwrap()));
    assert_eq!(with("/third", CLIENT), None, "no upstream got it");

    let (server, wait) = (with("/second", SERVER), with("/second", INTERNAL));
    assert_eq!(text(server, "http.response.status_code"), None);
    assert_eq!(text(server, "error.type").as_deref(), Some("client_disconnected"));
    assert_eq!(text(wait, "error.type").as_deref(), Some("client_disconnected"));
    assert_eq!(text(wait, "evenkeel.priority_level").as_deref(), Some("everybody"));
    assert_eq!(text(wait, "evenkeel.flow").as_deref(), Some("address:127.0.0.1"));
    nests_in(wait.unwrap(), server.unwrap());
    assert_eq!(with("/second", CLIENT), None, "it has waited until its client left");

    let (server, wait, call) = (with("/first", SERVER), with("/first", INTERNAL), with("/first", CLIENT));
    assert_eq!(text(server, "error.type").as_deref(), Some("client_disconnected"));
    assert!(is_error(server.unwrap()) && !is_error(wait.unwrap()) && is_error(call.unwrap()));
    nests_in(call.unwrap(), server.unwrap());
}

#[tokio::test]
async fn errors_of_upstreams_are_errors() {
    let upstream = Upstream::answering(|request| {
        let status = if request.head.contains("/missing") { "404 Not Found" } else { "503 Service Unavailable" };
        format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")
    });
    let (upstream, collector) = (upstream.await, Collector::http().await);
    let running = start(traced(config(&[upstream.address]), &collector)).await;
    for (path, status) in [("/missing", 404), ("/broken", 503)] {
        assert_eq!(get(running.address, path, "").await.status, status);
    }
    running.done().await;
    let found: Vec<_> = (collector.spans().iter())
        .filter(|span| span.kind != INTERNAL)
        .map(|span| (span.kind, is_error(span), of(span, "error.type").unwrap_or_default()))
        .collect();
    // A client that asks for something that does not exist is no error of the server, but the call has failed.
    let expected = [(SERVER, false, ""), (CLIENT, true, "404"), (SERVER, true, "503"), (CLIENT, true, "503")];
    assert_eq!(found, expected.map(|(kind, is_error, error)| (kind, is_error, error.to_owned())));
}

#[tokio::test]
async fn a_response_that_is_cut_off_is_an_error() {
    for (does_close, reason) in [(true, "cut"), (false, "timeout")] {
        let upstream = Upstream::new(move |mut client, _| async move {
            client.head().await;
            client.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab").await;
            if !does_close {
                client.rest().await;
            }
        });
        let (upstream, collector) = (upstream.await, Collector::http().await);
        let mut settings = traced(config(&[upstream.address]), &collector);
        settings.requests.when_client_leaves = Some(WhenClientLeaves::Cancel);
        settings.timeouts.total = Duration::from_secs(if does_close { 60 } else { 1 });
        let running = start(settings).await;
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        assert!(client.rest().await.ends_with(b"ab"));
        running.done().await;
        for span in collector.spans().iter().filter(|span| span.kind != INTERNAL) {
            assert_eq!(of(span, "http.response.status_code").as_deref(), Some("200"));
            assert_eq!((is_error(span), of(span, "error.type").as_deref()), (true, Some(reason)), "{span:#?}");
        }
    }
}

#[tokio::test]
async fn a_request_whose_time_is_over_while_it_waits_says_so() {
    let ((upstream, mut told), collector) = (Upstream::telling().await, Collector::http().await);
    let (mut settings, objects) = narrow(traced(config(&[upstream.address]), &collector));
    settings.timeouts.response = Duration::from_secs(60);
    settings.timeouts.total = Duration::from_millis(300);
    let running = start_with(settings, &objects).await;
    let mut first = Client::connect(running.address).await;
    first.send("GET /first HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    assert_eq!(told.recv().await, Some("begun"));
    assert_eq!(get(running.address, "/second", "").await.status, 504);
    running.gateway.drain().await;
    let spans = collector.spans();
    let second = spans.iter().find(|span| of(span, "url.path").as_deref() == Some("/second")).unwrap();
    let wait = spans.iter().find(|span| span.trace_id == second.trace_id && span.kind == INTERNAL).unwrap();
    assert_eq!(of(wait, "error.type").as_deref(), Some("timeout"));
    assert_eq!(of(second, "error.type").as_deref(), Some("504"));
}

#[tokio::test]
async fn addresses_and_urls_are_those_of_who_took_part() {
    let (upstream, collector) = (Upstream::echo().await, Collector::http().await);
    let mut settings = traced(config(&[upstream.address]), &collector);
    let behind_proxy = json!({"address": {"trustedProxies": ["127.0.0.0/8"]}});
    settings.identity.sources = vec![serde_json::from_value(behind_proxy).unwrap()];
    let running = start(settings).await;
    get(running.address, "/x/../orders/./7", "X-Forwarded-For: 203.0.113.7\r\n").await;
    running.done().await;
    let spans = collector.spans();
    let with = |kind: i32| spans.iter().find(|span| span.kind == kind).unwrap();
    assert_eq!(of(with(SERVER), "client.address").as_deref(), Some("203.0.113.7"));
    assert_eq!(of(with(SERVER), "network.peer.address").as_deref(), Some("127.0.0.1"));
    assert_eq!(of(with(SERVER), "url.path").as_deref(), Some("/x/../orders/./7"));
    assert_eq!(of(with(CLIENT), "url.full"), Some(format!("http://{}/orders/7", upstream.address)));
    assert_eq!(of(with(CLIENT), "server.port"), Some(upstream.address.port().to_string()));
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_has_no_span() {
    let refused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let collector = Collector::http().await;
    let running = start(traced(config(&[refused]), &collector)).await;
    let status = get(running.address, "/", "").await.status;
    running.done().await;
    let server = collector.span("GET");
    assert_eq!(of(&server, "http.response.status_code"), Some(status.to_string()));
    assert!(is_error(&server) && collector.spans().len() == 2, "{:#?}", collector.spans());
}

#[tokio::test]
async fn a_client_cannot_make_spans_large_or_give_them_names() {
    let (upstream, collector) = (Upstream::answering(|_| ok("")).await, Collector::http().await);
    let running = start(traced(config(&[upstream.address]), &collector)).await;
    let (path, agent) = (format!("/{}", "x".repeat(5000)), "é".repeat(1000));
    let mut client = Client::connect(running.address).await;
    let head = format!("BREW {path} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: {agent}\r\n\r\n");
    client.send(&head).await;
    assert_eq!(client.answer().await.status, 200);
    drop(client);
    running.done().await;
    let spans = collector.spans();
    assert_eq!(spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["HTTP", "wait for seat", "HTTP"]);
    assert_eq!(of(&spans[0], "http.request.method").as_deref(), Some("_OTHER"));
    assert_eq!(of(&spans[0], "http.request.method_original").as_deref(), Some("BREW"));
    assert_eq!(of(&spans[0], "url.path"), Some(path[..1024].to_owned()));
    assert_eq!(of(&spans[0], "user_agent.original"), None, "it is no text of ASCII");
    let size: usize = collector.messages().iter().map(prost::Message::encoded_len).sum();
    assert!(size < 6000, "{size}");
}
