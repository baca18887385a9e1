//! Clients of HTTP/2 that do what no honest one does, frame by frame.

use crate::frames;
use crate::support;

use std::time::Duration;

use frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, HEADERS, Outcome, PING, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, block, frame, request,
};
use support::client::{find, get};
use support::upstream::Upstream;
use support::{Running, config, eventually, gateway, start};

/// More than the buffers of two sockets take.
const FLOOD_MAX: usize = 32 * 1024 * 1024;
const ENHANCE_YOUR_CALM: u32 = 11;

/// The fields of a request, with these instead of the authority.
fn with_hosts<'a>(hosts: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![(":method", "GET"), (":scheme", "http"), (":path", "/")];
    fields.extend_from_slice(hosts);
    fields
}

async fn ask(running: &Running, fields: &[(&str, &str)]) -> Outcome {
    let mut client = Frames::connect(running.address).await;
    client.send_head(1, fields, END_STREAM).await;
    client.outcome(1).await
}

/// What an upstream of HTTP/1.1 sees of a request.
async fn seen(running: &Running, fields: &[(&str, &str)]) -> String {
    let Outcome::Answered(text) = ask(running, fields).await else { panic!("{fields:?} was not answered") };
    text
}

#[tokio::test]
async fn heads_that_could_be_understood_in_two_ways_are_refused() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let no_target = "invalid request target";
    let no_host = "the request has no host";
    for (fields, message) in [
        (request("*", &[]), no_target),
        (with_hosts(&[]), no_host),
        (with_hosts(&[("host", "a\";for=6.6.6.6")]), no_host),
        (with_hosts(&[("host", "a b")]), no_host),
        (with_hosts(&[("host", "a/b")]), no_host),
        (with_hosts(&[("host", "a"), ("host", "a")]), no_host),
        (with_hosts(&[(":authority", "u@a")]), no_host),
        (with_hosts(&[(":authority", "u@a"), ("host", "u@a")]), no_host),
        (with_hosts(&[(":authority", "a"), ("host", "b")]), no_host),
    ] {
        let Outcome::Answered(text) = ask(&running, &fields).await else { panic!("{fields:?}") };
        assert!(text.contains(message) && text.contains("\"status\":400"), "{fields:?}: {text}");
    }
    let method = vec![(":method", "GET /x"), (":scheme", "http"), (":authority", "a"), (":path", "/")];
    for fields in [
        request("evil", &[]),
        request("/a b", &[]),
        request("http://x/y", &[]),
        request("/", &[("transfer-encoding", "chunked")]),
        request("/", &[("connection", "close")]),
        request("/", &[("te", "gzip")]),
        request("/", &[("content-length", "5")]),
        request("/", &[("content-length", "x")]),
        request("/", &[("X-Upper", "1")]),
        request("/", &[("x", "a\r\nb: c")]),
        request("/", &[("x", "a\nb: c")]),
        request("/", &[("x", "a\0b")]),
        request("/", &[("x:y", "a")]),
        request("/", &[("x y", "a")]),
        request("/", &[("x", "a"), (":path", "/b")]),
        request("/", &[(":path", "/b")]),
        request("/", &[(":unknown", "a")]),
        with_hosts(&[(":authority", "")]),
        method,
    ] {
        let outcome = ask(&running, &fields).await;
        assert!(matches!(outcome, Outcome::Reset | Outcome::Closed), "{fields:?}: {outcome:?}");
    }
    assert_eq!(upstream.connections(), 0);
    running.done().await;
}

#[tokio::test]
async fn what_two_versions_say_differently_is_said_in_one_way() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let cookies = seen(&running, &request("/", &[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2; c=3")])).await;
    assert_eq!(find(&cookies, "cookie").as_deref(), Some("a=1; b=2; c=3"));
    let host = seen(&running, &with_hosts(&[("host", "a:80")])).await;
    assert_eq!(find(&host, "host").as_deref(), Some("a:80"));
    assert!(seen(&running, &request("?a=b", &[])).await.starts_with("GET /?a=b HTTP/1.1\r\n"));
    running.done().await;
}

#[tokio::test]
async fn nobody_says_who_they_are_or_where_they_come_from() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let forged = [
        "x-remote-user",
        "x_remote_user",
        "x-remote_group",
        "impersonate_user",
        "x_forwarded_for",
        "x-forwarded-port",
        "x-forwarded_host",
        "x-real-ip",
        "content_length",
        "transfer_encoding",
    ];
    let more: Vec<(&str, &str)> = forged.iter().flat_map(|name| [(*name, "forged"), (*name, "again")]).collect();
    let text = seen(&running, &request("/", &more)).await;
    assert!(!text.contains("forged") && !text.contains("again"), "{text}");
    running.done().await;
}

#[tokio::test]
async fn a_head_has_the_limits_that_it_has_in_http1() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let names: Vec<String> = (0..200).map(|index| format!("x-{index}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "1")).collect();
    assert!(seen(&running, &request("/", &many)).await.contains("\"status\":431"));
    // What is too long is refused below the gateway: with an answer of its own, or by closing.
    let long = "b".repeat(15_000);
    let large: Vec<(&str, &str)> = names.iter().take(5).map(|name| (&**name, &*long)).collect();
    let block = block(&request("/", &large));
    let mut client = Frames::connect(running.address).await;
    let pieces: Vec<&[u8]> = block.chunks(16_000).collect();
    client.send(&frame(HEADERS, END_STREAM, 1, pieces[0])).await;
    for (index, piece) in pieces.iter().enumerate().skip(1) {
        let flags = if index + 1 == pieces.len() { END_HEADERS } else { 0 };
        client.try_send(&frame(CONTINUATION, flags, 1, piece)).await;
    }
    assert!(matches!(client.outcome(1).await, Outcome::Answered(text) if text.is_empty()));
    assert_eq!(upstream.connections(), 0);
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn streams_that_are_reset_at_once_end_the_connection() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let mut client = Frames::connect(running.address).await;
    let head = block(&request("/", &[]));
    let mut burst = Vec::new();
    for index in 0..2000 {
        let stream = 2 * index + 1;
        burst.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &head));
        burst.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
    }
    // It may be closed before all of it is sent.
    client.try_send(&burst).await;
    assert_eq!(client.end().await, Some(ENHANCE_YOUR_CALM));
    assert!(upstream.connections() < 100, "{} requests got through", upstream.connections());
    assert_eq!(get(running.address, "/", "").await.status, 200);
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn a_head_without_an_end_ends_the_connection() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let small = block(&[("x", "y")]);
    for piece in [&small[..], &[]] {
        let mut client = Frames::connect(running.address).await;
        client.send(&frame(HEADERS, 0, 1, &block(&request("/", &[])))).await;
        let one = frame(CONTINUATION, 0, 1, piece);
        let mut sent = 0;
        while client.try_send(&one).await {
            sent += one.len();
            assert!(sent < 1024 * 1024, "it never ends");
            tokio::task::yield_now().await;
        }
    }
    eventually("the connections are gone", || running.gateway.connections() == 0).await;
    assert_eq!(upstream.connections(), 0);
    running.done().await;
}

/// Sends for as long as the other side takes it, up to a limit.
async fn flood(client: &mut Frames, one: &[u8]) {
    let many = one.repeat(64 * 1024 / one.len());
    let mut sent = 0;
    while sent < FLOOD_MAX {
        match tokio::time::timeout(Duration::from_millis(200), client.try_send(&many)).await {
            Ok(true) => sent += many.len(),
            Ok(false) | Err(_) => return,
        }
    }
}

#[tokio::test]
async fn a_flood_of_frames_keeps_nobody_else_waiting_and_leaves_nothing_behind() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let opening = frame(HEADERS, END_HEADERS, 1, &block(&request("/", &[])));
    for (name, begin, one) in [
        ("ping", vec![], frame(PING, 0, 0, &[0; 8])),
        ("answers to pings", vec![], frame(PING, ACK, 0, &[0; 8])),
        ("settings", vec![], frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9])),
        ("windows", vec![], frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("frames that nobody knows", vec![], frame(0x42, 0, 0, &[0; 100])),
        ("priorities", vec![], frame(2, 0, 1, &[0, 0, 0, 0, 1])),
        ("nothing", opening, frame(DATA, 0, 1, &[])),
    ] {
        let mut client = Frames::connect(running.address).await;
        client.send(&begin).await;
        let address = running.address;
        let beside = tokio::spawn(async move { get(address, "/", "").await.status });
        flood(&mut client, &one).await;
        assert_eq!(beside.await.unwrap(), 200, "{name}");
        assert_eq!(get(running.address, "/", "").await.status, 200, "{name}");
        drop(client);
        eventually(name, || running.gateway.connections() == 0).await;
    }
    running.done().await;
}

#[tokio::test]
async fn clients_that_stop_in_the_middle_are_given_up() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    // Long enough for those who say something to do so.
    let short = Duration::from_secs(1);
    (settings.timeouts.head, settings.timeouts.idle, settings.timeouts.stall) = (short, short, short);
    let running = start(settings).await;
    let mut preface = support::client::Client::connect(running.address).await;
    preface.send("PRI * HTTP/2.0\r\n").await;
    assert!(!preface.rest().await.is_empty(), "it is told why");
    let mut silent = Frames::connect(running.address).await;
    silent.end().await;
    let mut half_a_head = Frames::connect(running.address).await;
    half_a_head.send(&frame(HEADERS, 0, 1, &block(&request("/", &[])))).await;
    half_a_head.end().await;
    let mut half_a_body = Frames::connect(running.address).await;
    half_a_body.send_head(1, &request("/", &[("content-length", "9")]), 0).await;
    half_a_body.send(&frame(DATA, 0, 1, b"half")).await;
    assert!(matches!(half_a_body.outcome(1).await, Outcome::Answered(text) if text.contains("\"status\":408")));
    drop(half_a_body);
    eventually("all connections are gone", || running.gateway.connections() == 0).await;
    running.done().await;
}
