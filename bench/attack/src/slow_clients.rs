//! Clients that dawdle: others are served as quickly as without them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use evenkeel_bars::Bar;
use evenkeel_process::{median, p99_ms};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::Stage;
use crate::http1::{Reader, connect, connect_narrow, get};
use crate::http2::{DATA, END_STREAM, frame, opening, request};
use crate::server::{Server, Setup};
use crate::upstream::Upstream;

/// Rounds without and with the attack take turns, so that other work on the machine counts for both; a figure is the
/// median of its rounds.
const ROUNDS: usize = 13;
const ROUND: Duration = Duration::from_millis(600);
/// For connections to be made, or to go.
const SETTLING: Duration = Duration::from_millis(200);

/// The others.
const OTHERS: usize = 8;
const OTHERS_FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const WORK: &str = "/busy/10";
const RETRY_AFTER: Duration = Duration::from_millis(10);

const ATTACKERS_FROM: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Between two bytes.
const PAUSE: Duration = Duration::from_millis(250);
/// More than the gateway receives before a request takes a seat.
const BODY_BYTES: usize = 1_000_000;
/// As much as the gateway receives before a request takes a seat.
const REQUEST_BUFFER: usize = 64 << 10;
/// Less than what the gateway keeps of a response.
const RESPONSE_BYTES: usize = 900_000;
/// More than what the gateway and the system keep of a response.
const RESPONSE_BYTES_LARGE: usize = 16_000_000;

/// A head that says that a message of gRPC follows, and one that has come without its last byte.
const CALL: (&str, &str) = ("content-type", "application/grpc");
const MESSAGE_PART: &[u8] = b"\0\0\0\0\x02x";

/// The bar, in times of what others have without the attack.
const P99_TIMES_MAX: Option<f64> = Some(1.5);

/// The p99 of the others' requests in each round, in milliseconds.
#[derive(Debug, Default)]
struct Figures {
    without: Vec<f64>,
    with: Vec<f64>,
}

/// What an attacker does on a connection of its own.
#[derive(Debug, Clone, Copy)]
enum Slow {
    /// Sends a body byte by byte, after so many that are sent at once.
    Body { ahead: usize },
    /// The same over HTTP/2.
    StreamBody,
    /// Sends a message of gRPC, or what calls itself one, and not its end.
    Message,
    /// The same over HTTP/2, or the head of a call and no message.
    StreamMessage { part: &'static [u8] },
    /// Asks for permission to send a body, and sends nothing of it.
    Permission,
    /// Reads a response byte by byte.
    Reader { bytes: usize },
    /// Reads nothing of a response.
    NoReader { bytes: usize },
    /// The same over HTTP/2.
    NoStreamReader { bytes: usize },
}

/// Bodies of which nearly nothing comes.
pub(crate) fn bodies(stage: &mut Stage, attack: &str) -> Result<()> {
    for connections in [25, 200] {
        let name = format!("{attack}, {connections} connections");
        let figures = run(stage, &name, connections, &[Slow::Body { ahead: 0 }, Slow::StreamBody])?;
        figures.add(stage, &name, P99_TIMES_MAX);
    }
    Ok(())
}

/// Bodies that call themselves gRPC, in front of an upstream of HTTP/1.1.
pub(crate) fn called_grpc(stage: &mut Stage, attack: &str) -> Result<()> {
    calls_to(stage, attack, "http1")
}

/// Calls of gRPC whose first message does not end, in front of an upstream of HTTP/2.
pub(crate) fn calls(stage: &mut Stage, attack: &str) -> Result<()> {
    calls_to(stage, attack, "auto")
}

fn calls_to(stage: &mut Stage, attack: &str, protocol: &str) -> Result<()> {
    let name = format!("{attack}, 25 connections");
    let slow = [Slow::Message, Slow::StreamMessage { part: MESSAGE_PART }, Slow::StreamMessage { part: b"" }];
    let figures = run_with(stage, &name, protocol, 25, &slow)?;
    figures.add(stage, &name, P99_TIMES_MAX);
    Ok(())
}

/// Clients that ask for permission to send their bodies.
pub(crate) fn permission(stage: &mut Stage, attack: &str) -> Result<()> {
    let name = format!("{attack}, 60 connections");
    let figures = run(stage, &name, 60, &[Slow::Permission])?;
    figures.add(stage, &name, P99_TIMES_MAX);
    Ok(())
}

/// Responses that the gateway can keep for clients that do not read them.
pub(crate) fn readers(stage: &mut Stage, attack: &str) -> Result<()> {
    let (name, bytes) = (format!("{attack}, 100 connections"), RESPONSE_BYTES);
    let slow = [Slow::Reader { bytes }, Slow::NoReader { bytes }, Slow::NoStreamReader { bytes }];
    let figures = run(stage, &name, 100, &slow)?;
    figures.add(stage, &name, P99_TIMES_MAX);
    Ok(())
}

/// Requests that have seats when their clients begin to dawdle: their bodies, or responses, are larger than what the
/// gateway keeps.
pub(crate) fn with_seats(stage: &mut Stage, attack: &str) -> Result<()> {
    let bytes = RESPONSE_BYTES_LARGE;
    for (name, slow) in [("bodies", Slow::Body { ahead: REQUEST_BUFFER }), ("readers", Slow::NoReader { bytes })] {
        let name = format!("{attack}, {name}, 25 connections");
        let figures = run(stage, &name, 25, &[slow])?;
        figures.add(stage, &name, None);
    }
    Ok(())
}

/// Measures the others without and with attackers, in turn.
fn run(stage: &mut Stage, attack: &str, connections: usize, slow: &[Slow]) -> Result<Figures> {
    run_with(stage, attack, "auto", connections, slow)
}

/// The same with this protocol for the upstream.
fn run_with(stage: &mut Stage, attack: &str, protocol: &str, connections: usize, slow: &[Slow]) -> Result<Figures> {
    let (gateway, figures) = stage.runtime.block_on(async {
        let upstream = Upstream::start()?;
        let gateway = Server::gateway_with(upstream.address, Setup { protocol, ..Setup::default() })?;
        let address = gateway.address();
        let mut figures = Figures::default();
        for _ in 0..ROUNDS {
            figures.without.push(p99_ms(round(address).await?));
            let mut attackers = JoinSet::new();
            for (_, slow) in (0..connections).zip(slow.iter().copied().cycle()) {
                attackers.spawn(async move {
                    loop {
                        // Whoever is cut off tries again.
                        let _ = slow.act(address).await;
                        sleep(PAUSE).await;
                    }
                });
            }
            sleep(SETTLING).await;
            figures.with.push(p99_ms(round(address).await?));
            attackers.shutdown().await;
            sleep(SETTLING).await;
        }
        anyhow::Ok((gateway, figures))
    })?;
    stage.end(attack, gateway)?;
    Ok(figures)
}

/// How long requests of the others take. One that is rejected is sent again until it is served; one that is not served when
/// the round ends counts with the time so far.
async fn round(address: SocketAddr) -> Result<Vec<Duration>> {
    let end = Instant::now() + ROUND;
    let mut others = JoinSet::new();
    for _ in 0..OTHERS {
        others.spawn(async move {
            let mut client = Reader::new(connect(OTHERS_FROM, address).await?);
            let mut times = Vec::new();
            while Instant::now() < end {
                let start = Instant::now();
                let served = async {
                    while !client.exchange(&get(WORK)).await?.is_success() {
                        sleep(RETRY_AFTER).await;
                    }
                    anyhow::Ok(())
                };
                if let Ok(served) = timeout_at(end, served).await {
                    served?;
                } else if start.elapsed() < ROUND / 10 {
                    // It has just begun.
                    break;
                }
                times.push(start.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(client) = others.join_next().await {
        times.extend(client??);
    }
    Ok(times)
}

// === impl Figures ===

impl Figures {
    fn add(self, stage: &mut Stage, attack: &str, times_max: Option<f64>) {
        let (without, with) = (median(self.without), median(self.with));
        let bar = times_max.map_or(Bar::None, |times| Bar::TimesAtMost(times, without));
        let unit = format!("ms ({without:.1} ms without it)");
        stage.bars.add(format!("{attack}: p99 of others"), with, &unit, bar);
    }
}

// === impl Slow ===

impl Slow {
    /// Until the connection ends.
    async fn act(self, address: SocketAddr) -> Result<()> {
        match self {
            Self::Body { ahead } => {
                let mut stream = connect(ATTACKERS_FROM, address).await?;
                let head = format!("POST {WORK} HTTP/1.1\r\nHost: shop\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&vec![b'x'; ahead]).await?;
                drip(&mut stream, b"x").await
            }
            Self::StreamBody => {
                let mut stream = connect(ATTACKERS_FROM, address).await?;
                stream.write_all(&[opening(), request(1, "POST", WORK, &[], 0)].concat()).await?;
                drip(&mut stream, &frame(DATA, 0, 1, b"x")).await
            }
            Self::Message => {
                let mut stream = connect(ATTACKERS_FROM, address).await?;
                let (name, value) = CALL;
                let head = format!(
                    "POST {WORK} HTTP/1.1\r\nHost: shop\r\n{name}: {value}\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
                );
                stream.write_all(&[head.as_bytes(), MESSAGE_PART].concat()).await?;
                until_closed(&mut stream).await
            }
            Self::StreamMessage { part } => {
                let mut stream = connect(ATTACKERS_FROM, address).await?;
                let part = frame(DATA, 0, 1, part);
                stream.write_all(&[opening(), request(1, "POST", WORK, &[CALL], 0), part].concat()).await?;
                until_closed(&mut stream).await
            }
            Self::Permission => {
                let mut stream = connect(ATTACKERS_FROM, address).await?;
                let expects = "Expect: 100-continue\r\nContent-Length: 100";
                stream.write_all(format!("POST {WORK} HTTP/1.1\r\nHost: shop\r\n{expects}\r\n\r\n").as_bytes()).await?;
                until_closed(&mut stream).await
            }
            Self::Reader { bytes } => {
                let mut stream = asked(address, bytes).await?;
                while stream.read(&mut [0]).await? > 0 {
                    sleep(PAUSE).await;
                }
                Ok(())
            }
            Self::NoReader { bytes } => {
                let stream = asked(address, bytes).await?;
                until_cut(&stream).await
            }
            Self::NoStreamReader { bytes } => {
                let mut stream = connect_narrow(ATTACKERS_FROM, address).await?;
                let ask = request(1, "GET", &format!("/large/{bytes}"), &[], END_STREAM);
                stream.write_all(&[opening(), ask].concat()).await?;
                until_cut(&stream).await
            }
        }
    }
}

async fn asked(address: SocketAddr, bytes: usize) -> Result<TcpStream> {
    let mut stream = connect_narrow(ATTACKERS_FROM, address).await?;
    stream.write_all(get(&format!("/large/{bytes}")).as_bytes()).await?;
    Ok(stream)
}

async fn drip(stream: &mut TcpStream, drop: &[u8]) -> Result<()> {
    loop {
        sleep(PAUSE).await;
        stream.write_all(drop).await?;
    }
}

/// Reads until the other side has closed the connection.
async fn until_closed(stream: &mut TcpStream) -> Result<()> {
    copy(stream, &mut sink()).await?;
    Ok(())
}

/// Waits without reading until the other side has reset the connection.
async fn until_cut(stream: &TcpStream) -> Result<()> {
    while stream.take_error()?.is_none() {
        sleep(PAUSE).await;
    }
    Ok(())
}
