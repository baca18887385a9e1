//! The sample service: it can do so much and no more, and the more requests are inside, the slower it gets for all.
//!
//! Its work is waiting for a timer, so that a busy machine does not change how much it can do.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The capacity of a service, and how it degrades with too many requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// How many requests it works on at a time.
    pub(crate) workers: usize,
    /// How long a request takes on average when the service has room.
    pub(crate) work_ms: u64,
    /// So many waiting requests add the time of one request without waiting ones to each request.
    pub(crate) waiting_per_slowdown: usize,
    /// How many times slower it is at worst.
    pub(crate) slowdown_max: u32,
}

/// The service of the parts with greedy and polite tenants.
pub(crate) const SAMPLE: Abilities = Abilities { workers: 8, work_ms: 20, waiting_per_slowdown: 32, slowdown_max: 4 };

/// More are rejected: everything has a limit.
const INSIDE_MAX: usize = 4096;

/// A service on a port of this machine. It stops when it is dropped.
#[derive(Debug)]
pub(crate) struct SampleService {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// The state that its connections share.
#[derive(Debug)]
struct Capacity {
    abilities: Abilities,
    workers: Semaphore,
    inside: AtomicUsize,
    started: AtomicUsize,
}

/// A request inside of the service; it leaves when this is dropped, also when its client has gone away.
struct Inside<'a>(&'a Capacity);

// === impl SampleService ===

impl SampleService {
    pub(crate) async fn start(abilities: Abilities) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, accepting: tokio::spawn(accept(listener, Arc::new(Capacity::new(abilities)))) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for SampleService {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, capacity: Arc<Capacity>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&capacity)))),
            // Out of file descriptors, say: some will be free again.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, capacity: Arc<Capacity>) {
    let answer = service_fn(move |_request| {
        let capacity = Arc::clone(&capacity);
        async move { Ok::<_, Infallible>(capacity.answer().await) }
    });
    // A connection that breaks is its client's concern.
    let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), answer).await;
}

// === impl Capacity ===

impl Capacity {
    fn new(abilities: Abilities) -> Self {
        let workers = Semaphore::new(abilities.workers);
        Self { abilities, workers, inside: AtomicUsize::new(0), started: AtomicUsize::new(0) }
    }

    async fn answer(&self) -> Response<Full<Bytes>> {
        let inside = Inside::enter(self);
        let full = || response(StatusCode::SERVICE_UNAVAILABLE, "the sample service is full\n".to_owned());
        if inside.count() > INSIDE_MAX {
            return full();
        }
        let Ok(worker) = self.workers.acquire().await else { return full() };
        let work = self.abilities.work(inside.count(), self.started.fetch_add(1, Ordering::Relaxed));
        sleep(work).await;
        drop(worker);
        response(StatusCode::OK, format!("hello from the sample service, after {} ms of work\n", work.as_millis()))
    }
}

// === impl Abilities ===

impl Abilities {
    /// How long a request takes when so many are inside. No two in a row take the same time.
    fn work(self, inside: usize, sequence: usize) -> Duration {
        let variation = u64::try_from(sequence * 7 % 9).unwrap_or_default();
        let alone = Duration::from_millis(self.work_ms - 4 + variation);
        let waiting = inside.saturating_sub(self.workers);
        let slowdown = u32::try_from(waiting * 100 / self.waiting_per_slowdown).unwrap_or(u32::MAX);
        alone + alone * slowdown.min((self.slowdown_max - 1) * 100) / 100
    }
}

fn response(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}

// === impl Inside ===

impl<'a> Inside<'a> {
    fn enter(capacity: &'a Capacity) -> Self {
        capacity.inside.fetch_add(1, Ordering::Relaxed);
        Self(capacity)
    }

    fn count(&self) -> usize {
        self.0.inside.load(Ordering::Relaxed)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_slower_the_more_requests_wait_and_never_slower_than_its_limit() {
        let average = |inside| (0..9).map(|sequence| SAMPLE.work(inside, sequence)).sum::<Duration>() / 9;
        let Abilities { workers, work_ms, waiting_per_slowdown, slowdown_max } = SAMPLE;
        assert_eq!(average(1), Duration::from_millis(work_ms));
        assert_eq!(average(workers), Duration::from_millis(work_ms));
        assert_eq!(average(workers + waiting_per_slowdown), Duration::from_millis(2 * work_ms));
        assert_eq!(average(1000), Duration::from_millis(u64::from(slowdown_max) * work_ms));
    }
}
