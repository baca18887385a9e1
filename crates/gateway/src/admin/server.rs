//! Serves the pages of the admin endpoint, with limits. Health checks are served whatever other clients do: nobody can
//! hold a connection that a newer one needs, and one file descriptor is kept for them.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::places::{Place, Places};
use crate::log::Throttle;
use crate::open_files;

/// Connections at a time. One more closes another one.
const CONNECTIONS_MAX: usize = 64;
/// From the connection, or the end of a request, to the end of the next request's head.
const HEAD_TIME: Duration = Duration::from_secs(3);
/// No connection lives longer, however slowly it reads.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
/// A request has no business being longer.
const HEAD_BYTES: usize = 16 * 1024;
/// When there are no files left to open, trying again at once would help nobody.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long it takes until an evicted connection has been closed.
const EVICTION_PAUSE: Duration = Duration::from_millis(5);

/// An open file that makes way for a connection when the process may open no more.
#[derive(Debug)]
struct Reserve(Option<File>);

/// Answers on this listener for as long as the future lives. It is HTTP/1.1 without TLS.
pub async fn serve(listener: TcpListener, pages: Router) {
    let places = Arc::<Places>::default();
    let mut reserve = Reserve::new();
    let mut warnings = Throttle::default();
    loop {
        let accepted = tokio::select! {
            biased;
            () = places.one_closed() => {
                reserve.refill();
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                reserve.refill();
                begin(&places, stream, pages.clone());
            }
            Err(error) if open_files::is_shortage(&error) && reserve.release() => {}
            Err(error) if open_files::is_shortage(&error) && places.evict() => sleep(EVICTION_PAUSE).await,
            Err(error) => {
                if warnings.may_log() {
                    tracing::warn!(%error, "the admin endpoint cannot accept a connection");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn begin(places: &Arc<Places>, stream: TcpStream, pages: Router) {
    let place = places.take(CONNECTIONS_MAX);
    let number = place.number();
    let task = tokio::spawn(async move {
        let _ = timeout(CONNECTION_TIME, connection(stream, pages, &place)).await;
    });
    Place::set_task(places, number, task.abort_handle());
}

async fn connection(stream: TcpStream, pages: Router, place: &Place) {
    let pages = TowerToHyperService::new(pages);
    let noted = service_fn(|request: Request<Incoming>| {
        place.note_request();
        pages.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(64)
        .serve_connection(TokioIo::new(stream), noted)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the admin endpoint has ended early");
    }
}

// === impl Reserve ===

impl Reserve {
    fn new() -> Self {
        let mut reserve = Self(None);
        reserve.refill();
        reserve
    }

    /// Takes a descriptor if it has none and there is one.
    fn refill(&mut self) {
        if self.0.is_none() {
            self.0 = open().ok();
        }
    }

    /// Gives the descriptor up; whether there was one.
    fn release(&mut self) -> bool {
        self.0.take().is_some()
    }
}

fn open() -> io::Result<File> {
    File::open("/dev/null")
}
