//! Requests that two readers could understand differently never reach an upstream.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use support::client::Client;
use support::gateway;
use support::upstream::Upstream;

#[tokio::test]
async fn ambiguous_requests_are_refused_and_their_connections_closed() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    for text in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4,5\r\n\r\nabcde",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n Content-Length: 4\r\n\r\nabcd",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let mut client = Client::connect(running.address).await;
        client.send(text).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 400, "{text:?}: {answer:?}");
        assert_eq!(answer.header("connection").as_deref(), Some("close"), "{text:?}");
        assert!(client.is_closed().await, "{text:?}");
    }
    assert_eq!(upstream.connections(), 0);
    running.done().await;
}

#[tokio::test]
async fn a_malformed_chunk_is_refused_and_the_connection_closed() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let running = gateway(upstream.address).await;
    for chunks in ["x\r\n", "1\r\nab\r\n", "1\nab", "ffffffffffffffffff\r\n"] {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("connection").as_deref()), (400, Some("close")), "{chunks:?}");
        assert!(client.is_closed().await, "{chunks:?}");
    }
    running.done().await;
}

#[tokio::test]
async fn connect_is_refused() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    client.send("CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 405);
    assert_eq!(upstream.connections(), 0);
    running.done().await;
}

#[tokio::test]
async fn heads_have_limits() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let many = "a: b\r\n".repeat(200);
    let long = format!("a: {}\r\n", "b".repeat(70_000));
    for headers in [many, long] {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("GET / HTTP/1.1\r\nHost: a\r\n{headers}\r\n")).await;
        assert_eq!(client.answer().await.status, 431);
        assert!(client.is_closed().await);
    }
    running.done().await;
}
