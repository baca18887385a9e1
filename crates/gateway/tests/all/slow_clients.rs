//! Clients that are slow, on purpose or not.

use crate::frames;
use crate::support;

use std::time::Duration;

use frames::Frames;
use support::client::{Client, get};
use support::upstream::{Upstream, ok};
use support::{PATIENCE, Running, config, eventually, start, streaming};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SHORT: Duration = Duration::from_millis(150);

#[tokio::test]
async fn a_head_that_drips_is_given_up() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.head = SHORT;
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    let dripping = async {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n").await;
        while client.stream.write_all(b"X: y\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, dripping).await.is_ok(), "it drips for ever");
    let mut client = Client::connect(running.address).await;
    client.send("GET / HT").await;
    assert_eq!(client.answer().await.status, 408);
    assert!(client.is_closed().await);
    running.done().await;
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    // Long enough for one that says something to do so.
    settings.timeouts.idle = Duration::from_secs(1);
    let running = start(settings).await;
    let mut fresh = Client::connect(running.address).await;
    assert!(fresh.is_closed().await);
    let mut used = Client::connect(running.address).await;
    used.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(used.answer().await.status, 200);
    assert!(used.is_closed().await);
    eventually("all connections are gone", || running.gateway.connections() == 0).await;
    running.done().await;
}

#[tokio::test]
async fn a_client_that_never_says_anything_is_not_waited_for_as_long_as_one_that_has() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    // Long enough for those who do say something to do so.
    settings.timeouts.head = Duration::from_secs(1);
    let running = start(settings).await;
    let mut used = Client::connect(running.address).await;
    used.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(used.answer().await.status, 200);
    let mut preface = Frames::connect(running.address).await;
    for _ in 0..2 {
        let mut silent = Client::connect(running.address).await;
        assert!(silent.is_closed().await);
    }
    // By now the others have been silent for as long.
    used.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(used.answer().await.status, 200);
    preface.send_head(1, &frames::request("/", &[]), frames::END_STREAM).await;
    assert!(matches!(preface.outcome(1).await, frames::Outcome::Answered(_)));
    drop((used, preface));
    running.done().await;
}

/// A gateway that gives up soon, and an upstream that reads everything and never answers.
async fn impatient_before_silence() -> (Upstream, Running) {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.stall = SHORT;
    let running = start(settings).await;
    (upstream, running)
}

/// The status of the response to a client that goes on with its body, a piece at a time.
async fn status_while_it_drips(client: &mut Client, piece: &str, every: Duration) -> u16 {
    let (reading, mut writing) = client.stream.split();
    let dripping = async {
        while writing.write_all(piece.as_bytes()).await.is_ok() {
            tokio::time::sleep(every).await;
        }
    };
    let mut answer = Client::on(tokio::io::join(reading, tokio::io::sink()));
    tokio::select! {
        () = dripping => panic!("it is not answered"),
        answer = answer.answer() => answer.status,
    }
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let (_upstream, running) = impatient_before_silence().await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    assert_eq!(client.answer().await.status, 408);
    running.done().await;
}

#[tokio::test]
async fn a_body_that_drips_without_getting_anywhere_is_given_up() {
    let (_upstream, running) = impatient_before_silence().await;
    for (begun, drop_of_it) in [("5\r\nhello\r\n1;", "a"), ("5\r\nhello\r\n0\r\nX: ", "a"), ("000000", "")] {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{begun}")).await;
        assert_eq!(status_while_it_drips(&mut client, drop_of_it, SHORT / 10).await, 408, "{begun:?}");
    }
    running.done().await;
}

/// A body that moves, however slowly, has not stalled. What ends it is the time for the whole request.
#[tokio::test]
async fn what_drips_for_ever_has_an_end_where_there_is_one_for_requests() {
    let upstream = Upstream::new(|mut client, _| async move {
        let head = client.head().await;
        if head.starts_with("GET") {
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").await;
            while client.stream.write_all(&[b'x'; 16384]).await.is_ok() {}
        }
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.total = 3 * SHORT;
    let running = start(settings).await;
    let mut sending = Client::connect(running.address).await;
    sending.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    let mut reading = Client::connect(running.address).await;
    reading.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let (mut answer, mut writing) = sending.stream.split();
    let drip_in = async {
        while writing.write_all(b"x").await.is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    let drip_out = async {
        while matches!(reading.stream.read(&mut [0; 64]).await, Ok(1..)) {
            tokio::time::sleep(SHORT / 10).await;
        }
    };
    let answered = async {
        let mut answer = Client::on(tokio::io::join(&mut answer, tokio::io::sink()));
        assert_eq!(answer.answer().await.status, 504);
    };
    let free = running.no_seat_is_taken();
    tokio::select! {
        () = async { tokio::join!(drip_in, drip_out); } => {}
        () = async { tokio::join!(answered, free); } => {}
    }
    running.no_seat_is_taken().await;
    drop((sending, reading));
    running.done().await;
}

/// A request that gives its seat back with the head of its response has it until then.
#[tokio::test]
async fn a_stream_that_drips_before_its_response_gains_no_more_time_than_one_that_is_silent() {
    let upstream = Upstream::silent().await;
    let mut settings = streaming(config(&[upstream.address]));
    settings.timeouts.stall = Duration::from_secs(1);
    settings.timeouts.response = Duration::from_secs(2);
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n").await;
    assert_eq!(status_while_it_drips(&mut client, "x", SHORT).await, 408);
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up() {
    let upstream = Upstream::endless().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.stall = SHORT;
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.head().await;
    running.no_seat_is_taken().await;
    eventually("its connection is gone", || running.gateway.connections() == 0).await;
    running.done().await;
}

/// How often a slow reader reads, and for how long.
const READS: u32 = 120;
const PAUSE: Duration = Duration::from_millis(50);
/// Much shorter than the reading, and long enough for a machine that is busy with other things.
const STALL: Duration = Duration::from_secs(2);

/// The system keeps megabytes for a client, and says that there is room for more when a good part of that is gone. A client that
/// reads slowly takes longer for that than it may stand still.
#[tokio::test]
async fn a_client_that_reads_slowly_does_not_stand_still() {
    let upstream = Upstream::endless().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.stall = STALL;
    let running = start(settings).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut client = Client::on(socket.connect(running.address).await.unwrap());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    for _ in 0..READS {
        client.stream.read_exact(&mut [0; 1024]).await.unwrap();
        tokio::time::sleep(PAUSE).await;
        assert_eq!(running.gateway.connections(), 1, "it is given up");
    }
    // From now on it does stand still.
    eventually("it is given up", || running.gateway.connections() == 0).await;
    running.done().await;
}

/// The same over HTTP/2, where a client says how much it has room for.
#[tokio::test]
async fn over_http2_a_client_with_little_room_does_not_stand_still() {
    let upstream = Upstream::endless().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.stall = STALL;
    let running = start(settings).await;
    let mut client = Frames::connect(running.address).await;
    client.send_head(1, &frames::request("/", &[]), frames::END_STREAM).await;
    let mut unread = 65_535;
    for _ in 0..READS {
        // 128 bytes more, some 2,500 in a second.
        for stream in [0, 1] {
            client.send(&frames::frame(frames::WINDOW_UPDATE, 0, stream, &128_u32.to_be_bytes())).await;
        }
        unread += 128;
        while unread > 0 {
            let frame = client.next().await.expect("the connection goes on");
            assert_ne!(frame.kind, frames::RST_STREAM, "it is given up");
            unread -= if frame.kind == frames::DATA { frame.payload.len() } else { 0 };
        }
        tokio::time::sleep(PAUSE).await;
    }
    assert_eq!(client.outcome(1).await, frames::Outcome::Reset, "now it does stand still");
    running.done().await;
}

#[tokio::test]
async fn an_answer_that_stalls_is_given_up() {
    let upstream = Upstream::halting().await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.stall = SHORT;
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.rest().await.ends_with(b"half"));
    running.done().await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_along() {
    let (upstream, mut told) = Upstream::telling().await;
    let running = start(streaming(config(&[upstream.address]))).await;
    for request in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf"]
    {
        let mut client = Client::connect(running.address).await;
        client.send(request).await;
        assert_eq!(told.recv().await, Some("begun"));
        client.reset();
        assert_eq!(told.recv().await, Some("cut"));
        running.no_seat_is_taken().await;
    }
    running.done().await;
}

#[tokio::test]
async fn there_is_a_limit_to_connections() {
    let upstream = Upstream::answering(|_| ok("in")).await;
    let mut settings = config(&[upstream.address]);
    settings.limits.connections = 2;
    settings.limits.connections_per_client = 2;
    let running = start(settings).await;
    let (mut first, mut second) = (Client::connect(running.address).await, Client::connect(running.address).await);
    for client in [&mut first, &mut second] {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(client.answer().await.text(), "in");
    }
    let mut third = Client::connect(running.address).await;
    let answer = third.answer().await;
    assert_eq!((answer.status, answer.header("retry-after").as_deref()), (503, Some("1")));
    assert!(third.is_closed().await);
    drop(first);
    eventually("there is room again", || running.gateway.connections() < 2).await;
    assert_eq!(get(running.address, "/", "").await.text(), "in");
    running.done().await;
}
