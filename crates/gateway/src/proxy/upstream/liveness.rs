//! `Liveness`: whether the other end of a connection sends anything, and whether it speaks HTTP/2.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::Stream;

/// The state of what has been received.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    /// Since when requests have waited without anything being received.
    silent_since: Cell<Option<u64>>,
    /// How many bytes have been received, counted up to the first frame's kind.
    bytes: Cell<usize>,
    is_http2: Cell<bool>,
}

/// A connection that records when something is received.
#[derive(Debug)]
pub(super) struct MonitoredStream {
    stream: Stream,
    liveness: Rc<Liveness>,
}

/// Where a frame of HTTP/2 has its kind, and the kind that the first one of a server has (RFC 9113, 3.4 and 4.1).
const KIND_AT: usize = 3;
const SETTINGS: u8 = 4;

// === impl Liveness ===

impl Liveness {
    /// A request begins to wait at this time.
    pub(super) fn listen(&self, now: u64) {
        self.silent_since.set(self.silent_since.get().or(Some(now)));
    }

    /// Since when nothing has been received while requests wait.
    pub(super) fn silent_since(&self) -> Option<u64> {
        self.silent_since.get()
    }

    /// Whether the other end has begun as a server of HTTP/2 does.
    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.get()
    }

    fn note(&self, heard: &[u8]) {
        self.silent_since.set(None);
        let before = self.bytes.get();
        if before <= KIND_AT {
            self.bytes.set(before + heard.len());
            if let Some(kind) = heard.get(KIND_AT - before) {
                self.is_http2.set(*kind == SETTINGS);
            }
        }
    }
}

// === impl MonitoredStream ===

impl MonitoredStream {
    pub(super) fn new(stream: Stream, liveness: &Rc<Liveness>) -> Self {
        Self { stream, liveness: Rc::clone(liveness) }
    }
}

impl AsyncRead for MonitoredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let heard = buffer.filled().get(before..).unwrap_or_default();
        if !heard.is_empty() {
            self.liveness.note(heard);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MonitoredStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_the_first_frame_tells_however_it_comes() {
        let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 1, 2];
        for (text, is_http2) in [(&settings[..], true), (b"HTTP/1.1 400 Bad Request", false), (b"\0\0\x06", false)] {
            for size in 1..=text.len() {
                let liveness = Liveness::default();
                text.chunks(size).for_each(|piece| liveness.note(piece));
                assert_eq!(liveness.is_http2(), is_http2, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn whoever_waits_first_counts_until_something_comes() {
        let liveness = Liveness::default();
        assert_eq!(liveness.silent_since(), None);
        liveness.listen(3);
        liveness.listen(5);
        assert_eq!(liveness.silent_since(), Some(3));
        liveness.note(b"x");
        assert_eq!(liveness.silent_since(), None);
    }
}
