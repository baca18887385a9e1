//! Connects to an upstream.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};

use super::{Upstream, UpstreamLocation, UpstreamTarget};
use crate::http1::Wire;
use crate::net::open_files::OpenFiles;
use crate::net::{Socket, Stream};
use crate::timeouts::{CoarseTimer, Elapsed};
use crate::tls::Offer;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The name of the upstream has no address.
    #[error("{0}")]
    Unresolved(io::Error),
    #[error("{0}")]
    Failed(io::Error),
    #[error("connecting took longer than `timeouts.connect`")]
    TookTooLong,
}

/// Connections that are being made to one address after the other, and why those failed that have.
struct Attempts<A> {
    untried: A,
    begun: Vec<Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>>,
    last_error: Option<io::Error>,
}

/// How long an address may be silent until the next one is tried beside it (RFC 8305, 8).
const NEXT_AFTER: Duration = Duration::from_millis(250);

// === impl Upstream ===

impl Upstream {
    /// A new connection for HTTP/1.1.
    pub(crate) async fn connect_http1(&self) -> Result<Box<Wire>, ConnectError> {
        let stream = self.connect(Offer::Http1).await?;
        Ok(Box::new(self.wire(stream)))
    }

    /// A connection that has just been made, with the buffers of this worker.
    pub(crate) fn wire(&self, stream: Stream) -> Wire {
        Wire::new(stream, &self.buffer_pool)
    }

    /// A new connection on which this is offered.
    pub(super) async fn connect(&self, offer: Offer) -> Result<Stream, ConnectError> {
        let opened = self.timer.limit(self.config.timeouts.connect, self.target.open(offer, &self.timer)).await;
        let result = opened.unwrap_or_else(|Elapsed| Err(ConnectError::TookTooLong));
        if result.is_err() {
            // Another one may respond next, and speak something else.
            self.pool.speaks_http2.set(None);
        }
        result
    }
}

// === impl UpstreamTarget ===

impl UpstreamTarget {
    /// A new connection on which this is offered, however long that takes.
    pub(super) async fn open(&self, offer: Offer, timer: &Rc<CoarseTimer>) -> Result<Stream, ConnectError> {
        let stream = OpenFiles::of_process().for_upstream(self.open_socket(timer).await?)?;
        stream.set_nodelay()?;
        match &self.tls {
            None => Ok(Stream::Plain(stream)),
            Some(tls) => Ok(Stream::Tls(Box::new(tls.connect(stream, offer).await?.into()))),
        }
    }

    async fn open_socket(&self, timer: &Rc<CoarseTimer>) -> Result<Socket, ConnectError> {
        let stream = match &self.location {
            UpstreamLocation::Unix(path) => return Ok(Socket::Unix(UnixStream::connect(path).await?)),
            UpstreamLocation::Address(address) => TcpStream::connect(address).await?,
            UpstreamLocation::Unknown => return Err(ConnectError::Unresolved(io::ErrorKind::NotFound.into())),
            UpstreamLocation::ThisMachine(host, port) => {
                let addresses = tokio::net::lookup_host((&**host, *port)).await.map_err(ConnectError::Unresolved)?;
                Attempts { untried: addresses, begun: Vec::new(), last_error: None }.first(timer).await?
            }
        };
        Ok(Socket::Tcp(stream))
    }
}

// === impl Attempts ===

impl<A: Iterator<Item = SocketAddr>> Attempts<A> {
    /// The first connection that is made. An address that is silent does not keep the next ones from being tried.
    async fn first(mut self, timer: &Rc<CoarseTimer>) -> Result<TcpStream, ConnectError> {
        let mut next = timer.timeout(NEXT_AFTER);
        poll_fn(|context| {
            loop {
                let begun_before = self.begun.len();
                if let Some(stream) = self.poll_begun(context) {
                    return Poll::Ready(Ok(stream));
                }
                let has_failed = self.begun.len() < begun_before;
                if !has_failed && !self.begun.is_empty() && next.poll(context).is_pending() {
                    return Poll::Pending;
                }
                match self.untried.next() {
                    Some(address) => self.begun.push(Box::pin(TcpStream::connect(address))),
                    None if self.begun.is_empty() => return Poll::Ready(Err(self.error())),
                    None => return Poll::Pending,
                }
                next.set(NEXT_AFTER);
            }
        })
        .await
    }

    /// The first connection that has been made, of those under way. Those that fail are dropped.
    fn poll_begun(&mut self, context: &mut Context<'_>) -> Option<TcpStream> {
        let mut index = 0;
        while let Some(attempt) = self.begun.get_mut(index) {
            match attempt.as_mut().poll(context) {
                Poll::Ready(Ok(stream)) => return Some(stream),
                Poll::Ready(Err(error)) => {
                    self.last_error = Some(error);
                    drop(self.begun.remove(index));
                }
                Poll::Pending => index += 1,
            }
        }
        None
    }

    fn error(&mut self) -> ConnectError {
        let no_address = || ConnectError::Unresolved(io::ErrorKind::NotFound.into());
        self.last_error.take().map_or_else(no_address, ConnectError::Failed)
    }
}

// === impl ConnectError ===

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn first_of(addresses: &[SocketAddr]) -> Result<TcpStream, ConnectError> {
        let timer = CoarseTimer::new();
        let attempts = Attempts { untried: addresses.iter().copied(), begun: Vec::new(), last_error: None };
        tokio::select! {
            () = Rc::clone(&timer).run() => unreachable!("the clock goes on"),
            result = tokio::time::timeout(Duration::from_secs(20), attempts.first(&timer)) => {
                result.expect("it waits for an address that is silent")
            }
        }
    }

    async fn listening() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// An address that neither accepts connections nor refuses them: its queue is full.
    #[cfg(target_os = "linux")]
    fn silent() -> (Vec<socket2::Socket>, SocketAddr) {
        use socket2::{Domain, Socket, Type};
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = socket();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut all = vec![listener];
        for _ in 0..8 {
            let waiting = socket();
            waiting.set_nonblocking(true).unwrap();
            // The attempt is under way, be it for ever.
            let _ = waiting.connect(&address);
            all.push(waiting);
        }
        (all, address.as_socket().unwrap())
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_address_that_is_silent_does_not_keep_others_from_being_tried() {
        let ((_full, silent), (_listener, there)) = (silent(), listening().await);
        let (closed, refused) = listening().await;
        drop(closed);
        for addresses in [&[silent, there][..], &[refused, silent, refused, there], &[refused, there]] {
            let stream = first_of(addresses).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), there, "{addresses:?}");
        }
    }

    #[tokio::test]
    async fn without_an_address_that_answers_there_is_a_reason() {
        let (closed, refused) = listening().await;
        drop(closed);
        assert!(matches!(first_of(&[]).await, Err(ConnectError::Unresolved(_))));
        let error = first_of(&[refused, refused]).await.unwrap_err();
        assert!(matches!(error, ConnectError::Failed(error) if error.kind() == io::ErrorKind::ConnectionRefused));
    }
}
