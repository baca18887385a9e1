//! What happens when an upstream does not answer.

use crate::support;

use std::net::SocketAddr;
use std::time::Duration;

use support::client::{Client, get};
use support::upstream::{Upstream, answer_all, has_more, ok};
use support::{config, gateway, start};
use tokio::net::TcpListener;

/// Answers one request on its first connection, and closes it when the next one arrives. Answers all on later ones.
async fn fickle() -> Upstream {
    Upstream::new(|mut client, number| async move {
        if number > 0 {
            return answer_all(client, |request| ok(&request.text())).await;
        }
        client.answer().await;
        client.send(&ok("first")).await;
        has_more(&mut client).await;
    })
    .await
}

#[tokio::test]
async fn an_idempotent_request_is_sent_again_when_a_used_connection_closes() {
    let upstream = fickle().await;
    let running = gateway(upstream.address).await;
    assert_eq!(get(running.address, "/", "").await.text(), "first");
    assert_eq!(get(running.address, "/", "").await.status, 200);
    assert_eq!(upstream.connections(), 2);
    running.done().await;
}

#[tokio::test]
async fn other_requests_are_not_sent_again() {
    for request in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        // Its body has been read by the time the connection closes.
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
    ] {
        let upstream = fickle().await;
        let mut settings = config(&[upstream.address]);
        settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
        let running = start(settings).await;
        assert_eq!(get(running.address, "/", "").await.text(), "first");
        let mut client = Client::connect(running.address).await;
        client.send(request).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 502);
        assert!(answer.text().contains("the upstream closed the connection before it responded"), "{}", answer.text());
        assert_eq!(upstream.connections(), 1);
        let metrics = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
        assert!(metrics.contains("\nevenkeel_upstream_retries_total 0\n"), "{metrics}");
        running.done().await;
    }
}

#[tokio::test]
async fn a_new_connection_that_closes_is_not_tried_again() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
    })
    .await;
    let running = gateway(upstream.address).await;
    assert_eq!(get(running.address, "/", "").await.status, 502);
    assert_eq!(upstream.connections(), 1);
    running.done().await;
}

#[tokio::test]
async fn an_upstream_that_refuses_connections_is_a_502_that_names_no_address() {
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let running = gateway(refused).await;
    let answer = get(running.address, "/", "").await;
    assert_eq!((answer.status, answer.header("content-type").as_deref()), (502, Some("application/problem+json")));
    assert!(answer.text().contains("connecting to the upstream failed") && !answer.text().contains("127.0.0.1"));
    let answer = get(running.address, "/", "Content-Type: application/grpc\r\n").await;
    assert_eq!((answer.status, answer.header("grpc-status").as_deref()), (200, Some("14")));
    running.done().await;
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_in_time_is_a_504() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.response = Duration::from_millis(100);
    let running = start(settings).await;
    let answer = get(running.address, "/", "").await;
    assert_eq!(answer.status, 504);
    assert!(answer.text().contains("did not respond in time"), "{}", answer.text());
    let answer = get(running.address, "/", "Content-Type: application/grpc+proto\r\n").await;
    assert_eq!(answer.header("grpc-status").as_deref(), Some("4"));
    running.done().await;
}

#[tokio::test]
async fn a_request_has_a_time_for_all_of_it() {
    let upstream = Upstream::new(|mut client, _| async move {
        if client.head().await.starts_with("GET /half ") {
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
        }
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.total = Duration::from_millis(150);
    let running = start(settings).await;
    assert_eq!(get(running.address, "/", "").await.status, 504);
    // On a busy machine the time may be over before the first half is there.
    let half = async {
        let mut heard = Vec::new();
        while !heard.ends_with(b"half") {
            let mut client = Client::connect(running.address).await;
            client.send("GET /half HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
            heard = client.rest().await;
        }
    };
    tokio::time::timeout(support::PATIENCE, half).await.unwrap();
    running.done().await;
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_502() {
    for text in [
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let upstream = Upstream::answering(move |_| text.to_owned()).await;
        let running = gateway(upstream.address).await;
        let answer = get(running.address, "/", "").await;
        assert!(answer.status == 502 && answer.text().contains("malformed response"), "{text:?}: {answer:?}");
        running.done().await;
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    for body in [
        "Content-Length: 9\r\n\r\nhalf",
        "Transfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nx",
    ] {
        let upstream = Upstream::new(move |mut client, _| async move {
            client.head().await;
            client.send(&format!("HTTP/1.1 200 OK\r\n{body}")).await;
        })
        .await;
        let running = gateway(upstream.address).await;
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let text = String::from_utf8(client.rest().await).unwrap();
        assert!(text.contains("half") && !text.ends_with("0\r\n\r\n"), "{text:?}");
        running.done().await;
    }
}
