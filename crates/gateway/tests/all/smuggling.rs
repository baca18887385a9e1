//! Requests that two readers could understand differently never reach an upstream.

use crate::support;

use evenkeel_gateway::config::AnonymousRequests;
use support::client::{Client, find};
use support::upstream::{Upstream, ok};
use support::{config, gateway, start};

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
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "POST / HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\x7f\r\n\r\n",
        "GET ?x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET evil HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\"b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\\b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
        "GET /\r\n\r\n",
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
    for chunks in [
        "x\r\n",
        "1\r\nab\r\n",
        "1\nab",
        "ffffffffffffffffff\r\n",
        "1;a\n\r\nb\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\n\n",
        "0\r\nX : y\r\n\r\n",
    ] {
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

#[tokio::test]
async fn what_follows_a_request_that_is_refused_is_no_request() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    settings.limits.body_bytes = 8;
    settings.identity.sources.clear();
    settings.identity.anonymous = AnonymousRequests::Deny;
    let running = start(settings).await;
    let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
    for (first, status) in [
        (format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", hidden.len()), 401),
        (format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n", hidden.len()), 401),
        (format!("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: {}\r\n\r\n", hidden.len()), 405),
    ] {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("{first}{hidden}")).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("connection").as_deref()), (status, Some("close")), "{first}");
        assert!(client.is_closed().await, "{first}");
    }
    // One without a body is complete, and the next one is a request of its own.
    let mut client = Client::connect(running.address).await;
    client.send(&hidden.repeat(2)).await;
    assert_eq!([client.answer().await.status, client.answer().await.status], [401, 401]);
    assert_eq!(upstream.connections(), 0);
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn trailers_say_nothing_that_a_header_may_not() {
    let upstream =
        Upstream::answering(|request| ok(&format!("{}|{}", request.text(), request.trailers.to_lowercase()))).await;
    let running = gateway(upstream.address).await;
    let mut client = Client::connect(running.address).await;
    let forbidden = "X-Remote-User: root\r\nX_Remote_Group: root\r\nImpersonate-User: root\r\nContent-Length: 5\r\nHost: b\r\n\
        Transfer-Encoding: x\r\nX-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nAuthorization: b\r\nCookie: c\r\n\
        Connection: close\r\nUpgrade: x\r\nTE: x\r\nContent-Type: t\r\n";
    client
        .send(&format!(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n1;n=\"\\\"\"\r\na\r\n0\r\n{forbidden}X-Sum: 1\r\n\r\n"
        ))
        .await;
    assert_eq!(client.answer().await.text(), "a|x-sum: 1\r\n");
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn unusual_requests_reach_the_upstream_in_the_usual_form() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    for (sent, first_lines) in [
        ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nhost: a\r\n"),
        ("GET http://a HTTP/1.1\r\nHost: A\r\n\r\n", "GET / HTTP/1.1\r\nhost: A\r\n"),
        ("GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n", "GET /?q HTTP/1.1\r\nhost: a\r\n"),
        ("GET http://a/b HTTP/1.0\r\n\r\n", "GET /b HTTP/1.1\r\nhost: a\r\n"),
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.1\r\nhost: a\r\n"),
        ("GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n", "GET /b/c HTTP/1.1\r\nhost: a\r\n"),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nhost: a\r\n"),
    ] {
        let mut client = Client::connect(running.address).await;
        client.send(sent).await;
        let seen = client.answer().await.text();
        assert!(seen.starts_with(first_lines), "{sent:?}: {seen}");
    }
    let mut client = Client::connect(running.address).await;
    for (sent, length) in [("Content-Length: 3\r\n\r\nabc", "3"), ("Content-Length: 0004 \r\n\r\nabcd", "4")] {
        client.send(&format!("GET / HTTP/1.1\r\nHost: a\r\n{sent}")).await;
        assert_eq!(find(&client.answer().await.text(), "content-length").as_deref(), Some(length));
    }
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn http_1_0_is_kept_alive_only_if_it_is_asked_for() {
    let upstream = Upstream::answering(|request| {
        if request.head.starts_with("GET /chunked") {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".to_owned()
        } else {
            ok("ok")
        }
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut kept = Client::connect(running.address).await;
    for _ in 0..2 {
        kept.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        let answer = kept.answer().await;
        assert_eq!((answer.text().as_str(), answer.header("connection").as_deref()), ("ok", Some("keep-alive")));
    }
    // It knows no chunks: the end of the connection is the end of the body.
    kept.send("GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    let head = kept.head().await;
    assert_eq!((find(&head, "transfer-encoding"), find(&head, "connection").as_deref()), (None, Some("close")));
    assert_eq!(kept.rest().await, b"ok");
    let mut closed = Client::connect(running.address).await;
    closed.send("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(closed.answer().await.text(), "ok");
    assert!(closed.is_closed().await);
    drop(kept);
    running.done().await;
}
