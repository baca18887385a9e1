//! What hosts a service of our own, over HTTP/2.

use crate::authority;
use crate::support;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_gateway::config::{IdentityConfig, ListenConfig};
use evenkeel_gateway::host::{Host, HostLimits};
use evenkeel_gateway::identity::Identification;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::PATIENCE;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use authority::Authority;

#[tokio::test]
async fn a_stream_that_nobody_reads_is_cut() {
    let authority = Authority::new();
    authority.sign("server", "host.test");
    let listen = ListenConfig { address: "127.0.0.1:0".parse().unwrap(), tls: Some(authority.listen()) };
    let identification = Identification::open(&IdentityConfig::default()).unwrap();
    let limits = HostLimits { stall: Duration::from_millis(150), ..HostLimits::default() };
    let host = Host::bind(&listen, identification, limits).await.unwrap();
    let address = host.address();
    // Each answer has no end, and keeps a sender for as long as it is there.
    let (kept, mut all_gone) = mpsc::channel::<()>(1);
    let service = tower::service_fn(move |_: Request<Incoming>| {
        let kept = kept.clone();
        let parts = std::iter::repeat_with(move || {
            let _ = &kept;
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b'x'; 1024])))
        });
        std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(tokio_stream::iter(parts)))))
    });
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(host.serve(move |_| service.clone(), stopped));

    let mut unread = Vec::new();
    for window in [65_535, 0] {
        let stream = authority.connect_to(address, "host.test", None, &["h2"]).await.unwrap();
        let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        client.initial_stream_window_size(window);
        let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(format!("https://{address}/")).body(Empty::<Bytes>::new()).unwrap();
        unread.push((sender.send_request(request).await.unwrap(), sender));
    }
    // The service goes with the host, and has a sender too.
    stop.send(true).unwrap();
    timeout(PATIENCE, serving).await.expect("connections end when their streams were cut").unwrap();
    assert_eq!(timeout(PATIENCE, all_gone.recv()).await.expect("nobody keeps what is not read"), None);
    drop(unread);
}

#[tokio::test]
async fn api_3_an_answer_to_head_has_no_body_in_http2() {
    let authority = Authority::new();
    authority.sign("server", "host.test");
    let listen = ListenConfig { address: "127.0.0.1:0".parse().unwrap(), tls: Some(authority.listen()) };
    let identification = Identification::open(&IdentityConfig::default()).unwrap();
    let host = Host::bind(&listen, identification, HostLimits::default()).await.unwrap();
    let address = host.address();
    let service = tower::service_fn(|_: Request<Incoming>| {
        let mut response = Response::new(Full::new(Bytes::from_static(b"why not")));
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(host.serve(move |_| service, stopped));
    let stream = authority.connect_to(address, "host.test", None, &["h2"]).await.unwrap();
    let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for (method, expected) in [(Method::HEAD, ""), (Method::GET, "why not"), (Method::HEAD, "")] {
        let request = Request::builder().method(method).uri(format!("https://{address}/"));
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = timeout(PATIENCE, sender.send_request(request)).await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[CONTENT_LENGTH], "7");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), expected);
    }
}
