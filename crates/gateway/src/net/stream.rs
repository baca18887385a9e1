//! A connection, encrypted or not, on either side.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;

use super::{Socket, WriteNow};

/// A connection, encrypted or not, on either side.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

/// A connection of which something has been read already.
#[derive(Debug)]
pub(crate) struct Rewound {
    first: Bytes,
    stream: Stream,
}

/// The event that the other end has closed its half of the connection. Not all systems have it.
#[cfg(target_os = "linux")]
const HALF_CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const HALF_CLOSED: PollFlags = PollFlags::empty();

// === impl Stream ===

impl Stream {
    /// Whether there is something to read, or the other end has closed. Encrypted connections cannot tell without
    /// reading, and always say yes.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => stream.poll_read_ready(context),
            Self::Tls(_) => Poll::Ready(Ok(())),
        }
    }

    /// Whether an idle connection is as it was left: open, and without unread bytes.
    pub(crate) fn is_untouched(&mut self) -> bool {
        match self {
            Self::Plain(stream) => {
                matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
            Self::Tls(stream) => {
                let mut context = Context::from_waker(std::task::Waker::noop());
                let (mut byte, stream) = ([0], Pin::new(&mut **stream));
                stream.poll_read(&mut context, &mut ReadBuf::new(&mut byte)).is_pending()
            }
        }
    }

    /// Makes closing the connection reset it, so that the other end notices a failure.
    pub(crate) fn reset_on_close(&self) {
        // If it fails, the connection is gone already.
        let _ = self.socket().set_zero_linger();
    }

    /// Whether the other end has closed the connection or its half of it, even if there are unread bytes before the end.
    pub(crate) fn has_hung_up(&self) -> bool {
        let mut polled = [PollFd::new(self.socket(), HALF_CLOSED)];
        // If it fails there is nothing to see.
        let _ = poll(&mut polled, Some(&Timespec::default()));
        polled[0].revents().intersects(HALF_CLOSED | PollFlags::ERR | PollFlags::HUP)
    }

    fn socket(&self) -> &Socket {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Reads available bytes to the end of the buffer, which must have room.
    pub(crate) fn poll_read_to(&mut self, context: &mut Context<'_>, buffer: &mut BytesMut) -> Poll<io::Result<usize>> {
        use std::future::Future;
        use tokio::io::AsyncReadExt;
        std::pin::pin!(self.read_buf(buffer)).poll(context)
    }
}

impl WriteNow for Stream {
    fn write_now(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let written = match self {
            Self::Plain(_) if bytes.is_empty() => return Ok(None),
            Self::Plain(stream) => SockRef::from(&*stream).send(bytes),
            // Bytes that are encrypted already leave first; then the stream has room for more.
            Self::Tls(stream) if !stream.get_ref().1.wants_write() => return Ok(None),
            Self::Tls(stream) => match &mut **stream {
                TlsStream::Client(stream) => {
                    let (stream, session) = stream.get_mut();
                    session.write_tls(&mut &*SockRef::from(&*stream)).map(|_| 0)
                }
                TlsStream::Server(stream) => {
                    let (stream, session) = stream.get_mut();
                    session.write_tls(&mut &*SockRef::from(&*stream)).map(|_| 0)
                }
            },
        };
        match written {
            Ok(taken) => Ok(Some(taken)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
        }
    }
}

// === impl Rewound ===

impl Rewound {
    /// The stream, with the bytes that have been read put back.
    pub(crate) fn new(first: Bytes, stream: Stream) -> Self {
        Self { first, stream }
    }
}

impl WriteNow for Rewound {
    fn write_now(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        self.stream.write_now(bytes)
    }
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..length]);
        self.first.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
