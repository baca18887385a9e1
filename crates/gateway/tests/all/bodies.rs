//! Bodies and trailers in both directions, over HTTP/1.1.

use crate::support;

use std::time::Duration;

use support::client::{Client, find, get};
use support::upstream::{Upstream, ok};
use support::{config, gateway, start, streaming};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn bodies_of_known_and_unknown_length_go_both_ways() {
    let upstream = Upstream::answering(|request| {
        let framing = find(&request.head, "transfer-encoding").or(find(&request.head, "content-length")).unwrap();
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Framing: {framing}\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
            request.body.len(),
            request.text()
        )
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
    let answer = client.answer().await;
    assert_eq!((answer.text().as_str(), answer.header("x-framing").as_deref()), ("hello", Some("5")));
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhe\r\n").await;
    client.send("3;x=y\r\nllo\r\n0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.text().as_str(), answer.header("x-framing").as_deref()), ("hello", Some("chunked")));
    assert_eq!(upstream.connections(), 1);
    running.done().await;
}

#[tokio::test]
async fn trailers_go_both_ways_unless_they_could_be_taken_for_headers() {
    let upstream = Upstream::answering(|request| {
        let trailers = request.trailers.replace("\r\n", ";");
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{trailers}\r\n0\r\nChecksum: 7\r\nContent-Length: 3\r\n\r\n", trailers.len())
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    let body =
        "1\r\nx\r\n0\r\nDigest: 1\r\nX-Forwarded-For: 6.6.6.6\r\nAuthorization: x\r\nTransfer-Encoding: y\r\n\r\n";
    client
        .send(&format!("POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n{body}"))
        .await;
    let answer = client.answer().await;
    assert_eq!((answer.text().as_str(), answer.trailers.as_str()), ("digest: 1;", "checksum: 7\r\n"));
    // A client that does not say that it reads them gets none.
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.trailers, "");
    running.done().await;
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    let upstream = Upstream::answering(|request| match request.head.split(' ').nth(1) {
        Some("/204") => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        Some("/304") => "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_owned(),
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    for (request, status, length) in [("GET /204", 204, None), ("GET /304", 304, Some("9")), ("HEAD /", 200, Some("9"))]
    {
        client.send(&format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let head = client.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert_eq!(find(&head, "content-length").as_deref(), length, "{request}");
    }
    assert_eq!(upstream.connections(), 1);
    running.done().await;
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_is_complete() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\n\r\nto the end").await;
    })
    .await;
    let running = gateway(upstream.address).await;
    assert_eq!(get(running.address, "/", "").await.text(), "to the end");
    // One of HTTP/1.0 knows no chunks.
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    let text = String::from_utf8(client.rest().await).unwrap();
    assert!(text.ends_with("\r\n\r\nto the end") && find(&text, "transfer-encoding").is_none(), "{text}");
    running.done().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let upstream = Upstream::answering(|request| ok(request.head.split(' ').nth(1).unwrap())).await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    let requests: Vec<String> = (0..20).map(|i| format!("GET /{i} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.send(&requests.concat()).await;
    for i in 0..20 {
        assert_eq!(client.answer().await.text(), format!("/{i}"));
    }
    running.done().await;
}

#[tokio::test]
async fn large_bodies_arrive_whole() {
    const SIZE: usize = 8 << 20;
    let upstream = Upstream::new(|mut client, _| async move {
        let request = client.answer().await;
        assert!(request.body.iter().eq((0..251_u8).cycle().take(SIZE).collect::<Vec<_>>().iter()));
        client.send(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request.body.len())).await;
        client.stream.write_all(&request.body).await.unwrap();
    })
    .await;
    let running = gateway(upstream.address).await;
    let body: Vec<u8> = (0..251).cycle().take(SIZE).collect();
    let mut client = Client::connect(running.address).await;
    client.send(&format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n")).await;
    client.stream.write_all(&body).await.unwrap();
    assert!(client.answer().await.body == body);
    running.done().await;
}

#[tokio::test]
async fn both_directions_stream_at_the_same_time() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        for _ in 0..3 {
            let chunk = String::from_utf8(client.until(b"\r\nx\r\n").await).unwrap();
            client.send(&chunk).await;
        }
        client.until(b"0\r\n\r\n").await;
        client.send("0\r\n\r\n").await;
    })
    .await;
    let running = start(streaming(config(&[upstream.address]))).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n").await;
    client.head().await;
    for i in 0..3 {
        assert_eq!(client.until(b"1\r\nx\r\n").await, b"1\r\nx\r\n");
        if i < 2 {
            client.send("1\r\nx\r\n").await;
        }
    }
    client.send("0\r\n\r\n").await;
    client.until(b"0\r\n\r\n").await;
    running.done().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_upstream_back() {
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::new(move |mut client, _| {
        let told = told.clone();
        async move {
            client.head().await;
            client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            for count in 0..1000 {
                client.send(&chunk).await;
                let _ = told.send(count);
            }
            client.send("0\r\n\r\n").await;
        }
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    // Sockets take some megabytes; the gateway takes nearly nothing.
    let mut last = 0;
    while let Ok(Some(count)) = tokio::time::timeout(Duration::from_millis(500), hears.recv()).await {
        last = count;
    }
    assert!(last < 500, "the upstream has sent {last} pieces that nobody reads");
    assert_eq!(client.answer().await.body.len(), 1000 * 0x10000);
    running.done().await;
}

/// A response whose end is the end of its connection must not be taken for complete when the connection breaks.
#[tokio::test]
async fn a_response_that_ends_with_a_reset_is_broken_for_the_client_too() {
    let passed_on = std::sync::Arc::new(tokio::sync::Notify::new());
    let told = std::sync::Arc::clone(&passed_on);
    let upstream = Upstream::new(move |mut client, _| {
        let told = std::sync::Arc::clone(&told);
        async move {
            client.head().await;
            client.send("HTTP/1.1 200 OK\r\n\r\nhalf").await;
            // A reset takes along what is under way.
            told.notified().await;
            client.reset();
        }
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into());
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.until(b"half").await;
    passed_on.notify_one();
    assert!(!client.rest().await.ends_with(b"0\r\n\r\n"));
    let admin = running.gateway.admin_address().unwrap();
    let page = get(admin, "/metrics", "").await.text();
    let series = format!("evenkeel_upstream_failures_total{{kind=\"cut\",upstream=\"http://{}\"}} 1", upstream.address);
    assert!(page.contains(&series), "{page}");
    running.done().await;
}
