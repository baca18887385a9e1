//! Serves the pages of the admin endpoint, with limits. Health checks are served whatever other clients do: nobody can
//! hold a connection that a newer one needs, and some file descriptors are kept for them ([`open_files`](crate::net::open_files)).

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::slots::{Slot, Slots};
use crate::net::{Acceptor, Listener, Socket};

/// Connections at a time. One more closes another one.
const CONNECTIONS_MAX: usize = 64;
/// The time from the connection, or from the end of a request, to the end of the next request's head.
const HEAD_TIME: Duration = Duration::from_secs(3);
/// No connection lives longer, however slowly it reads.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
/// The longest head of a request.
const HEAD_BYTES: usize = 16 * 1024;
/// The bytes that the system keeps for a client that does not read.
const UNSENT_BYTES: u32 = 16 * 1024;

/// Serves on this listener for as long as the future lives. It is HTTP/1.1 without TLS.
pub async fn serve(listener: TcpListener, pages: Router) {
    serve_on(listener.into(), pages).await;
}

/// Serves the pages on a TCP or Unix socket.
pub(crate) async fn serve_on(listener: Listener, pages: Router) {
    let slots = Arc::<Slots>::default();
    let mut acceptor = Acceptor::new(listener);
    loop {
        let stream = acceptor.accept_always(|| slots.evict()).await;
        begin(&slots, stream, pages.clone());
    }
}

fn begin(slots: &Arc<Slots>, stream: Socket, pages: Router) {
    // A client that does not read must not fill megabytes of the system's memory.
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES);
    let slot = slots.take(CONNECTIONS_MAX);
    let number = slot.number();
    let task = tokio::spawn(async move {
        let _ = timeout(CONNECTION_TIME, connection(stream, pages, &slot)).await;
    });
    Slot::set_task(slots, number, task.abort_handle());
}

async fn connection(stream: Socket, pages: Router, slot: &Slot) {
    let pages = TowerToHyperService::new(pages);
    let flags = service_fn(|request: Request<Incoming>| {
        slot.note_request();
        pages.call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(64)
        .serve_connection(TokioIo::new(stream), flags)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to the admin endpoint has ended early");
    }
}
