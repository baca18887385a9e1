//! Bodies of requests: a seat is taken when there is something for the upstream to work on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_gateway::config::Protocol;

use super::{SEATS, Work, in_level, settings, start};
use crate::frames::{self, END_STREAM, Frames, Outcome, RST_STREAM, frame, request};
use crate::support::client::{Client, get};
use crate::support::eventually;
use crate::support::upstream::Upstream;

#[tokio::test]
async fn a_body_that_dawdles_holds_no_seat() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let running = start(settings(upstream.address)).await;
    let mut http2 = Frames::connect(running.address).await;
    let mut dawdling = Vec::new();
    for number in 0..2 * SEATS {
        let mut client = Client::connect(running.address).await;
        client.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx").await;
        dawdling.push(client);
        let stream = u32::try_from(2 * number + 1).unwrap();
        http2.send_head(stream, &request("/slow", &[]), 0).await;
        http2.send(&frame(frames::DATA, 0, stream, b"x")).await;
    }
    for _ in 0..SEATS {
        work.ends.add_permits(1);
        assert_eq!(get(running.address, "/", "").await.text(), "done");
    }
    assert_eq!(work.begun(), SEATS, "nothing of the others has reached the upstream");
    // When the body is there, the request is served.
    work.ends.add_permits(2);
    let mut first = dawdling.remove(0);
    first.send(&"x".repeat(99)).await;
    assert_eq!(first.answer().await.text(), "done");
    http2.send(&frame(frames::DATA, END_STREAM, 1, b"x")).await;
    assert_eq!(http2.outcome(1).await, Outcome::Answered("done".to_owned()));
    drop((dawdling, http2, first));
    running.done().await;
}

/// What a body is called is up to its client.
#[tokio::test]
async fn a_body_that_dawdles_holds_no_seat_whatever_it_calls_itself() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let mut settings = settings(upstream.address);
    settings.upstreams[0].protocol = Protocol::Http1;
    let running = start(settings).await;
    let mut http2 = Frames::connect(running.address).await;
    let mut dawdling = Vec::new();
    for number in 0..2 * SEATS {
        let mut client = Client::connect(running.address).await;
        let head = "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nContent-Length: 100\r\n\r\n";
        // A message that is complete, and one that is not.
        client.send(&format!("{head}\0\0\0\0\x01x\0")).await;
        dawdling.push(client);
        let stream = u32::try_from(2 * number + 1).unwrap();
        http2.send_head(stream, &request("/slow", &[("content-type", "application/grpc")]), 0).await;
        http2.send(&frame(frames::DATA, 0, stream, b"\0\0\0\0\x01x\0")).await;
    }
    for _ in 0..SEATS {
        work.ends.add_permits(1);
        assert_eq!(get(running.address, "/", "").await.text(), "done");
    }
    assert_eq!((work.begun(), in_level(&running)), (SEATS, (0, 0)), "nothing of the others has reached the upstream");
    drop((dawdling, http2));
    running.done().await;
}

#[tokio::test]
async fn a_client_that_waits_for_permission_to_send_its_body_holds_no_seat() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let running = start(settings(upstream.address)).await;
    let mut asked = Vec::new();
    for _ in 0..2 * SEATS {
        let mut client = Client::connect(running.address).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n").await;
        assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
        client.send("h").await;
        asked.push(client);
    }
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/", &[("expect", "100-continue")]), 0).await;
    work.ends.add_permits(1);
    assert_eq!(get(running.address, "/", "").await.text(), "done");
    assert_eq!((work.begun(), in_level(&running)), (1, (0, 0)));
    // When the body is there, the request is served.
    work.ends.add_permits(2);
    let mut first = asked.remove(0);
    first.send("ello").await;
    assert_eq!(first.answer().await.text(), "done");
    http2.send(&frame(frames::DATA, END_STREAM, 1, b"hello")).await;
    assert_eq!(http2.outcome(1).await, Outcome::Answered("done".to_owned()));
    drop((asked, first, http2));
    running.done().await;
}

#[tokio::test]
async fn a_call_takes_its_seat_with_its_first_message() {
    let upstream = Upstream::new(|client, _| async move {
        let mut upstream = Frames::accept(client, &[]).await;
        while upstream.next().await.is_some() {}
    })
    .await;
    let mut settings = settings(upstream.address);
    settings.timeouts.response = Duration::from_secs(3);
    let running = start(settings).await;
    let mut client = Frames::connect(running.address).await;
    let call = request("/shop.Orders/Put", &[("content-type", "application/grpc")]);
    for (stream, part) in [(1, &b"\0"[..]), (3, b"\0\0\0"), (5, b"\0\0\0\0\x02a"), (7, b"\0\0\0\0\0")] {
        client.send_head(stream, &call, 0).await;
        client.send(&frame(frames::DATA, 0, stream, part)).await;
    }
    eventually("the last one has its seat", || in_level(&running) == (1, 0)).await;
    client.send(&frame(frames::DATA, 0, 5, b"b")).await;
    eventually("so has the other with a message", || in_level(&running) == (2, 0)).await;
    client.send(&frame(frames::DATA, 0, 3, b"\0\x01a\0\0")).await;
    eventually("and the next", || in_level(&running) == (3, 0)).await;
    drop(client);
    running.done().await;
}

/// Some clients wait for the response to begin before they say anything.
#[tokio::test]
async fn calls_without_a_message_have_few_seats_and_little_time() {
    let upstream = Upstream::new(|client, _| async move {
        let mut upstream = Frames::accept(client, &[]).await;
        while upstream.next().await.is_some() {}
    })
    .await;
    let mut settings = settings(upstream.address);
    // A quarter of them is for such calls, and one of these for each client.
    settings.concurrency = Some(8.into());
    settings.timeouts.first_message = Duration::from_secs(5);
    settings.timeouts.response = Duration::from_secs(3);
    let running = start(settings).await;
    let mut client = Frames::connect(running.address).await;
    let call = request("/shop.Orders/Put", &[("content-type", "application/grpc")]);
    for stream in [1, 3, 5] {
        client.send_head(stream, &call, 0).await;
    }
    eventually("one has a seat", || in_level(&running) == (1, 0)).await;
    // Whichever it is: when it has said something, there is room for another.
    for stream in [1, 3, 5] {
        client.send(&frame(frames::DATA, 0, stream, b"\0\0\0\0\0")).await;
    }
    eventually("all have seats", || in_level(&running) == (3, 0)).await;
    client.send_head(7, &call, 0).await;
    // A response of gRPC has no body here.
    assert_eq!(client.outcome(7).await, Outcome::Answered(String::new()));
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn a_long_body_takes_its_seat_when_the_buffer_is_full() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let mut settings = settings(upstream.address);
    settings.limits.request_buffer = 1000;
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send(&format!("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n{}", "x".repeat(999))).await;
    work.ends.add_permits(1);
    assert_eq!(get(running.address, "/", "").await.text(), "done");
    assert_eq!(in_level(&running).0, 0);
    client.send("x").await;
    eventually("it has its seat", || in_level(&running).0 == 1).await;
    client.send(&"x".repeat(2000)).await;
    work.ends.add_permits(1);
    assert_eq!(client.answer().await.text(), "done");
    drop(client);
    running.done().await;
}

/// Resets an upload on its way to an upstream of HTTP/2, after its response has begun or before.
async fn reset_upload(has_response_begun: bool, is_http2_client: bool) {
    let begun = Arc::<AtomicUsize>::default();
    let counts = Arc::clone(&begun);
    let upstream = Upstream::new(move |client, _| {
        let counts = Arc::clone(&counts);
        async move {
            let mut upstream = Frames::accept(client, &[]).await;
            while let Some(stream) = upstream.next_request().await {
                if has_response_begun {
                    upstream.send_head(stream, &[(":status", "200")], 0).await;
                }
                counts.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let mut settings = settings(upstream.address);
    settings.upstreams[0].protocol = Protocol::Http2;
    settings.limits.request_buffer = 0;
    settings.timeouts.response = Duration::ZERO;
    let running = start(settings).await;
    let mut http2 = Frames::connect(running.address).await;
    let mut http1 = Client::connect(running.address).await;
    if is_http2_client {
        http2.send_head(1, &request("/upload", &[]), 0).await;
        http2.send(&frame(frames::DATA, 0, 1, b"x")).await;
    } else {
        http1.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx").await;
    }
    eventually("the upstream has it", || begun.load(Ordering::SeqCst) == 1).await;
    if has_response_begun && is_http2_client {
        while http2.next().await.unwrap().kind != frames::HEADERS {}
    } else if has_response_begun {
        http1.head().await;
    }
    if is_http2_client {
        http2.send(&frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes())).await;
    } else {
        http1.reset();
    }
    running.no_seat_is_taken().await;
    drop((http2, upstream));
    running.done().await;
}

#[tokio::test]
async fn an_upload_to_http2_that_is_reset_gives_its_seat_back() {
    let all = [(false, false), (false, true), (true, false), (true, true)];
    let all = all.map(|(has_begun, is_http2)| tokio::spawn(reset_upload(has_begun, is_http2)));
    for (number, one) in all.into_iter().enumerate() {
        assert!(one.await.is_ok(), "{number}");
    }
}

#[tokio::test]
async fn a_client_that_is_refused_while_it_sends_hears_why_and_is_closed() {
    let upstream = Upstream::silent().await;
    let mut settings = settings(upstream.address);
    (settings.limits.request_buffer, settings.limits.body_bytes) = (0, 1000);
    settings.timeouts.response = Duration::from_secs(30);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    eventually("it runs", || in_level(&running).0 == 1).await;
    let begun = std::time::Instant::now();
    client.send(&format!("100000\r\n{}", "x".repeat(512 << 10))).await;
    assert_eq!(client.answer().await.status, 413);
    assert!(client.is_closed().await);
    assert!(begun.elapsed() < Duration::from_secs(20), "it waits for the upstream");
    assert_eq!(in_level(&running).0, 1, "the upstream may still work on it");
    drop((client, upstream));
}
