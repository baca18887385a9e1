//! Connections of HTTP/2 to an upstream: one for many requests, and another one when it has room for no more.

use super::Upstream;
use super::connect::ConnectError;
use super::http2_connection::{Http2Connection, Http2Stream};
use crate::config::Protocol;
use crate::net::Stream;
use crate::tls::Offer;

/// A connection for the next request, of the protocol that the upstream has agreed to.
pub(crate) enum Negotiated {
    Http1(Stream),
    Http2(Http2Stream),
}

// === impl Upstream ===

impl Upstream {
    /// Whether the upstream is known to speak HTTP/2 under TLS.
    pub(crate) fn speaks_http2(&self) -> Option<bool> {
        self.pool.speaks_http2.get()
    }

    /// Whether gRPC calls may be sent to it over HTTP/2, as far as is known.
    pub(crate) fn may_speak_http2(&self) -> bool {
        match self.target.protocol {
            Protocol::Http1 => false,
            Protocol::Http2 => true,
            Protocol::Auto => self.target.tls.is_none() || self.speaks_http2() != Some(false),
        }
    }

    /// A place on a connection of HTTP/2 that is there, or on a new one.
    pub(crate) async fn http2(&self) -> Result<Http2Stream, ConnectError> {
        match self.shared_or_new(Offer::Http2).await? {
            Negotiated::Http2(stream) => Ok(stream),
            Negotiated::Http1(stream) => self.begin_http2(stream).await,
        }
    }

    /// A new connection, on which the two agree.
    pub(crate) async fn agree(&self) -> Result<Negotiated, ConnectError> {
        self.shared_or_new(Offer::Both).await
    }

    async fn shared_or_new(&self, offer: Offer) -> Result<Negotiated, ConnectError> {
        if let Some(stream) = self.pool.stream() {
            return Ok(Negotiated::Http2(stream));
        }
        let failures = self.pool.failures.get();
        let _making = self.pool.making.lock().await;
        if let Some(stream) = self.pool.stream() {
            return Ok(Negotiated::Http2(stream));
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

    async fn make(&self, offer: Offer) -> Result<Negotiated, ConnectError> {
        let stream = self.connect(offer).await?;
        let is_agreed = matches!(&stream, Stream::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2"));
        if offer == Offer::Both {
            self.pool.speaks_http2.set(Some(is_agreed));
        }
        let is_http2 = is_agreed || offer == Offer::Http2;
        Ok(if is_http2 { Negotiated::Http2(self.begin_http2(stream).await?) } else { Negotiated::Http1(stream) })
    }

    async fn begin_http2(&self, stream: Stream) -> Result<Http2Stream, ConnectError> {
        let begun = Http2Connection::begin(stream, &self.timer, self.config.timeouts.response).await;
        let connection = begun.map_err(|error| ConnectError::Failed(std::io::Error::other(error)))?;
        let first = connection.open();
        self.pool.share(connection);
        Ok(first)
    }
}
