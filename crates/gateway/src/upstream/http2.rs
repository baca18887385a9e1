//! Requests to an upstream over HTTP/2, many on one connection.

use std::future::Future;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::connect::ConnectError;
use super::{CallError, Upstream};
use crate::client_body::ClientBody;
use crate::stream::Stream;
use crate::tls::Offer;

/// Runs what hyper wants run on the worker's own thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnWorker;

/// A connection for the next request, of the protocol that the upstream has agreed to.
pub(crate) enum Agreed {
    Http1(Stream),
    Http2(SendRequest<ClientBody>),
}

/// A window that lets a stream go on while its updates are under way, and bounds what one can make us keep.
const STREAM_WINDOW: u32 = 128 * 1024;
/// There is none for the connection, as far as HTTP/2 allows that: answers that nobody reads must not hold up others. What
/// they make us keep is bounded by the windows of the streams, and by how many requests run.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

// === impl OnWorker ===

impl<F: Future + 'static> hyper::rt::Executor<F> for OnWorker {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}

// === impl Upstream ===

impl Upstream {
    /// Whether the upstream is known to speak HTTP/2 under TLS.
    pub(crate) fn speaks_http2(&self) -> Option<bool> {
        self.pool.speaks_http2.get()
    }

    /// The connection that all requests of HTTP/2 share, or a new one.
    pub(crate) async fn http2(&self) -> Result<SendRequest<ClientBody>, ConnectError> {
        match self.shared_or_new(Offer::Http2).await? {
            Agreed::Http2(sender) => Ok(sender),
            Agreed::Http1(stream) => self.begin_http2(stream).await,
        }
    }

    /// A new connection, on which the two agree.
    pub(crate) async fn agree(&self) -> Result<Agreed, ConnectError> {
        self.shared_or_new(Offer::Both).await
    }

    async fn shared_or_new(&self, offer: Offer) -> Result<Agreed, ConnectError> {
        if let Some(sender) = self.pool.shared() {
            return Ok(Agreed::Http2(sender));
        }
        let failures = self.pool.failures.get();
        let _making = self.pool.making.lock().await;
        if let Some(sender) = self.pool.shared() {
            return Ok(Agreed::Http2(sender));
        }
        if self.pool.failures.get() != failures {
            return Err(ConnectError::Failed(std::io::Error::other("another request has tried meanwhile")));
        }
        let result = self.make(offer).await;
        if result.is_err() {
            self.pool.failures.set(failures + 1);
        }
        result
    }

    async fn make(&self, offer: Offer) -> Result<Agreed, ConnectError> {
        let stream = self.connect(offer).await?;
        let is_agreed = matches!(&stream, Stream::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2"));
        if offer == Offer::Both {
            self.pool.speaks_http2.set(Some(is_agreed));
        }
        let is_http2 = is_agreed || offer == Offer::Http2;
        Ok(if is_http2 { Agreed::Http2(self.begin_http2(stream).await?) } else { Agreed::Http1(stream) })
    }

    async fn begin_http2(&self, stream: Stream) -> Result<SendRequest<ClientBody>, ConnectError> {
        let handshake = http2::Builder::new(OnWorker)
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(stream));
        let (sender, connection) =
            handshake.await.map_err(|error| ConnectError::Failed(std::io::Error::other(error)))?;
        tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection of HTTP/2 to an upstream has ended");
            }
        });
        self.pool.share(sender.clone());
        Ok(sender)
    }
}

/// Sends a request on a connection that others use too.
pub(crate) async fn call(
    mut sender: SendRequest<ClientBody>,
    request: Request<ClientBody>,
) -> Result<Response<Incoming>, (CallError, Option<Request<ClientBody>>)> {
    if sender.ready().await.is_err() {
        return Err((CallError::Closed, Some(request)));
    }
    sender.try_send_request(request).await.map_err(|mut error| {
        let unsent = error.take_message();
        (CallError::Closed, unsent)
    })
}
