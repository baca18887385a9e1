//! Clients that leave: their requests keep their seats for as long as the upstream works on them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_gateway::config::{Protocol, RouteConfig, WhenClientLeaves};
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use super::{SEATS, Work, asking, in_level, settings, start};
use crate::frames::{END_STREAM, Frames, Outcome, RST_STREAM, frame, request};
use crate::support::client::{Client, get};
use crate::support::upstream::{Upstream, ok};
use crate::support::{PATIENCE, Running, config, eventually};

/// A client that closes later than this after its request has left: one that closes at once, within 100 ms, may only have closed its
/// sending half.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(500);

#[tokio::test]
async fn clients_that_reset_their_connections_put_no_more_work_into_the_upstream() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let running = start(settings(upstream.address)).await;
    for round in 0..5 {
        let clients = [asking(running.address).await, asking(running.address).await];
        if round < SEATS / 2 {
            eventually("the upstream works on them", || work.begun() == 2 * (round + 1)).await;
        } else {
            eventually("they wait", || in_level(&running) == (SEATS, 2)).await;
        }
        clients.into_iter().for_each(Client::reset);
        eventually("nobody waits any more", || in_level(&running).1 == 0).await;
        assert_eq!(in_level(&running).0, SEATS.min(2 * (round + 1)), "seats stand for the upstream's work");
    }
    assert_eq!((work.now(), work.most.load(Ordering::SeqCst)), (SEATS, SEATS));
    work.ends.add_permits(SEATS);
    running.no_seat_is_taken().await;
    work.ends.add_permits(1);
    assert_eq!(get(running.address, "/work", "").await.text(), "done");
    running.done().await;
}

#[tokio::test]
async fn streams_that_are_reset_put_no_more_work_into_the_upstream() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let running = start(settings(upstream.address)).await;
    let mut client = Frames::connect(running.address).await;
    let mut stream = 1;
    for _ in 0..SEATS {
        let begun = work.begun();
        client.send_head(stream, &request("/work", &[]), END_STREAM).await;
        eventually("the upstream works on it", || work.begun() == begun + 1).await;
        client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await;
        stream += 2;
    }
    for _ in 0..20 {
        client.send_head(stream, &request("/work", &[]), END_STREAM).await;
        eventually("it waits", || in_level(&running) == (SEATS, 1)).await;
        client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await;
        eventually("it does not wait any more", || in_level(&running) == (SEATS, 0)).await;
        stream += 2;
    }
    client.send_head(stream, &request("/work", &[]), END_STREAM).await;
    eventually("only one waits", || in_level(&running) == (SEATS, 1)).await;
    assert_eq!(work.most.load(Ordering::SeqCst), SEATS);
    work.ends.add_permits(SEATS + 1);
    assert_eq!(client.outcome(stream).await, Outcome::Answered("done".to_owned()));
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn clients_that_give_up_and_try_again_put_no_more_work_into_the_upstream() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let running = start(settings(upstream.address)).await;
    let ending = {
        let work = work.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                work.ends.add_permits(1);
            }
        })
    };
    let address = running.address;
    let mut clients = Vec::new();
    for _ in 0..30 {
        clients.push(tokio::spawn(async move {
            for _ in 0..6 {
                let mut client = asking(address).await;
                if tokio::time::timeout(Duration::from_millis(250), client.head()).await.is_ok() {
                    return;
                }
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(work.most.load(Ordering::SeqCst), SEATS);
    running.no_seat_is_taken().await;
    ending.abort();
    running.done().await;
}

/// What an upstream sees of a request whose client leaves, and of the seat meanwhile.
async fn abandoned(
    when_client_leaves: Option<WhenClientLeaves>,
) -> (Upstream, Running, Arc<AtomicUsize>, Arc<Semaphore>) {
    let (closed, answers) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let (counts, may_answer) = (Arc::clone(&closed), Arc::clone(&answers));
    let upstream = Upstream::new(move |mut client, _| {
        let (counts, may_answer) = (Arc::clone(&counts), Arc::clone(&may_answer));
        async move {
            client.head().await;
            client.rest().await;
            counts.fetch_add(1, Ordering::SeqCst);
            may_answer.acquire().await.unwrap().forget();
            let _ = client.stream.write_all(ok("late").as_bytes()).await;
        }
    })
    .await;
    let mut settings = settings(upstream.address);
    let route = RouteConfig { when_client_leaves, ..serde_json::from_str(r#"{"path": "/work"}"#).unwrap() };
    settings.requests.routes.push(route);
    (upstream, start(settings).await, closed, answers)
}

#[tokio::test]
async fn an_upstream_is_told_by_a_half_close_and_waited_for() {
    for way in [None, Some(WhenClientLeaves::Wait)] {
        let (_upstream, running, closed, answers) = abandoned(way).await;
        let client = asking(running.address).await;
        eventually("it runs", || in_level(&running).0 == 1).await;
        client.reset();
        eventually("the upstream is told", || closed.load(Ordering::SeqCst) == 1).await;
        assert_eq!(in_level(&running).0, 1, "the upstream may still work");
        answers.add_permits(1);
        running.no_seat_is_taken().await;
        running.done().await;
    }
}

#[tokio::test]
async fn an_upstream_that_never_responds_is_waited_for_within_a_limit() {
    let upstream = Upstream::silent().await;
    let mut settings = settings(upstream.address);
    settings.timeouts.response = Duration::from_secs(1);
    let running = start(settings).await;
    let client = asking(running.address).await;
    eventually("it runs", || in_level(&running).0 == 1).await;
    client.reset();
    running.no_seat_is_taken().await;
    running.done().await;
}

#[tokio::test]
async fn a_cancelled_request_keeps_its_seat_for_as_long_as_it_would_have_run() {
    let (_upstream, running, closed, answers) = abandoned(Some(WhenClientLeaves::Cancel)).await;
    // The upstream answers nobody: nothing is known of how long a request takes, and a second is assumed.
    let begun = std::time::Instant::now();
    let client = asking(running.address).await;
    eventually("it runs", || in_level(&running).0 == 1).await;
    client.reset();
    eventually("the upstream is told", || closed.load(Ordering::SeqCst) == 1).await;
    running.no_seat_is_taken().await;
    assert!(begun.elapsed() >= Duration::from_millis(900), "{:?}", begun.elapsed());
    answers.add_permits(1);
    running.done().await;
}

#[tokio::test]
async fn a_grpc_call_is_cancelled_by_default() {
    let reset = Arc::<AtomicUsize>::default();
    let counts = Arc::clone(&reset);
    let upstream = Upstream::new(move |client, _| {
        let counts = Arc::clone(&counts);
        async move {
            let mut upstream = Frames::accept(client, &[]).await;
            while let Some(frame) = upstream.next().await {
                counts.fetch_add(usize::from(frame.kind == RST_STREAM), Ordering::SeqCst);
            }
        }
    })
    .await;
    let mut settings = settings(upstream.address);
    settings.upstreams[0].protocol = Protocol::Http2;
    settings.timeouts.response = Duration::from_secs(3);
    let running = start(settings).await;
    let mut client = Frames::connect(running.address).await;
    for (stream, fields) in [(1, &[("content-type", "application/grpc")][..]), (3, &[])] {
        client.send_head(stream, &request("/shop.Orders/List", fields), END_STREAM).await;
        eventually("it runs", || in_level(&running).0 == 1).await;
        client.send(&frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())).await;
        if stream == 1 {
            eventually("the upstream is told", || reset.load(Ordering::SeqCst) == 1).await;
            running.no_seat_is_taken().await;
        }
    }
    // After a reset nothing more would be heard of the other: it is waited for.
    client.send_head(5, &request("/", &[]), END_STREAM).await;
    eventually("both run", || in_level(&running).0 == 2).await;
    assert_eq!(reset.load(Ordering::SeqCst), 1);
    drop((client, upstream));
    running.done().await;
}

#[tokio::test]
async fn a_disconnect_is_noticed_behind_whatever_was_sent_ahead() {
    let (_upstream, running, closed, answers) = abandoned(None).await;
    for leave in [Client::reset, |client: Client| drop(client)] {
        closed.store(0, Ordering::SeqCst);
        let mut client = asking(running.address).await;
        eventually("it runs", || in_level(&running).0 == 1).await;
        client.stream.write_all(&vec![b'x'; 20_000]).await.unwrap();
        tokio::time::sleep(GIVEN_UP_AFTER).await;
        leave(client);
        eventually("the upstream is told", || closed.load(Ordering::SeqCst) == 1).await;
        answers.add_permits(1);
        running.no_seat_is_taken().await;
    }
    running.done().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_that_half_closes_after_its_request_gets_its_response() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let running = start(settings(upstream.address)).await;
    let mut clients = Vec::new();
    // More than there are seats: some of them wait.
    for number in 0..2 * SEATS {
        let mut client = Client::connect(running.address).await;
        // Request and close leave in one packet, so that they arrive together however slow this machine is.
        socket2::SockRef::from(&client.stream).set_tcp_cork(true).unwrap();
        let requests = [
            "GET /work HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST /work HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        ];
        client.send(requests[number % 2]).await;
        client.stream.shutdown().await.unwrap();
        clients.push(client);
    }
    eventually("they are all there", || in_level(&running) == (SEATS, SEATS)).await;
    // The only worker sees that they have closed before it rejects this.
    let mut later = Client::connect(running.address).await;
    later.send("nonsense\r\n\r\n").await;
    assert_eq!(later.answer().await.status, 400);
    assert_eq!(in_level(&running), (SEATS, SEATS), "they have not left");
    work.ends.add_permits(2 * SEATS);
    for mut client in clients {
        assert_eq!(client.answer().await.text(), "done");
        assert!(client.is_closed().await);
    }
    running.done().await;
}

#[tokio::test]
async fn a_request_that_takes_too_long_keeps_its_seat_until_the_upstream_is_done() {
    let work = Work::new();
    let upstream = work.upstream().await;
    let mut settings = settings(upstream.address);
    settings.timeouts.total = Duration::from_millis(500);
    let running = start(settings).await;
    let mut client = asking(running.address).await;
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/", &[]), END_STREAM).await;
    assert_eq!(client.answer().await.status, 504);
    assert!(client.is_closed().await);
    assert!(matches!(http2.outcome(1).await, Outcome::Answered(_)));
    assert_eq!((work.now(), in_level(&running).0), (2, 2));
    work.ends.add_permits(2);
    running.no_seat_is_taken().await;
    drop(http2);
    running.done().await;
}

#[tokio::test]
async fn abandoned_requests_do_not_hold_up_a_drain() {
    let (_upstream, running, closed, _answers) = abandoned(None).await;
    let client = asking(running.address).await;
    eventually("it runs", || in_level(&running).0 == 1).await;
    client.reset();
    eventually("the upstream is told", || closed.load(Ordering::SeqCst) == 1).await;
    let drained = tokio::time::timeout(PATIENCE, running.gateway.drain()).await.unwrap();
    assert_eq!(drained.requests_cut, 0);
}

#[tokio::test]
async fn an_upstream_that_closes_because_a_client_has_left_has_not_failed() {
    // Both do what they are told by a half-close.
    let stopping = |mut client: Client, _| async move {
        client.rest().await;
    };
    let (one, other) = (Upstream::new(stopping).await, Upstream::new(stopping).await);
    let mut settings = settings(one.address);
    settings.upstreams.extend(config(&[other.address]).upstreams);
    settings.health.failures = 1;
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    let running = start(settings).await;
    for _ in 0..4 {
        let client = asking(running.address).await;
        eventually("it runs", || in_level(&running).0 == 1).await;
        client.reset();
        running.no_seat_is_taken().await;
    }
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    for name in ["evenkeel_upstream_failures_total{kind=\"cut\",", "evenkeel_upstream_ejections_total{"] {
        let mut series = page.lines().filter(|line| line.starts_with(name)).peekable();
        assert!(series.peek().is_some() && series.all(|line| line.ends_with(" 0")), "{name}: {page}");
    }
    running.done().await;
}
