//! What one client can take: connections, streams, memory and time have bounds.

use crate::frames;
use crate::support;

use std::net::SocketAddr;
use std::time::Duration;

use frames::{DATA, END_STREAM, Frames, Outcome, frame, request};
use support::client::{Client, get};
use support::upstream::{Upstream, ok};
use support::{PATIENCE, config, eventually, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

/// A connection from another address of this machine.
async fn from(address: [u8; 4], gateway: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    Client::on(socket.connect(gateway).await.unwrap())
}

/// A number on the metrics page.
async fn metric(admin: SocketAddr, name: &str) -> usize {
    let page = get(admin, "/metrics", "").await.text();
    let line = page.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn silent_websockets_of_one_address_leave_room_for_others() {
    let upstream = Upstream::new(|mut client, _| async move {
        let head = client.head().await;
        if head.starts_with("GET /chat") {
            client.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
        } else {
            client.send(&ok("served")).await;
        }
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.limits.connections = 40;
    let running = start(settings).await;
    let mut silent = Vec::new();
    for number in 0..40 {
        let mut client = Client::connect(running.address).await;
        let handshake = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        // The one that is refused may be told so, and closed, before this is sent.
        let _ = client.stream.write_all(handshake.as_bytes()).await;
        let head = client.head().await;
        let expected = if number < 10 { "HTTP/1.1 101 " } else { "HTTP/1.1 503 " };
        assert!(head.starts_with(expected), "{number}: {head}");
        silent.push(client);
    }
    let mut other = from([127, 0, 0, 2], running.address).await;
    other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(other.answer().await.text(), "served");
    drop((silent, other));
    running.done().await;
}

#[tokio::test]
async fn an_upgraded_connection_on_which_nothing_moves_is_closed() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n").await;
        // It says something for longer than the limit, in one direction.
        for _ in 0..15 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            client.send("tick").await;
        }
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.upgrade_idle = Duration::from_secs(1);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n").await;
    client.head().await;
    assert_eq!(client.rest().await, b"tick".repeat(15));
    running.done().await;
}

#[tokio::test]
async fn there_is_a_limit_to_the_streams_of_one_client() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.limits.streams_per_client = 6;
    settings.timeouts.response = Duration::from_secs(3);
    let running = start(settings).await;
    let (mut first, mut second) = (Frames::connect(running.address).await, Frames::connect(running.address).await);
    for stream in [1, 3, 5] {
        first.send_head(stream, &request("/", &[]), END_STREAM).await;
        second.send_head(stream, &request("/", &[]), END_STREAM).await;
    }
    eventually("they have all begun", || upstream.connections() == 6).await;
    second.send_head(7, &request("/", &[]), END_STREAM).await;
    let Outcome::Answered(body) = second.outcome(7).await else { panic!("it is not answered") };
    assert!(body.contains("too many requests at the same time"), "{body}");
    drop((first, second));
    running.done().await;
}

#[tokio::test]
async fn heads_that_arrive_in_part_have_a_budget_and_the_slowest_go_first() {
    const BUDGET: usize = 1 << 20;
    let upstream = Upstream::answering(|_| ok("served")).await;
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.limits.buffer_bytes = BUDGET;
    settings.limits.response_buffer = BUDGET;
    let running = start(settings).await;
    let admin = running.gateway.admin_address().unwrap();
    let mut partial = Vec::new();
    for number in 0..60_u8 {
        let mut client = from([127, 0, 1, number + 1], running.address).await;
        client.send(&format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}", "x".repeat(60_000))).await;
        partial.push(client);
    }
    let mut first = partial.remove(0);
    assert_eq!(first.answer().await.status, 503);
    // A connection that has to go gives its bytes back when its task runs, so that each worker may have a head too many for a moment.
    loop {
        let used = metric(admin, "evenkeel_buffered_bytes").await;
        assert!((1..2 * BUDGET).contains(&used), "{used}");
        if used <= BUDGET {
            break;
        }
    }
    // Whoever is quick is served, and so are the last of them.
    assert_eq!(get(running.address, "/", "").await.text(), "served");
    let mut last = partial.pop().unwrap();
    last.send("\r\n\r\n").await;
    assert_eq!(last.answer().await.text(), "served");
    drop((partial, first, last));
    running.done().await;
}

#[tokio::test]
async fn heads_of_one_client_take_a_share_of_the_budget_only() {
    let upstream = Upstream::answering(|_| ok("served")).await;
    let mut settings = config(&[upstream.address]);
    settings.limits.buffer_bytes = 1 << 20;
    settings.limits.response_buffer = 1 << 20;
    let running = start(settings).await;
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Long: {}", "x".repeat(60_000));
    let mut polite = from([127, 0, 0, 2], running.address).await;
    polite.send(&long).await;
    let mut greedy = Vec::new();
    for _ in 0..60 {
        let mut client = Client::connect(running.address).await;
        client.send(&long).await;
        greedy.push(client);
    }
    assert_eq!(greedy.pop().unwrap().answer().await.status, 503);
    polite.send("\r\n\r\n").await;
    assert_eq!(polite.answer().await.text(), "served");
    drop((greedy, polite));
    running.done().await;
}

/// The memory of this process, in bytes.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn interim_responses_to_a_client_that_does_not_read_take_no_memory() {
    const HINTS: usize = 20_000;
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let upstream = Upstream::new(move |mut client, _| {
        let told = told.clone();
        async move {
            client.head().await;
            let hint = format!("HTTP/1.1 103 Early Hints\r\nLink: <{}>\r\n\r\n", "x".repeat(8000));
            for _ in 0..HINTS {
                client.send(&hint).await;
            }
            told.send(memory()).unwrap();
            client.send(&ok("at last")).await;
            client.rest().await;
        }
    })
    .await;
    let running = start(config(&[upstream.address])).await;
    let before = memory();
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let grown = hears.recv().await.unwrap().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MB", grown >> 20);
    // The client gets some of them, and the response.
    while client.head().await.starts_with("HTTP/1.1 103 ") {}
    assert_eq!(client.exactly(7).await, b"at last");
    drop(client);
    running.done().await;
}

/// Sends a byte of each of two bodies from time to time, one of HTTP/1.1 and one of HTTP/2.
async fn bodies_that_drip_end_with_408(mut client: Client, mut http2: Frames) {
    let (mut reading, mut writing) = client.stream.split();
    let dripping = async {
        for _ in 0..150 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            if writing.write_all(b"x").await.is_err() || !http2.try_send(&frame(DATA, 0, 1, b"x")).await {
                return;
            }
        }
    };
    let mut response = Vec::new();
    tokio::select! {
        () = dripping => {}
        read = reading.read_to_end(&mut response) => assert!(read.is_ok()),
    }
    assert!(response.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&response));
    let Outcome::Answered(body) = http2.outcome(1).await else { panic!("it is not answered") };
    assert!(body.contains("too slowly"), "{body}");
}

#[tokio::test]
async fn a_body_that_drips_ends_with_408_while_it_holds_a_seat() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    // It has its seat with its head.
    settings.limits.request_buffer = 0;
    settings.timeouts.response = Duration::from_secs(3);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/", &[]), 0).await;
    bodies_that_drip_end_with_408(client, http2).await;
    running.done().await;
}

/// A client that has many uploads under way, each of which is within the limits.
#[tokio::test]
async fn uploads_beyond_the_share_of_their_client_are_forwarded_as_they_come() {
    const UPLOAD: usize = 250_000;
    let upstream = Upstream::answering(|request| ok(&request.body.len().to_string())).await;
    let mut settings = config(&[upstream.address]);
    // Three uploads have more than a quarter of it.
    (settings.limits.buffer_bytes, settings.limits.response_buffer) = (1 << 20, 1 << 20);
    settings.limits.request_buffer = 1 << 18;
    let running = start(settings).await;
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {UPLOAD}\r\n\r\n")).await;
        client.send(&"x".repeat(UPLOAD - 1)).await;
        all.push(client);
    }
    let executing = || running.gateway.flow().status().iter().map(|level| level.executing).sum::<usize>();
    // How many depends on how they arrive.
    eventually("some have seats before they are complete", || executing() > 0).await;
    for mut client in all {
        client.send("x").await;
        assert_eq!(client.answer().await.text(), UPLOAD.to_string());
    }
    running.done().await;
}

#[tokio::test]
async fn a_reader_that_drips_loses_its_seat() {
    drip_out(config(&[]).limits.response_buffer).await;
}

#[tokio::test]
async fn a_reader_that_drips_loses_its_seat_where_nothing_is_read_ahead() {
    drip_out(0).await;
}

async fn drip_out(response_buffer: usize) {
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").await;
        while client.stream.write_all(&[b'x'; 16384]).await.is_ok() {}
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.response = Duration::from_secs(3);
    settings.limits.response_buffer = response_buffer;
    let running = start(settings).await;
    let mut http1 = Client::connect(running.address).await;
    http1.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    http1.head().await;
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/", &[]), END_STREAM).await;
    // One reads a byte at a time, the other gives room for one.
    let dripping = async {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let one = 1_u32.to_be_bytes();
            let read = http1.stream.read(&mut [0]).await;
            if !matches!(read, Ok(1)) && !http2.try_send(&frame(frames::WINDOW_UPDATE, 0, 1, &one)).await {
                return;
            }
            http2.try_send(&frame(frames::WINDOW_UPDATE, 0, 1, &one)).await;
        }
    };
    tokio::select! {
        () = dripping => {}
        () = running.no_seat_is_taken() => {}
    }
    drop((http1, http2));
    running.done().await;
}

#[tokio::test]
async fn a_body_that_was_asked_for_may_not_drip_either() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.response = Duration::from_secs(3);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n").await;
    assert_eq!(client.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/", &[("expect", "100-continue")]), 0).await;
    bodies_that_drip_end_with_408(client, http2).await;
    running.done().await;
}

#[tokio::test]
async fn a_body_within_the_limit_is_let_through_however_it_arrives() {
    let upstream = Upstream::answering(|request| ok(&request.body.len().to_string())).await;
    let mut settings = config(&[upstream.address]);
    settings.limits.body_bytes = 1000;
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx").await;
    let mut http2 = Frames::connect(running.address).await;
    http2.send_head(1, &request("/", &[("content-length", "1000")]), 0).await;
    http2.send(&frame(DATA, 0, 1, b"x")).await;
    // By now the gateway has the first part.
    assert_eq!(get(running.address, "/", "").await.text(), "0");
    client.send(&"x".repeat(999)).await;
    assert_eq!(client.answer().await.text(), "1000");
    http2.send(&frame(DATA, END_STREAM, 1, &[b'x'; 999])).await;
    assert_eq!(http2.outcome(1).await, Outcome::Answered("1000".to_owned()));
    drop((client, http2));
    running.done().await;
}

#[tokio::test]
async fn many_downloads_of_one_client_do_not_push_each_other_out() {
    const RESPONSE: usize = 24 << 20;
    let upstream = Upstream::new(|mut client, _| async move {
        client.head().await;
        client.send(&format!("HTTP/1.1 200 OK\r\nContent-Length: {RESPONSE}\r\n\r\n")).await;
        for _ in 0..RESPONSE / 16384 {
            client.stream.write_all(&[b'x'; 16384]).await.unwrap();
        }
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    // A quarter of it has room for one or two responses that are read ahead.
    settings.limits.buffer_bytes = 8 << 20;
    let running = start(settings).await;
    let mut all = Vec::new();
    for _ in 0..8 {
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.head().await;
        all.push(client);
    }
    // So much is read ahead that there is no room for more.
    let admin = running.gateway.admin_address().unwrap();
    let is_full = async {
        while metric(admin, "evenkeel_buffered_bytes").await < 1 << 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_full).await.expect("little is read ahead");
    let all: Vec<_> =
        all.into_iter().map(|mut client| tokio::spawn(async move { client.exactly(RESPONSE).await })).collect();
    for one in all {
        assert_eq!(one.await.unwrap().len(), RESPONSE);
    }
    running.done().await;
}

#[tokio::test]
async fn a_body_that_is_too_slow_before_it_has_a_seat_is_counted() {
    let upstream = Upstream::answering(|_| ok("served")).await;
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.timeouts.stall = Duration::from_millis(150);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    assert_eq!(client.answer().await.status, 408);
    assert_eq!(metric(running.gateway.admin_address().unwrap(), "evenkeel_clients_too_slow_total").await, 1);
    drop(client);
    running.done().await;
}
