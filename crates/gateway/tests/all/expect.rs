//! `Expect: 100-continue`, and interim answers.

use crate::support;

use std::sync::{Arc, Mutex};

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

/// An upstream may answer before it has read the head, which is all that has been sent to it by then.
#[tokio::test]
async fn a_client_is_not_told_to_go_on_in_the_middle_of_an_answer() {
    const HEAD_BYTES: usize = 6 << 20;
    let (go_on, goes_on) = tokio::sync::oneshot::channel::<()>();
    let goes_on = Arc::new(Mutex::new(Some(goes_on)));
    let upstream = Upstream::new(move |mut client, _| {
        let goes_on = goes_on.lock().unwrap().take();
        async move {
            client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
            goes_on.unwrap().await.unwrap();
            client.exactly(HEAD_BYTES - 1024).await;
            client.head().await;
            client.send("4\r\nlast\r\n0\r\n\r\n").await;
        }
    })
    .await;
    // The body is passed on as it comes.
    let mut settings = support::streaming(support::config(&[upstream.address]));
    settings.limits.head_bytes = HEAD_BYTES;
    let running = support::start(settings).await;
    let mut client = Client::connect(running.address).await;
    let large = "x".repeat(HEAD_BYTES - 1024);
    client
        .send(&format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\nX: {large}\r\n\r\n"))
        .await;
    let begun = client.until(b"first\r\n").await;
    // Before the answer it may be told so: where the system takes all of so large a head, its body is next.
    let begun = begun.strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(&begun);
    assert!(begun.starts_with(b"HTTP/1.1 200 OK\r\n"), "{:?}", String::from_utf8_lossy(begun));
    go_on.send(()).unwrap();
    assert_eq!(String::from_utf8(client.until(b"0\r\n\r\n").await).unwrap(), "4\r\nlast\r\n0\r\n\r\n");
    drop(client);
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
