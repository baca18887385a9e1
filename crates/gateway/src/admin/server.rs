//! Serves the operators' pages, with limits: what they look at must not cost what they look for.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at a time; more wait in the backlog.
const CONNECTIONS_MAX: usize = 64;
/// From the connection, or the end of a request, to the end of the next request's head.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// No connection lives longer, however slowly it reads.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
/// A request has no business being longer.
const HEAD_BYTES: usize = 16 * 1024;
/// When there are no files left to open, trying again at once would help nobody.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers on this listener for as long as the future lives. It is HTTP/1.1 without TLS.
pub async fn serve(listener: TcpListener, pages: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection of an operator could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let pages = pages.clone();
        tokio::spawn(async move {
            let _ = timeout(CONNECTION_TIME, connection(stream, pages)).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, pages: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(64)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of an operator has ended early");
    }
}
