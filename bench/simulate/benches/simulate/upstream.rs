//! A service that works on every request for as long as the request says.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// The header with the microseconds that a request takes.
pub(crate) const SERVICE_TIME: &str = "x-service-us";

/// Starts it on any free port of this machine.
pub(crate) async fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let service = service_fn(|request: http::Request<hyper::body::Incoming>| async move {
                sleep(service_time(request.headers())).await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
            });
            let connection =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    Ok(address)
}

fn service_time(headers: &HeaderMap) -> Duration {
    let text = headers.get(SERVICE_TIME).and_then(|value| value.to_str().ok());
    // The timer of tokio is up to a millisecond late, half of one on average.
    let microseconds = text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0).saturating_sub(500);
    Duration::from_micros(microseconds)
}
