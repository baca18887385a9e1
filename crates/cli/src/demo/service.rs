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

/// How many requests it works on at a time.
pub(crate) const WORKERS: usize = 8;

/// How long a request takes on average when the service has room.
pub(crate) const WORK_MS: u64 = 20;

/// How many times slower it is at worst.
pub(crate) const SLOWDOWN_MAX: u32 = 4;

/// So many waiting requests add the time of one request without waiting ones to each request.
const WAITING_PER_SLOWDOWN: usize = 32;

/// More are rejected: everything has a limit.
const INSIDE_MAX: usize = 4096;

/// A service on a port of this machine. It stops when it is dropped.
#[derive(Debug)]
pub(crate) struct SampleService {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// What its connections share.
#[derive(Debug)]
struct Capacity {
    workers: Semaphore,
    inside: AtomicUsize,
    started: AtomicUsize,
}

/// A request inside of the service; it leaves when this is dropped, also when its client has gone away.
struct Inside<'a>(&'a Capacity);

// === impl SampleService ===

impl SampleService {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, accepting: tokio::spawn(accept(listener, Arc::new(Capacity::new()))) })
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
    fn new() -> Self {
        Self { workers: Semaphore::new(WORKERS), inside: AtomicUsize::new(0), started: AtomicUsize::new(0) }
    }

    async fn answer(&self) -> Response<Full<Bytes>> {
        let inside = Inside::enter(self);
        let full = || response(StatusCode::SERVICE_UNAVAILABLE, "the sample service is full\n".to_owned());
        if inside.count() > INSIDE_MAX {
            return full();
        }
        let Ok(worker) = self.workers.acquire().await else { return full() };
        let work = work(inside.count(), self.started.fetch_add(1, Ordering::Relaxed));
        sleep(work).await;
        drop(worker);
        response(StatusCode::OK, format!("hello from the sample service, after {} ms of work\n", work.as_millis()))
    }
}

/// How long a request takes when so many are inside. No two in a row take the same time.
fn work(inside: usize, sequence: usize) -> Duration {
    let variation = u64::try_from(sequence * 7 % 9).unwrap_or_default();
    let alone = Duration::from_millis(WORK_MS - 4 + variation);
    let waiting = inside.saturating_sub(WORKERS);
    let slowdown = u32::try_from(waiting * 100 / WAITING_PER_SLOWDOWN).unwrap_or(u32::MAX);
    alone + alone * slowdown.min((SLOWDOWN_MAX - 1) * 100) / 100
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
        let average = |inside| (0..9).map(|sequence| work(inside, sequence)).sum::<Duration>() / 9;
        assert_eq!(average(1), Duration::from_millis(WORK_MS));
        assert_eq!(average(WORKERS), Duration::from_millis(WORK_MS));
        assert_eq!(average(WORKERS + WAITING_PER_SLOWDOWN), Duration::from_millis(2 * WORK_MS));
        assert_eq!(average(1000), Duration::from_millis(u64::from(SLOWDOWN_MAX) * WORK_MS));
    }
}
