//! HTTP/2 on either side.

use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use evenkeel_gateway::config::Protocol;
use http::{HeaderMap, Request, Response, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::client::find;
use support::upstream::{Upstream, ok};
use support::{config, gateway, start};
use tokio::net::{TcpListener, TcpStream};

type Body = BoxBody<Bytes, Infallible>;

/// Sends everything back: the head in headers, the body and the trailers as they are.
async fn echo_http2() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service_fn(|request: Request<Incoming>| async move {
                let (parts, body) = request.into_parts();
                let text = format!("{} {} {:?}", parts.method, parts.uri, parts.version);
                let mut response = Response::new(body);
                *response.headers_mut() = parts.headers;
                response.headers_mut().insert("x-seen", text.parse().unwrap());
                Ok::<_, Infallible>(response)
            });
            let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

async fn connect(address: SocketAddr) -> SendRequest<Body> {
    connect_with_window(address, 65_535).await
}

/// A client that has room for so many bytes of an answer before it has read any.
async fn connect_with_window(address: SocketAddr, window: u32) -> SendRequest<Body> {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = client.initial_stream_window_size(window).handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn full(text: &'static str) -> Body {
    Full::new(Bytes::from_static(text.as_bytes())).boxed()
}

fn with_trailers(pieces: usize) -> Body {
    let mut trailers = HeaderMap::new();
    trailers.insert("checksum", "7".parse().unwrap());
    let data = (0..pieces).map(|_| Ok(Frame::data(Bytes::from_static(&[b'x'; 1000]))));
    let frames: Vec<Result<_, Infallible>> = data.chain([Ok(Frame::trailers(trailers))]).collect();
    BodyExt::boxed(StreamBody::new(tokio_stream::iter(frames)))
}

fn request(method: &str, address: SocketAddr, body: Body) -> Request<Body> {
    Request::builder().method(method).uri(format!("http://{address}/a?b")).body(body).unwrap()
}

#[tokio::test]
async fn a_client_of_http2_reaches_an_upstream_of_http1() {
    let upstream = Upstream::answering(|request| {
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n{:x}\r\n{}\r\n0\r\nChecksum: {}\r\n\r\n",
            request.head.len(),
            request.head,
            find(&request.trailers, "checksum").unwrap_or_default()
        )
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut client = connect(running.address).await;
    let response = client.send_request(request("POST", running.address, with_trailers(3))).await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
    assert!(!response.headers().contains_key("connection"));
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["checksum"], "7");
    let seen = String::from_utf8(collected.to_bytes().to_vec()).unwrap();
    assert!(seen.starts_with("POST /a?b HTTP/1.1\r\n"), "{seen}");
    assert_eq!(find(&seen, "host"), Some(running.address.to_string()));
    assert_eq!(find(&seen, "via").as_deref(), Some("2.0 evenkeel"));
    running.done().await;
}

#[tokio::test]
async fn a_client_of_http1_reaches_an_upstream_of_http2() {
    let mut settings = config(&[echo_http2().await]);
    settings.upstreams[0].protocol = Protocol::Http2;
    let running = start(settings).await;
    let mut client = support::client::Client::connect(running.address).await;
    client
        .send("POST /a?b HTTP/1.1\r\nHost: shop\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nChecksum: 7\r\n\r\n")
        .await;
    let answer = client.answer().await;
    assert_eq!(answer.header("x-seen").as_deref(), Some("POST http://shop/a?b HTTP/2.0"));
    assert_eq!((answer.text().as_str(), answer.trailers.as_str()), ("ab", "checksum: 7\r\n"));
    running.done().await;
}

#[tokio::test]
async fn many_streams_run_side_by_side() {
    let mut settings = config(&[echo_http2().await]);
    settings.upstreams[0].protocol = Protocol::Http2;
    let running = start(settings).await;
    let client = connect(running.address).await;
    let mut all = Vec::new();
    for _ in 0..100 {
        let mut client = client.clone();
        let request = request("POST", running.address, with_trailers(10));
        all.push(tokio::spawn(async move {
            let collected = client.send_request(request).await.unwrap().into_body().collect().await.unwrap();
            assert_eq!(collected.trailers().unwrap()["checksum"], "7");
            assert_eq!(collected.to_bytes().len(), 10_000);
        }));
    }
    for one in all {
        one.await.unwrap();
    }
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn two_hosts_that_differ_are_refused() {
    let upstream = Upstream::answering(|_| ok("in")).await;
    let running = gateway(upstream.address).await;
    let mut client = connect(running.address).await;
    for (host, status) in [("other", 400), (&*running.address.to_string(), 200)] {
        let mut request = request("GET", running.address, full(""));
        request.headers_mut().insert("host", host.parse().unwrap());
        assert_eq!(client.send_request(request).await.unwrap().status(), status, "{host}");
    }
    running.done().await;
}

#[tokio::test]
async fn a_client_that_resets_its_stream_takes_its_request_along() {
    let (upstream, mut told) = Upstream::telling().await;
    let running = gateway(upstream.address).await;
    let mut client = connect(running.address).await;
    let waiting = tokio::spawn(client.send_request(request("GET", running.address, full(""))));
    assert_eq!(told.recv().await, Some("begun"));
    waiting.abort();
    assert_eq!(told.recv().await, Some("cut"));
    drop(client);
    running.done().await;
}

/// An upstream whose answers have no end that anybody would live to see.
async fn endless() -> Upstream {
    use tokio::io::AsyncWriteExt;
    Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").await;
        while client.stream.write_all(&[b'x'; 16384]).await.is_ok() {}
    })
    .await
}

#[tokio::test]
async fn a_stream_that_nobody_reads_is_cut() {
    let upstream = endless().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.stall = std::time::Duration::from_millis(150);
    let running = start(settings).await;
    for window in [65_535, 0] {
        let mut client = connect_with_window(running.address, window).await;
        let unread = client.send_request(request("GET", running.address, full(""))).await.unwrap();
        running.no_seat_is_taken().await;
        drop(unread);
    }
    running.done().await;
}

/// Neither a client that reads slowly nor one that does not read at all keeps its seat for longer than a request may take.
#[tokio::test]
async fn a_request_has_a_time_for_all_of_it() {
    let upstream = endless().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.total = std::time::Duration::from_millis(300);
    settings.timeouts.response = settings.timeouts.total;
    let running = start(settings).await;
    for window in [65_535, 0] {
        let mut client = connect_with_window(running.address, window).await;
        let unread = client.send_request(request("GET", running.address, full(""))).await.unwrap();
        running.no_seat_is_taken().await;
        drop(unread);
    }
    let mut client = connect(running.address).await;
    let mut body = client.send_request(request("GET", running.address, full(""))).await.unwrap().into_body();
    let reading = async {
        while let Some(Ok(_)) = body.frame().await {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(support::PATIENCE, reading).await.is_ok(), "it takes as long as the client likes");
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn a_request_that_is_not_answered_in_its_time_is_told_so() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.total = std::time::Duration::from_millis(150);
    let running = start(settings).await;
    let mut client = connect(running.address).await;
    let response = client.send_request(request("GET", running.address, full(""))).await.unwrap();
    assert_eq!(response.status(), 504);
    let text = response.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&text).contains("took too long"), "{text:?}");
    drop(client);
    running.done().await;
}
