//! Upstreams of HTTP/2: whose fault it is when a request fails, and which connection the next one takes.

use crate::frames;
use crate::support;

use std::net::SocketAddr;
use std::time::Duration;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::Protocol;
use frames::{DATA, END_STREAM, Frames, GOAWAY, HEADERS, frame};
use support::client::{Answer, Client, get};
use support::upstream::Upstream;
use support::{PATIENCE, Running, config, start};
use tokio::io::AsyncWriteExt;

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn http2(upstreams: &[SocketAddr]) -> Config {
    let mut settings = config(upstreams);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.upstreams.iter_mut().for_each(|upstream| upstream.protocol = Protocol::Http2);
    settings
}

/// Reads every request to its end, and answers it.
async fn answer_all(client: Client, body: &str) {
    let mut frames = Frames::accept(client, &[]).await;
    while let Some(frame) = frames.next().await {
        if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
            frames.answer(frame.stream, body).await;
        }
    }
}

async fn answering() -> Upstream {
    Upstream::new(|client, _| answer_all(client, "here")).await
}

async fn send(address: SocketAddr, request: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client.send(request).await;
    client.answer().await
}

/// The sum of all series of a metric.
async fn metric(running: &Running, name: &str) -> u64 {
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let series = page.lines().filter(|line| line.starts_with(name));
    series.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn faults_of_clients_are_not_those_of_upstreams() {
    let upstreams = [answering().await, answering().await];
    let mut settings = http2(&upstreams.each_ref().map(|upstream| upstream.address));
    settings.limits.body_bytes = 100;
    settings.timeouts.stall = Duration::from_millis(200);
    settings.health.failures = 1;
    let running = start(settings).await;
    let too_large = format!("{CHUNKED}80\r\n{}\r\n0\r\n\r\n", "x".repeat(128));
    for (request, status) in [
        (&*too_large, 413),
        (&*format!("{CHUNKED}2\r\nab\r\nnonsense\r\n"), 400),
        (&*format!("{CHUNKED}2\r\nab\r\n"), 408),
    ] {
        for _ in 0..4 {
            let answer = send(running.address, request).await;
            assert_eq!(answer.status, status, "{}", answer.text());
        }
    }
    assert_eq!(metric(&running, "evenkeel_upstream_ejections_total").await, 0);
    assert_eq!(get(running.address, "/", "").await.text(), "here");
    running.done().await;
}

/// The time for an answer begins when the request has been sent, as it does over HTTP/1.1.
#[tokio::test]
async fn an_upload_that_moves_is_no_upstream_that_does_not_answer() {
    let upstream = answering().await;
    let mut settings = http2(&[upstream.address]);
    settings.timeouts.response = Duration::from_secs(2);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send(CHUNKED).await;
    // Twice as long as an answer may take.
    for _ in 0..40 {
        client.stream.write_all(b"1\r\nx\r\n").await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client.send("0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, &*answer.text()), (200, "here"));
    running.done().await;
}

/// What clients send makes the gateway think that an upstream speaks HTTP/2. That it does not is no failure of its.
#[tokio::test]
async fn an_upstream_that_was_thought_to_speak_http2_and_does_not_stays_in_the_rotation() {
    let upstreams = [Upstream::echo().await, Upstream::echo().await];
    let mut settings = http2(&upstreams.each_ref().map(|upstream| upstream.address));
    settings.upstreams.iter_mut().for_each(|upstream| upstream.protocol = Protocol::Auto);
    settings.health.failures = 1;
    let running = start(settings).await;
    for kind in ["application/grpc", "application/grpc+proto", "application/grpc;x=y"] {
        let answer = get(running.address, "/", &format!("Content-Type: {kind}\r\n")).await;
        assert_eq!(answer.header("grpc-status").as_deref(), Some("14"), "{kind}: {answer:?}");
        assert_eq!(
            answer.header("grpc-message").as_deref(),
            Some("the upstream does not support HTTP/2, which gRPC needs")
        );
    }
    for kind in ["application/grpc-web", "application/grpc-web+proto", "application/grpcx"] {
        let answer = get(running.address, "/", &format!("Content-Type: {kind}\r\n")).await;
        assert!(answer.status == 200 && answer.text().starts_with("GET / HTTP/1.1\r\n"), "{kind}: {answer:?}");
    }
    assert_eq!(metric(&running, "evenkeel_upstream_ejections_total").await, 0);
    running.done().await;
}

/// One whose settings say so is as good as closed if it never says anything.
#[tokio::test]
async fn an_upstream_that_closes_without_a_word_is_left_alone() {
    let (closing, well) = (Upstream::new(|_, _| async {}).await, answering().await);
    let mut settings = http2(&[closing.address, well.address]);
    settings.health.failures = 1;
    settings.health.pause = PATIENCE;
    let running = start(settings).await;
    while metric(&running, "evenkeel_upstream_ejections_total").await == 0 {
        get(running.address, "/", "").await;
    }
    for _ in 0..4 {
        assert_eq!(get(running.address, "/", "").await.text(), "here");
    }
    running.done().await;
}

/// Begins an answer, and says that it takes no more requests.
async fn begin_and_say_goodbye(client: Client) {
    let mut frames = Frames::accept(client, &[]).await;
    let stream = frames.next_request().await.unwrap();
    frames.send_head(stream, &[(":status", "200")], 0).await;
    frames.send(&frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])).await;
    frames.send(&frame(DATA, 0, stream, b"goodbye")).await;
    while frames.next().await.is_some() {}
}

#[tokio::test]
async fn a_request_that_a_closing_connection_has_not_taken_goes_over_another() {
    let upstream = Upstream::new(|client, number| async move {
        if number == 0 { begin_and_say_goodbye(client).await } else { answer_all(client, "here").await }
    })
    .await;
    let mut settings = http2(&[upstream.address]);
    // How long an upstream is waited for that goes on for ever.
    settings.timeouts.response = Duration::from_secs(2);
    let running = start(settings).await;
    let mut first = Client::connect(running.address).await;
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    first.until(b"goodbye").await;
    let answer = send(running.address, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab").await;
    assert_eq!((answer.status, &*answer.text()), (200, "here"));
    assert_eq!(metric(&running, "evenkeel_upstream_retries_total").await, 1);
    first.reset();
    running.done().await;
}

#[tokio::test]
async fn a_connection_that_takes_no_more_every_time_is_given_up() {
    let upstream = Upstream::new(|client, _| async move {
        let mut frames = Frames::accept(client, &[]).await;
        frames.send(&frame(GOAWAY, 0, 0, &[0; 8])).await;
        while frames.next().await.is_some() {}
    })
    .await;
    let running = start(http2(&[upstream.address])).await;
    assert_eq!(get(running.address, "/", "").await.status, 502);
    running.done().await;
}

#[tokio::test]
async fn a_connection_that_has_gone_silent_is_replaced() {
    let upstream = Upstream::new(|client, number| async move {
        if number > 0 {
            return answer_all(client, "here").await;
        }
        let mut frames = Frames::accept(client, &[]).await;
        let stream = frames.next_request().await.unwrap();
        frames.answer(stream, "first").await;
        // From now on it is as if it were cut somewhere on the way.
        while frames.next().await.is_some() {}
    })
    .await;
    let mut settings = http2(&[upstream.address]);
    settings.timeouts.response = Duration::from_secs(2);
    let running = start(settings).await;
    assert_eq!(get(running.address, "/", "").await.text(), "first");
    assert_eq!(get(running.address, "/", "").await.status, 504);
    assert_eq!(get(running.address, "/", "").await.text(), "here");
    assert_eq!(upstream.connections(), 2);
    running.done().await;
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::new(move |client, _| {
        let told = told.clone();
        async move {
            answer_all(client, "here").await;
            let _ = told.send("closed");
        }
    })
    .await;
    let mut settings = http2(&[upstream.address]);
    // Long enough for a client to send its request.
    settings.timeouts.idle = Duration::from_secs(1);
    let running = start(settings).await;
    assert_eq!(get(running.address, "/", "").await.text(), "here");
    assert_eq!(tokio::time::timeout(PATIENCE, hears.recv()).await, Ok(Some("closed")));
    assert_eq!(get(running.address, "/", "").await.text(), "here");
    assert_eq!(upstream.connections(), 2);
    running.done().await;
}

#[tokio::test]
async fn when_a_connection_has_room_for_no_more_there_is_another() {
    const MAX_CONCURRENT_STREAMS: u16 = 3;
    let upstream = Upstream::new(|client, _| async move {
        let mut frames = Frames::accept(client, &[(MAX_CONCURRENT_STREAMS, 1)]).await;
        let mut is_first = true;
        while let Some(stream) = frames.next_request().await {
            if std::mem::take(&mut is_first) {
                frames.answer(stream, "here").await;
            } else {
                frames.send_head(stream, &[(":status", "200")], 0).await;
                frames.send(&frame(DATA, 0, stream, b"for ever")).await;
            }
        }
    })
    .await;
    let mut settings = http2(&[upstream.address]);
    // How long an upstream is waited for that goes on for ever.
    settings.timeouts.response = Duration::from_secs(2);
    let running = start(settings).await;
    let mut waiting = Vec::new();
    for number in 1..=3 {
        assert_eq!(get(running.address, "/", "").await.text(), "here");
        assert_eq!(upstream.connections(), number);
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.until(b"for ever").await;
        waiting.push(client);
    }
    waiting.into_iter().for_each(Client::reset);
    running.done().await;
}
