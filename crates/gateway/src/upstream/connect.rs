//! Connecting to an upstream.

use std::io;
use std::net::IpAddr;

use tokio::net::TcpStream;

use super::Upstream;
use crate::h1::Wire;
use crate::stream::Stream;
use crate::ticks::Elapsed;
use crate::tls::Offer;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// Its name has no address.
    Unresolved(io::Error),
    Failed(io::Error),
    TookTooLong,
}

// === impl Upstream ===

impl Upstream {
    /// A new connection for HTTP/1.1.
    pub(crate) async fn connect_http1(&self) -> Result<Box<Wire>, ConnectError> {
        let stream = self.connect(Offer::Http1).await?;
        Ok(Box::new(Wire::new(stream)))
    }

    /// A new connection on which this is offered. Names are looked up each time.
    pub(super) async fn connect(&self, offer: Offer) -> Result<Stream, ConnectError> {
        let opened = self.ticks.limit(self.timeouts.timeouts.connect, self.open(offer)).await;
        let result = opened.unwrap_or_else(|Elapsed| Err(ConnectError::TookTooLong));
        if result.is_err() {
            // It may be another one that answers next, and speak something else.
            self.pool.speaks_http2.set(None);
        }
        result
    }

    async fn open(&self, offer: Offer) -> Result<Stream, ConnectError> {
        let stream = self.open_tcp().await?;
        stream.set_nodelay(true)?;
        match &self.known.tls {
            None => Ok(Stream::Plain(stream)),
            Some(tls) => Ok(Stream::Tls(Box::new(tls.connect(stream, offer).await?.into()))),
        }
    }

    async fn open_tcp(&self) -> Result<TcpStream, ConnectError> {
        let (host, port) = (&*self.known.host, self.known.port);
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(TcpStream::connect((address, port)).await?);
        }
        let mut last = None;
        for address in tokio::net::lookup_host((host, port)).await.map_err(ConnectError::Unresolved)? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| ConnectError::Unresolved(io::ErrorKind::NotFound.into()), ConnectError::Failed))
    }
}

// === impl ConnectError ===

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}
