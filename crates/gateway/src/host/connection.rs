//! One connection to a hosted service.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;
use tower_service::Service;

use super::identity::HostIdentity;
use super::stream_executor::{StreamExecutor, StreamService};
use super::upgraded::upgradable;
use super::{HostLimits, Refusals};
use crate::identity::{Identification, Peer, Transport};
use crate::net::Socket;
use crate::proxy::worker::HostedConnection;
use crate::timeouts::WriteTimeout;
use crate::tls::ListenerTls;

/// A connection before anything is read from it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Arc<ListenerTls>>,
    pub(super) identification: Arc<Identification>,
    pub(super) limits: HostLimits,
    pub(super) stop: watch::Receiver<bool>,
    /// The connection counts for its client until it has ended.
    pub(super) counted: Arc<HostedConnection>,
    pub(super) refusals: Refusals,
}

// === impl Connection ===

impl Connection {
    /// Serves its requests until it ends, or until it is told to stop and the last request has ended.
    pub(super) async fn serve<F, S, B>(self, stream: Socket, service: F)
    where
        F: Fn(HostIdentity) -> S,
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        // Events of a watch are small, and must not wait for each other.
        let _ = stream.set_nodelay();
        let Some(tls) = self.tls.clone() else {
            let peer = Peer { address: self.address, transport: Transport::Plain, certificate: None };
            let service = service(self.identity(peer));
            return self.http1(stream, service).await;
        };
        match timeout(self.limits.head_time, tls.accept(stream)).await {
            Ok(Ok(accepted)) => {
                let peer = Peer { address: self.address, transport: Transport::Tls, certificate: accepted.certificate };
                let service = service(self.identity(peer));
                if accepted.is_http2 {
                    self.http2(accepted.stream, service).await;
                } else {
                    self.http1(accepted.stream, service).await;
                }
            }
            Ok(Err(error)) => tracing::debug!(%error, client = %self.address.ip(), "the TLS handshake failed"),
            Err(_) => tracing::debug!(client = %self.address.ip(), "the TLS handshake timed out"),
        }
    }

    fn identity(&self, peer: Peer) -> HostIdentity {
        let (counted, refusals) = (Arc::clone(&self.counted), self.refusals.clone());
        HostIdentity { peer: self.identification.of(peer), counted, refusals }
    }

    async fn http1<S, B>(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, service: S)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let stream = TokioIo::new(WriteTimeout::new(stream, self.limits.stall));
        let (service, unused) = upgradable(service);
        {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(self.limits.head_time)
                .max_buf_size(self.limits.head_bytes)
                .max_headers(self.limits.headers)
                .serve_connection(stream, TowerToHyperService::new(service))
                .with_upgrades();
            finish(pin!(connection), http1::UpgradeableConnection::graceful_shutdown, self.stop).await;
        }
        unused.wait().await;
    }

    async fn http2<S, B>(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, service: S)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let stream = TokioIo::new(WriteTimeout::new(stream, self.limits.stall));
        let head_bytes = u32::try_from(self.limits.head_bytes).unwrap_or(u32::MAX);
        let connection = http2::Builder::new(StreamExecutor { unread_after: self.limits.stall })
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.limits.streams)
            .max_header_list_size(head_bytes)
            .keep_alive_interval(self.limits.stall)
            .keep_alive_timeout(self.limits.stall)
            .serve_connection(stream, StreamService::new(service));
        finish(pin!(connection), http2::Connection::graceful_shutdown, self.stop).await;
    }
}

/// Runs a connection to its end. When it is told to stop, it takes no more requests and ends with the last one.
async fn finish<C: Future>(
    mut connection: Pin<&mut C>,
    take_no_more: impl FnOnce(Pin<&mut C>),
    mut stop: watch::Receiver<bool>,
) {
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => take_no_more(connection.as_mut()),
    }
    connection.await;
}
