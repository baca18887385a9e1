//! Accepts connections, and finds out which protocol they speak.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

#[cfg(target_os = "linux")]
use socket2::SockFilter;
use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use super::counts::MeteredConnection;
use super::thread::{ConnectionGuard, WorkerStage};
use super::{ListenerRules, Spoken, Worker};
use crate::identity::{Peer, Transport};
use crate::net::proxy_protocol::{NoHeader, read_header};
use crate::net::{Accepted, Acceptor, Listener, Socket, Stream};
use crate::proxy::connection::Connection;
use crate::proxy::ext_proc;
use crate::proxy::serve::{first_bytes, serve_http1, serve_http2};
use crate::tls::{AcceptedTls, ListenerTls};

/// How long half-open connections are waited for when no more are accepted.
const LAST_ONES_MAX: Duration = Duration::from_millis(100);
/// The version of HTTP that client and gateway have agreed on.
enum Version {
    Http1,
    Http2,
}

const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-type: text/plain\r\n\
    content-length: 42\r\nconnection: close\r\n\r\nThere are too many connections; try later.";

/// Accepts connections until it is told to stop, and then those that wait already, unless another process keeps the socket and
/// accepts them.
pub(super) async fn accept_all(
    mut worker: Rc<Worker>,
    (listener, is_kept): (Listener, bool),
    rules: Arc<ListenerRules>,
    connection_guard: ConnectionGuard,
    mut stage: watch::Receiver<WorkerStage>,
) {
    let mut acceptor = Acceptor::new(listener);
    let stage = loop {
        let accepted = tokio::select! {
            biased;
            stage = stage.wait_for(|stage| *stage != WorkerStage::Serving) => {
                break stage.map_or(WorkerStage::Stopped, |stage| *stage)
            }
            accepted = acceptor.accept() => accepted,
        };
        worker = worker.latest();
        match accepted {
            Accepted::Connection(stream, address) => begin(&worker, stream, address, &rules, &connection_guard),
            Accepted::NoDescriptor(stream) => refuse(&worker, stream, rules.tls.as_deref()),
        }
    };
    if is_kept || stage == WorkerStage::HandedOver {
        return;
    }
    // Clients believe that connections in the queue are open: they are served too, while no others join them.
    refuse_new(acceptor.listener());
    let last_ones = async {
        while let Ok((stream, address)) = acceptor.listener().accept().await {
            begin(&worker, stream, address, &rules, &connection_guard);
        }
    };
    let _ = tokio::time::timeout(LAST_ONES_MAX, last_ones).await;
}

/// Drops the packets that begin a connection, and no others: those that are half open still become connections. The file of a
/// Unix socket has been removed.
#[cfg(target_os = "linux")]
fn refuse_new(listener: &Listener) {
    // Load the flags, keep SYN and ACK, and drop what has SYN only.
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let Listener::Tcp(listener) = listener else { return };
    let filter = [
        SockFilter::new(LOAD_BYTE, 0, 0, 13),
        SockFilter::new(AND, 0, 0, 0x12),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, 0x02),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ];
    if let Err(error) = SockRef::from(listener).attach_filter(&filter) {
        tracing::debug!(%error, "new connections are accepted until the socket is closed");
    }
}

#[cfg(not(target_os = "linux"))]
fn refuse_new(_listener: &Listener) {}

/// Begins to serve a connection, whose client a balancer may have to name first.
fn begin(
    worker: &Rc<Worker>,
    stream: Socket,
    address: SocketAddr,
    rules: &Arc<ListenerRules>,
    connection_guard: &ConnectionGuard,
) {
    let Some(open) = worker.connections.open(worker.config.limits.connections) else {
        if worker.may_warn() {
            tracing::warn!(
                limit = worker.config.limits.connections,
                "a connection is refused: as many are open as `limits.connections` allows"
            );
        }
        return refuse(worker, stream, rules.tls.as_deref());
    };
    let counted = (open, MeteredConnection::new(worker.metrics.clone()), connection_guard.clone());
    // A large response goes out in pieces that must not wait for each other.
    let _ = stream.set_nodelay();
    if !rules.proxy_protocol_from.iter().any(|range| range.contains(address.ip())) {
        return serve(worker, stream, address, rules, counted);
    }
    let (worker, rules) = (Rc::clone(worker), Arc::clone(rules));
    tokio::task::spawn_local(async move {
        let mut stream = stream;
        if let Some(client) = named_client(&worker, &mut stream, address).await {
            serve(&worker, stream, client, &rules, counted);
        }
    });
}

/// The client that a balancer names in a header of the PROXY protocol; the balancer itself if it names none. `None` if there is
/// no valid header: then the client is not known.
async fn named_client(worker: &Rc<Worker>, stream: &mut Socket, balancer: SocketAddr) -> Option<SocketAddr> {
    let read = worker.timer.limit(worker.config.timeouts.head, read_header(stream)).await;
    let error = match read {
        Ok(Ok(client)) => return Some(client.unwrap_or(balancer)),
        Ok(Err(NoHeader::Silent)) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the PROXY protocol header did not arrive within `timeouts.head`".to_owned(),
    };
    worker.metrics.proxy_header_refused();
    if worker.may_warn() {
        let client = balancer.ip();
        tracing::warn!(%client, error, "a connection is closed: its source is in `proxyProtocolFrom`, but it sent no valid header of the PROXY protocol");
    }
    None
}

/// Serves a connection of this client.
fn serve(
    worker: &Rc<Worker>,
    stream: Socket,
    address: SocketAddr,
    rules: &ListenerRules,
    counted: impl Sized + 'static,
) {
    if rules.spoken == Spoken::ExtProc {
        tokio::task::spawn_local(serve_ext_proc(Rc::clone(worker), stream, address, rules.tls.clone(), counted));
        return;
    }
    match rules.tls.clone() {
        None => {
            let peer = Peer { address, transport: Transport::Plain, certificate: None };
            let Some(connection) = Connection::new(worker, peer) else {
                tokio::task::spawn_local(reject(Rc::clone(worker), stream));
                return;
            };
            tokio::task::spawn_local(serve_http1(connection, Stream::Plain(stream), counted));
        }
        Some(tls) => {
            let worker = Rc::clone(worker);
            tokio::task::spawn_local(async move {
                // The handshake takes much memory, and is soon over.
                let accepted = Box::pin(accept_tls(worker, stream, address, &tls)).await;
                drop(tls);
                match accepted {
                    None => {}
                    Some((connection, stream, Version::Http1)) => serve_http1(connection, stream, counted).await,
                    Some((connection, stream, Version::Http2)) => {
                        Box::pin(serve_tls_http2(connection, stream, counted)).await;
                    }
                }
            });
        }
    }
}

fn refuse(worker: &Rc<Worker>, stream: Socket, tls: Option<&ListenerTls>) {
    worker.metrics.connection_refused();
    if tls.is_none() {
        tokio::task::spawn_local(reject(Rc::clone(worker), stream));
    }
}

/// Agrees on TLS. None if that fails.
async fn shake_hands(worker: &Worker, stream: Socket, address: SocketAddr, tls: &ListenerTls) -> Option<AcceptedTls> {
    match worker.timer.limit(worker.config.timeouts.head, tls.accept(stream)).await {
        Ok(Ok(accepted)) => Some(accepted),
        Ok(Err(error)) => {
            tracing::debug!(%error, client = %address.ip(), "the TLS handshake with a client failed");
            None
        }
        Err(_) => None,
    }
}

/// Serves a connection of Envoy. With TLS, it has shown a certificate if the listener asks for one.
async fn serve_ext_proc(
    worker: Rc<Worker>,
    stream: Socket,
    address: SocketAddr,
    tls: Option<Arc<ListenerTls>>,
    counted: impl Sized,
) {
    let stream = match tls {
        None => Stream::Plain(stream),
        Some(tls) => {
            let Some(accepted) = Box::pin(shake_hands(&worker, stream, address, &tls)).await else { return };
            if tls.asks_for_certificates() && accepted.certificate.is_none() {
                tracing::debug!(client = %address.ip(), "a connection to the external processing service has no certificate");
                return;
            }
            Stream::Tls(Box::new(accepted.stream.into()))
        }
    };
    Box::pin(ext_proc::serve(worker, stream, address, counted)).await;
}

/// Agrees on TLS, and on what is spoken inside. None if that fails, or the client has too many connections.
async fn accept_tls(
    worker: Rc<Worker>,
    stream: Socket,
    address: SocketAddr,
    tls: &ListenerTls,
) -> Option<(Rc<Connection>, Stream, Version)> {
    let accepted = shake_hands(&worker, stream, address, tls).await?;
    let peer = Peer { address, transport: Transport::Tls, certificate: accepted.certificate };
    let connection = Connection::new(&worker, peer)?;
    let version = if accepted.is_http2 { Version::Http2 } else { Version::Http1 };
    Some((connection, Stream::Tls(Box::new(accepted.stream.into())), version))
}

async fn serve_tls_http2(connection: Rc<Connection>, stream: Stream, _counted: impl Sized) {
    if let Some(stream) = first_bytes(&connection.worker, stream).await {
        serve_http2(connection, stream).await;
    }
}

/// Tells a client that there are too many connections.
async fn reject(worker: Rc<Worker>, mut stream: Socket) {
    let _ = worker.timer.limit(Duration::from_secs(1), stream.write_all(BUSY)).await;
}
