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
        match self.ticks.limit(self.timeouts.timeouts.connect, self.open(offer)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(ConnectError::Failed(error)),
            Err(Elapsed) => Err(ConnectError::TookTooLong),
        }
    }

    async fn open(&self, offer: Offer) -> io::Result<Stream> {
        let stream = self.open_tcp().await?;
        stream.set_nodelay(true)?;
        match &self.known.tls {
            None => Ok(Stream::Plain(stream)),
            Some(tls) => Ok(Stream::Tls(Box::new(tls.connect(stream, offer).await?.into()))),
        }
    }

    async fn open_tcp(&self) -> io::Result<TcpStream> {
        let (host, port) = (&*self.known.host, self.known.port);
        if let Ok(address) = host.parse::<IpAddr>() {
            return TcpStream::connect((address, port)).await;
        }
        let mut last = None;
        for address in tokio::net::lookup_host((host, port)).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
    }
}
