//! Requests and answers that move at the same time: while one of them does, the other may be silent.

use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_gateway::config::Protocol;
use http::{Request, Response, Version};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::{PATIENCE, config, start, streaming};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

type Body = BoxBody<Bytes, Infallible>;

/// No machine is so slow that nothing moves for so long, though something should at every `PACE`.
const STALL: Duration = Duration::from_secs(2);
const PACE: Duration = Duration::from_millis(100);
/// What a side says at its pace that says more than one thing: for more than twice the time.
const PIECES: usize = 45;

/// So many pieces of one byte at a pace; then nothing is said, and there is no end.
fn saying(pieces: usize) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut pace = tokio::time::interval(PACE);
        for _ in 0..pieces {
            pace.tick().await;
            if sender.send(Ok(Frame::data(Bytes::from_static(b"x")))).await.is_err() {
                return;
            }
        }
        sender.closed().await;
    });
    StreamBody::new(ReceiverStream::new(receiver)).boxed()
}

/// How many bytes of a body come until it is cut, which it has to be.
async fn heard(mut body: Incoming) -> usize {
    let mut count = 0;
    let listening = async {
        while let Some(Ok(frame)) = body.frame().await {
            count += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    assert!(tokio::time::timeout(4 * STALL + PATIENCE, listening).await.is_ok(), "it is never cut");
    count
}

/// Says as much as the path names, and tells how much it heard.
async fn upstream(version: Version, told: mpsc::UnboundedSender<usize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let told = told.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let (told, pieces) = (told.clone(), request.uri().path()[1..].parse().unwrap());
                tokio::spawn(async move { told.send(heard(request.into_body()).await) });
                std::future::ready(Ok::<_, Infallible>(Response::new(saying(pieces))))
            });
            if version == Version::HTTP_2 {
                let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
            } else {
                let served = hyper::server::conn::http1::Builder::new();
                tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
            }
        }
    });
    address
}

/// Says so much to somebody who is to say so much; how many bytes were heard of that.
async fn converse(address: SocketAddr, version: Version, (client, upstream): (usize, usize)) -> usize {
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let request = Request::post(format!("http://{address}/{upstream}")).header("host", "shop").body(saying(client));
    let response = if version == Version::HTTP_2 {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        let mut request = request.unwrap();
        request.headers_mut().remove("host");
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut request = request.unwrap();
        *request.uri_mut() = format!("/{upstream}").parse().unwrap();
        sender.send_request(request).await.unwrap()
    };
    assert_eq!(response.status(), 200);
    heard(response.into_body()).await
}

#[tokio::test]
async fn what_is_silent_while_the_other_direction_moves_has_not_stalled() {
    let mut all = Vec::new();
    for (upstream_version, protocol) in [(Version::HTTP_11, Protocol::Http1), (Version::HTTP_2, Protocol::Http2)] {
        for client_version in [Version::HTTP_11, Version::HTTP_2] {
            for said in [(1, PIECES), (PIECES, 1)] {
                all.push(tokio::spawn(async move {
                    let (told, mut hears) = mpsc::unbounded_channel();
                    let mut settings = streaming(config(&[upstream(upstream_version, told).await]));
                    settings.upstreams[0].protocol = protocol;
                    settings.timeouts.stall = STALL;
                    let running = start(settings).await;
                    let by_client = converse(running.address, client_version, said).await;
                    let by_upstream = hears.recv().await.unwrap();
                    let context = format!("{client_version:?} to {upstream_version:?}");
                    assert_eq!((by_upstream, by_client), said, "{context}");
                    running.done().await;
                }));
            }
        }
    }
    for one in all {
        one.await.unwrap();
    }
}

/// Each side says something only when it has heard the other.
#[tokio::test]
async fn a_conversation_does_not_wait_for_a_timer() {
    const ROUNDS: usize = 50;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let echo = service_fn(|request: Request<Incoming>| {
            std::future::ready(Ok::<_, Infallible>(Response::new(request.into_body())))
        });
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), echo)
            .await
    });
    let mut settings = streaming(config(&[address]));
    settings.upstreams[0].protocol = Protocol::Http2;
    let running = start(settings).await;
    let mut client = support::client::Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    client.head().await;
    let conversation = async {
        for _ in 0..ROUNDS {
            client.send("1\r\nx\r\n").await;
            client.until(b"1\r\nx\r\n").await;
        }
        client.send("0\r\n\r\n").await;
        client.until(b"0\r\n\r\n").await;
    };
    assert!(tokio::time::timeout(PATIENCE / 2, conversation).await.is_ok(), "it waits for something else");
    drop(client);
    running.done().await;
}
