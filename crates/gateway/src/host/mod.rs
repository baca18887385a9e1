//! Hosts a service of our own on a listener: TLS, authentication, limits, and a graceful shutdown.
//!
//! The proxy has workers and a codec of its own for the sake of speed. A hosted service runs on the caller's runtime.

mod connection;
mod identity;
mod stream_executor;
mod upgraded;

use std::convert::Infallible;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

pub use identity::HostIdentity;

use crate::config::{Cidr, ListenConfig, connections_that_fit, memory_limit, share};
use crate::gateway::StartError;
use crate::identity::{Denial, Identification, Peer, Transport};
use crate::net::proxy_protocol::{NoHeader, read_header};
use crate::net::{Accepted, Acceptor, Socket};
use crate::observe::log::Throttle;
use crate::proxy::worker::ClientQuotas;
use crate::tls::{ListenerTls, ServingPair, keep_fresh};

/// The limits of a hosted service.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone)]
pub struct HostLimits {
    /// Connections at a time; more wait in the backlog. The default is 10,000, or fewer if the process may use less than
    /// 2.5 GiB of memory: one for each 256 KiB, since a gateway may share the process.
    pub connections: usize,
    /// Connections of one client at a time: of one user once a request has said who that is, of one address before. More are
    /// closed. Zero means a quarter of `connections`. Trusted proxies have no such limit.
    pub connections_per_client: usize,
    /// The bytes of a request's head.
    pub head_bytes: usize,
    /// The header fields of a request.
    pub headers: usize,
    /// Streams at a time on one HTTP/2 connection.
    pub streams: u32,
    /// The time from the connection, TLS included, or from the end of a request, to the end of the next request's head.
    pub head_time: Duration,
    /// How long a client may read nothing of a response.
    pub stall: Duration,
    /// The time that requests have to end when the host is told to stop.
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
    refusals: Refusals,
    /// Balancers, which say in a header of the PROXY protocol who has connected to them.
    proxy_protocol_from: Vec<Cidr>,
}

/// Everything that a new connection gets.
#[derive(Debug)]
struct Opening {
    tls: Option<Arc<ListenerTls>>,
    identification: Arc<Identification>,
    limits: HostLimits,
    refusals: Refusals,
    clients: Arc<ClientQuotas>,
    proxy_protocol_from: Vec<Cidr>,
    stop: watch::Receiver<bool>,
}

/// Logs connections and requests that are refused, at a limited rate.
#[derive(Debug, Clone, Default)]
struct Refusals {
    /// How many connections were refused because their client had too many.
    count: Arc<AtomicU64>,
    warnings: Arc<Mutex<Throttle>>,
    denial_warnings: Arc<Mutex<Throttle>>,
    header_warnings: Arc<Mutex<Throttle>>,
}

// === impl HostLimits ===

impl Default for HostLimits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections: connections_that_fit(memory_limit(), 80_000) / 8,
            connections_per_client: 0,
            head_bytes: 64 * 1024,
            headers: 128,
            streams: 256,
            head_time: seconds(10),
            stall: seconds(30),
            drain: seconds(10),
        }
    }
}

impl HostLimits {
    /// How many connections one client may have.
    fn connections_per_client(&self) -> usize {
        share(self.connections_per_client, self.connections)
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
        let refusals = Refusals::default();
        let (acceptor, proxy_protocol_from) = (Acceptor::new(listener.into()), config.proxy_protocol_from.clone());
        Ok(Self { acceptor, address, tls, identification, limits, refusals, proxy_protocol_from })
    }

    /// Counts connections that are refused because their client has too many.
    #[must_use]
    pub fn count_refused(mut self, count: Arc<AtomicU64>) -> Self {
        self.refusals.count = count;
        self
    }

    /// The address that the host is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` says so: each connection by a service of its own, made when it is known who has connected. Ends
    /// when the last request has, or when the time for it is over.
    pub async fn serve<F, S, B>(mut self, service: F, mut stop: watch::Receiver<bool>)
    where
        F: Fn(HostIdentity) -> S + Clone + Send + Sync + 'static,
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let drain = self.limits.drain;
        let fresh = tokio::spawn(keep_fresh(self.tls.iter().map(|tls| tls.files()).collect()));
        let mut connections = JoinSet::new();
        let opening = Arc::new(Opening {
            tls: self.tls,
            identification: self.identification,
            clients: ClientQuotas::new(self.limits.connections_per_client(), usize::MAX),
            limits: self.limits.clone(),
            refusals: self.refusals,
            proxy_protocol_from: self.proxy_protocol_from,
            stop: stop.clone(),
        });
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                accepted = accept(&mut self.acceptor, &places) => accepted,
            };
            while connections.try_join_next().is_some() {}
            let (Accepted::Connection(mut stream, address), place) = accepted else { continue };
            let service = service.clone();
            if opening.proxy_protocol_from.iter().any(|range| range.contains(address.ip())) {
                let opening = Arc::clone(&opening);
                connections.spawn(async move {
                    let client = opening.named_client(&mut stream, address).await;
                    if let Some(connection) = client.and_then(|client| opening.open(client)) {
                        connection.serve(stream, service).await;
                    }
                    drop(place);
                });
            } else if let Some(connection) = opening.open(address) {
                connections.spawn(async move {
                    connection.serve(stream, service).await;
                    drop(place);
                });
            }
        }
        drop(self.acceptor);
        let _ = timeout(drain, async { while connections.join_next().await.is_some() {} }).await;
        fresh.abort();
    }
}

// === impl Opening ===

impl Opening {
    /// A connection of this client; none if it has too many. Before anything is read: a client that never says anything must not take the
    /// places of all others.
    fn open(&self, address: SocketAddr) -> Option<Connection> {
        let transport = if self.tls.is_some() { Transport::Tls } else { Transport::Plain };
        let peer = Peer { address, transport, certificate: None };
        let is_trusted_proxy = self.identification.is_trusted_proxy(&peer);
        let Some(counted) = self.clients.open_hosted(address.ip(), is_trusted_proxy) else {
            self.refusals.note(address.ip());
            return None;
        };
        Some(Connection {
            address,
            counted: Arc::new(counted),
            refusals: self.refusals.clone(),
            tls: self.tls.clone(),
            identification: Arc::clone(&self.identification),
            limits: self.limits.clone(),
            stop: self.stop.clone(),
        })
    }

    /// The client that a balancer names; the balancer itself if it names none. None if there is no header that can be used.
    async fn named_client(&self, stream: &mut Socket, balancer: SocketAddr) -> Option<SocketAddr> {
        let error = match timeout(self.limits.head_time, read_header(stream)).await {
            Ok(Ok(client)) => return Some(client.unwrap_or(balancer)),
            Ok(Err(NoHeader::Silent)) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the PROXY protocol header did not arrive within {:?}", self.limits.head_time),
        };
        self.refusals.note_header(balancer.ip(), &error);
        None
    }
}

// === impl Refusals ===

impl Refusals {
    /// A client has too many connections.
    fn note(&self, client: IpAddr) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if self.warnings.lock().unwrap_or_else(PoisonError::into_inner).may_log() {
            tracing::warn!(%client, "connections are closed: their client has too many");
        }
    }

    /// A balancer sent no valid header of the PROXY protocol.
    fn note_header(&self, client: IpAddr, error: &str) {
        if self.header_warnings.lock().unwrap_or_else(PoisonError::into_inner).may_log() {
            tracing::warn!(%client, error, "a connection is closed: its source is a balancer, but it sent no valid header of the PROXY protocol");
        }
    }

    /// A request is not authenticated. The hosted service logs its requests itself, so that only the reason is logged here.
    fn note_denied(&self, reason: Denial, client: IpAddr, path: &str) {
        if self.denial_warnings.lock().unwrap_or_else(PoisonError::into_inner).may_log() {
            tracing::warn!(reason = reason.as_str(), %client, path, "a request is not authenticated");
        }
    }
}

/// The next connection, once there is a place for it.
async fn accept(acceptor: &mut Acceptor, places: &Arc<Semaphore>) -> (Accepted, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.ok();
    (acceptor.accept().await, place)
}
