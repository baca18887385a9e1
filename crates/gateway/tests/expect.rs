//! `Expect: 100-continue`, and interim answers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use support::client::{Client, find};
use support::gateway;
use support::upstream::{Upstream, ok};

#[tokio::test]
async fn a_client_is_told_to_go_on_when_its_body_is_wanted() {
    let upstream =
        Upstream::answering(|request| ok(&format!("{:?} {}", find(&request.head, "expect"), request.text()))).await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n").await;
        assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
        client.send("hello").await;
        assert_eq!(client.answer().await.text(), "None hello");
    }
    running.done().await;
}

#[tokio::test]
async fn a_client_that_is_refused_is_not_told_to_go_on() {
    let mut settings = support::config(&["127.0.0.1:1".parse().unwrap()]);
    settings.limits.body_bytes = 4;
    let running = support::start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("connection").as_deref()), (413, Some("close")));
    assert!(client.is_closed().await);
    running.done().await;
}

#[tokio::test]
async fn interim_answers_are_passed_on() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n").await;
        client.send("Connection: x-hop\r\nX-Hop: 1\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        client.send(&ok("final")).await;
    })
    .await;
    let running = gateway(upstream.address).await;
    // HTTP/1.0 knows none.
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "final");
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.head().await, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
    assert_eq!(client.answer().await.text(), "final");
    running.done().await;
}

#[tokio::test]
async fn a_body_that_is_larger_than_allowed_is_cut() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = support::config(&[upstream.address]);
    settings.limits.body_bytes = 4;
    let running = support::start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\nabc\r\n").await;
    assert_eq!(client.answer().await.status, 413);
    running.done().await;
}
