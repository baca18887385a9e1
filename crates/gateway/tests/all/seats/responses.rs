//! Responses: a seat is free when the upstream is done, however slowly the client reads.

use std::time::Duration;

use evenkeel_gateway::config::Protocol;
use tokio::io::AsyncWriteExt;

use super::{asking, settings, start};
use crate::frames::{self, END_STREAM, Frames, Outcome, frame, request};
use crate::support::client::Client;
use crate::support::config;
use crate::support::upstream::{Upstream, has_more, ok};

/// An upstream that sends a response of this size at once.
async fn sending(bytes: usize) -> Upstream {
    Upstream::new(move |mut client, _| async move {
        while has_more(&mut client).await {
            client.answer().await;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
            let _ = client.stream.write_all(&[head.into_bytes(), vec![b'x'; bytes]].concat()).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_slow_reader_holds_no_seat() {
    const RESPONSE: usize = 16 << 20;
    let upstream = sending(RESPONSE).await;
    let mut settings = settings(upstream.address);
    // One client has a quarter of it, of which a half is for responses that are read ahead.
    (settings.limits.response_buffer, settings.limits.buffer_bytes) = (2 * RESPONSE, 24 * RESPONSE);
    let running = start(settings).await;
    let mut http1 = asking(running.address).await;
    http1.head().await;
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/", &[]), END_STREAM).await;
    while http2.next().await.unwrap().kind != frames::HEADERS {}
    // Nobody reads, and the seats are free.
    running.no_seat_is_taken().await;
    // Nothing is lost.
    assert_eq!(http1.exactly(RESPONSE).await.len(), RESPONSE);
    let more = u32::try_from(RESPONSE).unwrap().to_be_bytes();
    http2.send(&frame(frames::WINDOW_UPDATE, 0, 0, &more)).await;
    http2.send(&frame(frames::WINDOW_UPDATE, 0, 1, &more)).await;
    let Outcome::Answered(body) = http2.outcome(1).await else { panic!("it is cut") };
    assert_eq!(body.len(), RESPONSE);
    drop((http1, http2));
    running.done().await;
}

#[tokio::test]
async fn a_response_with_a_superfluous_end_leaves_the_next_request_alone() {
    // Over HTTP/2 the end of a response without a body may come in a frame of its own.
    let http2 = Upstream::new(|client, _| async move {
        let mut upstream = Frames::accept(client, &[]).await;
        while let Some(stream) = upstream.next_request().await {
            upstream.send_head(stream, &[(":status", "204")], 0).await;
        }
    })
    .await;
    let http1 = Upstream::answering(|request| ok(&request.text())).await;
    let mut settings = settings(http2.address);
    settings.upstreams.extend(config(&[http1.address]).upstreams);
    settings.upstreams[0].protocol = Protocol::Http2;
    settings.timeouts.response = Duration::from_secs(5);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 204 "), "{head}");
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
    assert_eq!(client.answer().await.text(), "hello");
    drop((client, http2));
    running.done().await;
}

#[tokio::test]
async fn a_client_may_pause_while_there_is_room_for_what_it_does_not_read() {
    const RESPONSE: usize = 16 << 20;
    // Two windows in which a client that is too far behind would have to read something, the first of which has the beginning.
    const PAUSE: Duration = Duration::from_secs(24);
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", RESPONSE + 1)).await;
        client.stream.write_all(&vec![b'x'; RESPONSE]).await.unwrap();
        tokio::time::sleep(PAUSE).await;
        client.send("x").await;
    })
    .await;
    let mut settings = settings(upstream.address);
    (settings.limits.response_buffer, settings.limits.buffer_bytes) = (2 * RESPONSE, 24 * RESPONSE);
    let running = start(settings).await;
    let mut http1 = asking(running.address).await;
    http1.head().await;
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/", &[]), END_STREAM).await;
    running.no_seat_is_taken().await;
    assert_eq!(http1.exactly(RESPONSE + 1).await.len(), RESPONSE + 1);
    let more = u32::try_from(RESPONSE).unwrap().to_be_bytes();
    http2.send(&frame(frames::WINDOW_UPDATE, 0, 0, &more)).await;
    http2.send(&frame(frames::WINDOW_UPDATE, 0, 1, &more)).await;
    let Outcome::Answered(body) = http2.outcome(1).await else { panic!("it is cut") };
    assert_eq!(body.len(), RESPONSE + 1);
    drop((http1, http2));
    running.done().await;
}
