//! Two upstreams of which one fails in five ways: what both together serve, beside what a good one alone serves.
//!
//! Everything is in one process. The good upstream takes the same time for each request, however many there are, so every
//! request that is lost or waits elsewhere is missing in the figure.

#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod upstream;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use evenkeel_bars::{Bar, Bars};
use evenkeel_gateway::config::{AdminConfig, Config, ListenConfig, UpstreamConfig};
use evenkeel_gateway::{Gateway, objects};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use upstream::Manner;

/// As in the `evenkeel` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CLIENTS: usize = 16;
/// Clients begin, and after this time the gateway knows.
const WARM_UP: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(8);
const BAR: f64 = 0.95;

fn main() -> io::Result<ExitCode> {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    if !bars.wants("upstreams") {
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        for (name, manner) in [
            ("responds 503 at once", Manner::Unavailable),
            ("responds 500 to half", Manner::HalfFailing),
            ("is ten times slower", Manner::Slow),
            ("resets connections", Manner::Resetting),
            ("accepts and never answers", Manner::Silent),
        ] {
            // At the same time, so that what else the machine does concerns both.
            let (good, one_fails) = ([Manner::Good], [Manner::Good, manner]);
            let (alone, both) = tokio::try_join!(served(&good), served(&one_fails))?;
            bars.add(format!("upstreams: one that {name}"), both, "requests/s", Bar::TimesAtLeast(BAR, alone));
        }
        io::Result::Ok(())
    })?;
    bars.print("Two upstreams of which one fails: responses with status 200 after 2 s");
    Ok(ExitCode::SUCCESS)
}

/// Responses with status 200 per second, of a new gateway in front of new upstreams.
async fn served(manners: &[Manner]) -> io::Result<f64> {
    let mut upstreams = Vec::new();
    for manner in manners {
        upstreams.push(upstream::start(*manner).await?);
    }
    let mut config = Config {
        listen: vec![ListenConfig {
            address: SocketAddr::from(([127, 0, 0, 1], 0)).into(),
            tls: None,
            ..ListenConfig::default()
        }],
        admin: AdminConfig { address: None, ..AdminConfig::default() },
        ..Config::default()
    };
    for upstream in &upstreams {
        config.upstreams.push(UpstreamConfig::new(&format!("http://{}", upstream.address)).map_err(io::Error::other)?);
    }
    let source = objects::source(&config);
    let gateway = Gateway::start(config, source).await.map_err(io::Error::other)?;
    let (count, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(client(gateway.addresses()[0], Arc::clone(&count), Arc::clone(&is_over))))
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let (start, before) = (Instant::now(), count.load(Ordering::Relaxed));
    tokio::time::sleep(WINDOW).await;
    let served = count.load(Ordering::Relaxed) - before;
    let rate = served as f64 / start.elapsed().as_secs_f64();
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.abort();
    }
    Ok(rate)
}

/// Sends one request after the other, on connections that it keeps as long as the gateway does.
async fn client(gateway: SocketAddr, count: Arc<AtomicU64>, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        let Ok(stream) = TcpStream::connect(gateway).await else { return };
        // A connection that ends is replaced.
        let _ = requests(stream, &count).await;
    }
}

async fn requests(mut stream: TcpStream, count: &AtomicU64) -> io::Result<()> {
    let mut read = Vec::with_capacity(4096);
    loop {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await?;
        read.clear();
        while !is_complete(&read) {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        }
        count.fetch_add(u64::from(read.starts_with(b"HTTP/1.1 200 ")), Ordering::Relaxed);
    }
}

/// Whether this is a whole response.
fn is_complete(read: &[u8]) -> bool {
    let text = String::from_utf8_lossy(read).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}

/// A task that ends when it is dropped.
struct Task(tokio::task::JoinHandle<()>);

impl Task {
    fn new(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
