//! A seat stands for the upstream's work: no client can dodge it by leaving, or hold it by dawdling.

use crate::frames;
use crate::support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::{Protocol, RouteConfig, WhenClientLeaves};
use frames::{END_STREAM, Frames, Outcome, RST_STREAM, frame, request};
use support::client::{Client, get};
use support::upstream::{Upstream, has_more, ok};
use support::{ONE_LEVEL, PATIENCE, Running, config, eventually, start_with};
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

const SEATS: usize = 4;
/// What an upstream has to do, which does not notice when clients leave.
#[derive(Clone)]
struct Work {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
    /// Every request ends with one of these.
    ends: Arc<Semaphore>,
}

impl Work {
    fn new() -> Self {
        let count = Arc::<AtomicUsize>::default;
        Self { now: count(), most: count(), begun: count(), ends: Arc::new(Semaphore::new(0)) }
    }

    fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    async fn run(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.ends.acquire().await.unwrap().forget();
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    /// An upstream that works on every request to the end, whether its client is there or not.
    async fn upstream(&self) -> Upstream {
        let work = self.clone();
        Upstream::new(move |mut client, _| {
            let work = work.clone();
            async move {
                while has_more(&mut client).await {
                    client.answer().await;
                    work.run().await;
                    let _ = client.stream.write_all(ok("done").as_bytes()).await;
                }
            }
        })
        .await
    }
}

fn settings(upstream: SocketAddr) -> Config {
    let mut settings = config(&[upstream]);
    settings.concurrency = u32::try_from(SEATS).unwrap();
    settings.timeouts.queue = Duration::from_secs(60);
    settings
}

/// A gateway with one level, which has all seats.
async fn start(settings: Config) -> Running {
    start_with(settings, ONE_LEVEL).await
}

/// How many requests run and wait.
fn in_level(running: &Running) -> (usize, usize) {
    let status = running.gateway.flow().status();
    let level = status.iter().find(|level| level.name == "everybody").unwrap();
    (level.executing, level.waiting)
}

/// A client that has sent a request.
async fn asking(address: SocketAddr) -> Client {
    let mut client = Client::connect(address).await;
    client.send("GET /work HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client
}

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
        // One that closes at once after its request may only have closed its sending half.
        tokio::time::sleep(Duration::from_millis(500)).await;
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
    // Long enough for the gateway to see that they have closed.
    tokio::time::sleep(Duration::from_millis(500)).await;
    work.ends.add_permits(2 * SEATS);
    for mut client in clients {
        assert_eq!(client.answer().await.text(), "done");
        assert!(client.is_closed().await);
    }
    running.done().await;
}

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
    settings.concurrency = 8;
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
