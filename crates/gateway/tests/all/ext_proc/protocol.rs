//! Streams that no Envoy opens (EP-6): each ends with a status of gRPC, and costs a bounded amount of memory and time.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use evenkeel_gateway::config::ShadowConfig;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::observe::report;
use super::{Deciding, deciding, one_level};
use crate::authority::Authority;

const PROCESS: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";

/// What came back: the messages, and the status in headers or trailers.
async fn call(address: SocketAddr, path: &str, body: Bytes) -> (Bytes, Option<String>) {
    call_on(TcpStream::connect(address).await.unwrap(), address, path, body).await
}

async fn call_on<S>(stream: S, address: SocketAddr, path: &str, body: Bytes) -> (Bytes, Option<String>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post(format!("http://{address}{path}")).header("content-type", "application/grpc");
    let response = sender.send_request(request.body(Full::new(body)).unwrap()).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/grpc".parse().unwrap())
    );
    let status = |headers: &HeaderMap| headers.get("grpc-status").map(|status| status.to_str().unwrap().to_owned());
    let in_head = status(response.headers());
    let collected = response.into_body().collect().await.unwrap();
    let status = in_head.or_else(|| collected.trailers().and_then(status));
    (collected.to_bytes(), status)
}

/// A message with a flag and its length.
fn framed(flag: u8, message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(flag);
    bytes.put_u32(u32::try_from(message.len()).unwrap());
    bytes.put_slice(message);
    bytes.freeze()
}

/// `ProcessingRequest { request_headers: HttpHeaders { headers } }`.
fn request_headers(headers: &[(&str, &str)]) -> Vec<u8> {
    let field = |number: u8, content: &[u8]| {
        let mut out = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).unwrap());
        out.extend_from_slice(content);
        out
    };
    let header = |(name, value): &(&str, &str)| {
        let content = [field(1, name.as_bytes()), field(3, value.as_bytes())].concat();
        field(1, &content)
    };
    let map: Vec<u8> = headers.iter().flat_map(header).collect();
    field(2, &field(1, &map))
}

#[tokio::test]
async fn what_is_not_the_protocol_ends_with_a_status() {
    let deciding = Deciding::start(deciding(1)).await;
    let get = [(":method", "GET"), (":path", "/"), (":authority", "shop.example")];
    let head = request_headers(&get);
    let long = "x".repeat(200_000);
    for (what, path, body, status) in [
        ("another method", "/envoy.service.ext_proc.v3.ExternalProcessor/Other", Bytes::new(), "12"),
        ("nothing", PROCESS, Bytes::new(), "0"),
        ("no protobuf", PROCESS, framed(0, &[0xff; 40]), "3"),
        ("a compressed message", PROCESS, framed(1, &head), "12"),
        ("no head first", PROCESS, framed(0, &[]), "3"),
        ("no method", PROCESS, framed(0, &request_headers(&get[1..])), "3"),
        ("observability without a shadow", PROCESS, framed(0, &[&*head, &[0x50, 1]].concat()), "0"),
        ("half of a message", PROCESS, framed(0, &head).slice(..20), "0"),
        ("a long message", PROCESS, framed(0, &request_headers(&[("x", &long)])), "8"),
        ("a whole request", PROCESS, framed(0, &head), "0"),
    ] {
        let (_, found) = call(deciding.address, path, body).await;
        assert_eq!(found.as_deref(), Some(status), "{what}");
        deciding.has(0, 0).await;
    }
    deciding.done().await;
}

/// Requests that Envoy asks about are in the shadow and in dumps, as all others.
#[tokio::test]
async fn sh_1_fr_1_requests_of_envoy_are_in_the_shadow_and_in_dumps() {
    let mut settings = one_level(1, 10);
    settings.shadow = Some(ShadowConfig::default());
    let deciding = Deciding::start(settings).await;
    let head = request_headers(&[(":method", "GET"), (":path", "/orders/7"), (":authority", "shop.example")]);
    for _ in 0..3 {
        assert_eq!(call(deciding.address, PROCESS, framed(0, &head)).await.1.as_deref(), Some("0"));
        deciding.has(0, 0).await;
    }
    let report = report(&deciding, 3).await;
    assert_eq!((report.totals.wait.real.samples, report.totals.wait.shadow.samples), (3, 3));
    let flight = deciding.gateway.flow().flight(Duration::from_secs(60), "a test").unwrap();
    assert_eq!(flight.records.len(), 3);
    assert!(flight.header.requests.iter().any(|request| request.path == "/orders/7"), "{:?}", flight.header.requests);
    deciding.done().await;
}

/// A path that cannot be interpreted gets the gateway's error, and not one of gRPC.
#[tokio::test]
async fn a_malformed_request_gets_a_response() {
    let deciding = Deciding::start(deciding(1)).await;
    let head = request_headers(&[(":method", "GET"), (":path", "/a/..;/b"), (":authority", "shop.example")]);
    let (messages, status) = call(deciding.address, PROCESS, framed(0, &head)).await;
    assert_eq!(status.as_deref(), Some("0"));
    let text = String::from_utf8_lossy(&messages);
    assert!(text.contains("application/problem+json") && text.contains("Bad Request"), "{text}");
    deciding.done().await;
}

/// A stream that never says anything ends by itself.
#[tokio::test]
async fn a_silent_stream_ends() {
    let mut settings = deciding(1);
    settings.timeouts.head = Duration::from_millis(100);
    let deciding = Deciding::start(settings).await;
    let stream = TcpStream::connect(deciding.address).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (_open, body) = tokio::sync::mpsc::channel::<Result<http_body::Frame<Bytes>, std::convert::Infallible>>(1);
    let body = http_body_util::StreamBody::new(tokio_stream::wrappers::ReceiverStream::new(body));
    let request = Request::post(format!("http://{}{PROCESS}", deciding.address)).body(body).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let trailers = response.into_body().collect().await.unwrap().trailers().cloned().unwrap();
    assert_eq!(trailers["grpc-status"], "4");
    deciding.done().await;
}

/// With TLS and `clientCa`, only an Envoy that shows a certificate of that authority is heard.
#[tokio::test]
async fn ep_6_only_a_trusted_envoy_may_ask() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    authority.sign("server", "evenkeel.example");
    authority.sign("envoy", "envoy.example");
    stranger.sign("other", "envoy.example");
    for end in ["pem", "key"] {
        std::fs::copy(stranger.path(&format!("other.{end}")), authority.path(&format!("other.{end}"))).unwrap();
    }
    let mut settings = deciding(1);
    settings.ext_proc.as_mut().unwrap().tls = Some(authority.listen());
    let deciding = Deciding::start(settings).await;
    let head = framed(0, &request_headers(&[(":method", "GET"), (":path", "/"), (":authority", "shop.example")]));
    let connect = async |shows| authority.connect_to(deciding.address, "evenkeel.example", shows, &["h2"]).await;
    let trusted = connect(Some("envoy")).await.unwrap();
    let (messages, status) = call_on(trusted, deciding.address, PROCESS, head.clone()).await;
    assert_eq!((messages.is_empty(), status.as_deref()), (false, Some("0")));
    // Under TLS 1.3 a client learns that it is refused when it reads.
    for shows in [Some("other"), None] {
        if let Ok(mut stream) = connect(shows).await {
            assert!(!matches!(stream.read(&mut [0; 9]).await, Ok(1..)), "{shows:?}");
        }
    }
    // Nor does anybody get through without TLS.
    let mut plain = TcpStream::connect(deciding.address).await.unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut told = Vec::new();
    let _ = plain.read_to_end(&mut told).await;
    // At most an alert of TLS.
    assert!(told.is_empty() || told[0] == 0x15, "{told:?}");
    deciding.done().await;
}
