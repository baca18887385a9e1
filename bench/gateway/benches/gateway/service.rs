//! A service with a limited capacity: so many requests at a time, each of which takes the same time; others wait.
//!
//! Its work is waiting for a timer, so that a busy machine does not change how much it can do.

use std::convert::Infallible;
use std::io::{self, Error};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_process::{Process, free_address};
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::role::Role;

/// How many requests it works on at a time.
pub(crate) const SLOTS: usize = 20;

/// How long each of them takes.
pub(crate) const WORK: Duration = Duration::from_millis(50);

/// A service in a process of its own.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) process: Process,
    _folder: TempDir,
}

// === impl Service ===

impl Service {
    pub(crate) fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let address = free_address()?;
        let process = Process::start(Role::Service.command()?.arg(address.to_string()), address, folder.path())?;
        Ok(Self { process, _folder: folder })
    }
}

/// What the process does.
pub(crate) fn run() -> io::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| Error::other("the service needs an address"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        let slots = Arc::new(Semaphore::new(SLOTS));
        loop {
            let (stream, _) = listener.accept().await?;
            drop(tokio::spawn(serve(stream, Arc::clone(&slots))));
        }
    })
}

async fn serve(stream: TcpStream, slots: Arc<Semaphore>) {
    let answer = service_fn(move |_request| {
        let slots = Arc::clone(&slots);
        async move { Ok::<_, Infallible>(work(&slots).await) }
    });
    // A connection that breaks is its client's concern.
    let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), answer).await;
}

async fn work(slots: &Semaphore) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"done")));
    match slots.acquire().await {
        Ok(_slot) => sleep(WORK).await,
        Err(_) => *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE,
    }
    response
}
