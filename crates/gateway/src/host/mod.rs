//! Hosts a service of our own on a listener: TLS, authentication, limits, and a graceful shutdown.
//!
//! The proxy has workers and a codec of its own for the sake of speed. A hosted service runs on the caller's runtime.

mod connection;
mod stream_executor;
mod upgraded;

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower_service::Service;

use connection::Connection;

use crate::config::{ListenConfig, connections_that_fit, memory_limit};
use crate::gateway::StartError;
use crate::identity::{Identification, PeerIdentity};
use crate::net::{Accepted, Acceptor};
use crate::tls::{ListenerTls, ServingPair, keep_fresh};

/// The limits of a hosted service.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone)]
pub struct HostLimits {
    /// Connections at a time; more wait in the backlog. The default is 10,000, or fewer if the process may use less than
    /// 2.5 GiB of memory: one for each 256 KiB, since a gateway may share the process.
    pub connections: usize,
    /// The bytes of a request's head.
    pub head_bytes: usize,
    /// The header fields of a request.
    pub headers: usize,
    /// Streams at a time on one HTTP/2 connection.
    pub streams: u32,
    /// From the connection, TLS included, or the end of a request, to the end of the next request's head.
    pub head_time: Duration,
    /// A response of which the client does not take anything.
    pub stall: Duration,
    /// Requests that are running when the host is told to stop.
    pub drain: Duration,
}

/// A listener for a service of our own.
#[derive(Debug)]
pub struct Host {
    acceptor: Acceptor,
    address: SocketAddr,
    tls: Option<Arc<ListenerTls>>,
    identification: Arc<Identification>,
    limits: HostLimits,
}

// === impl HostLimits ===

impl Default for HostLimits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: connections_that_fit(memory_limit(), 80_000) / 8,
            head_bytes: 64 * 1024,
            headers: 128,
            streams: 256,
            head_time: seconds(10),
            stall: seconds(30),
            drain: seconds(10),
        }
    }
}

// === impl Host ===

impl Host {
    /// Listens, and knows who is calling by the sources of `identification`.
    pub async fn bind(
        config: &ListenConfig,
        identification: Arc<Identification>,
        limits: HostLimits,
    ) -> Result<Self, StartError> {
        Self::bind_with(config, None, identification, limits).await
    }

    /// Listens with a certificate that could not be written to the files of the settings, until they change.
    pub async fn bind_with(
        config: &ListenConfig,
        unwritten: Option<ServingPair>,
        identification: Arc<Identification>,
        limits: HostLimits,
    ) -> Result<Self, StartError> {
        let fault = |error| StartError::Listen { address: config.address.clone(), error };
        let tls = config.tls.as_ref().map(|tls| ListenerTls::open_with(tls, "", unwritten)).transpose()?.map(Arc::new);
        let addresses = config.address.resolve().map_err(fault)?;
        let listener = TcpListener::bind(&*addresses).await.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        Ok(Self { acceptor: Acceptor::new(listener), address, tls, identification, limits })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` says so: each connection by a service of its own, made when it is known who has connected. Ends
    /// when the last request has, or when the time for it is over.
    pub async fn serve<F, S, B>(mut self, service: F, mut stop: watch::Receiver<bool>)
    where
        F: Fn(PeerIdentity) -> S + Clone + Send + Sync + 'static,
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let fresh = tokio::spawn(keep_fresh(self.tls.iter().map(|tls| tls.files()).collect()));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                accepted = accept(&mut self.acceptor, &places) => accepted,
            };
            while connections.try_join_next().is_some() {}
            let (Accepted::Connection(stream, address), place) = accepted else { continue };
            let connection = Connection {
                address,
                tls: self.tls.clone(),
                identification: Arc::clone(&self.identification),
                limits: self.limits.clone(),
                stop: stop.clone(),
            };
            let service = service.clone();
            connections.spawn(async move {
                connection.serve(stream, service).await;
                drop(place);
            });
        }
        drop(self.acceptor);
        let _ = timeout(self.limits.drain, async { while connections.join_next().await.is_some() {} }).await;
        fresh.abort();
    }
}

/// The next connection, once there is a place for it.
async fn accept(acceptor: &mut Acceptor, places: &Arc<Semaphore>) -> (Accepted, Option<OwnedSemaphorePermit>) {
    // Nobody closes the semaphore.
    let place = Arc::clone(places).acquire_owned().await.ok();
    (acceptor.accept().await, place)
}
