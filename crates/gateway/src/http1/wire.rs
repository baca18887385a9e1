//! `Wire`: a connection with what has been read and not understood yet, and what is to be written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::head_memory::HeadMemory;
use crate::net::Stream;

/// A connection with its buffers, whose memory is given back when nothing has happened for a while.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: Stream,
    /// What has been read, and is not understood yet.
    pub(crate) input: BytesMut,
    /// Where heads are kept that have been understood.
    pub(crate) heads: HeadMemory,
    /// What is to be written first.
    pub(crate) output: Vec<u8>,
    written: usize,
    /// What is to be written after that. Large pieces are not copied.
    tail: Bytes,
    /// And what ends them.
    tail_end: &'static [u8],
    read_size: usize,
}

/// How much is read at first, and at most if there is more.
const READ_MIN: usize = 4 * 1024;
const READ_MAX: usize = 64 * 1024;
/// Pieces up to this length are copied, so that they leave together with what is around them.
const COPY_MAX: usize = 4 * 1024;
/// When so much waits to be written, nothing is added.
const OUTPUT_MAX: usize = 32 * 1024;

// === impl Wire ===

impl Wire {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            heads: HeadMemory::default(),
            output: Vec::new(),
            written: 0,
            tail: Bytes::new(),
            tail_end: b"",
            read_size: READ_MIN,
        }
    }

    /// Reads more. Zero means that the other end has closed.
    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.input.capacity() == 0 {
            // Nothing is allocated before there is something to read.
            ready!(self.stream.poll_readable(context))?;
        }
        let room = self.input.capacity() - self.input.len();
        if room < self.read_size / 2 {
            self.input.reserve(self.read_size);
        }
        let room = self.input.capacity() - self.input.len();
        let count = ready!(self.stream.poll_read_to(context, &mut self.input))?;
        self.read_size =
            if count == room { (self.read_size * 2).min(READ_MAX) } else { READ_MIN.max(self.read_size / 2) };
        Poll::Ready(Ok(count))
    }

    /// Gives back the memory of buffers with nothing in them.
    pub(crate) fn release_buffers(&mut self) {
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
        if self.output.is_empty() {
            self.output = Vec::new();
        }
        self.heads = HeadMemory::default();
    }

    /// Whether something waits to be written.
    pub(crate) fn has_output(&self) -> bool {
        self.written < self.output.len() || self.has_tail()
    }

    /// Whether so much waits to be written that nothing may be added.
    pub(crate) fn is_full(&self) -> bool {
        self.has_tail() || self.output.len() >= OUTPUT_MAX
    }

    /// How much waits to be written.
    pub(crate) fn unsent(&self) -> usize {
        self.output.len() - self.written + self.tail.len() + self.tail_end.len()
    }

    fn has_tail(&self) -> bool {
        !self.tail.is_empty() || !self.tail_end.is_empty()
    }

    /// Adds a piece of a body, and what ends it. Only if it is not [full](Self::is_full).
    pub(crate) fn push(&mut self, piece: Bytes, end: &'static [u8]) {
        debug_assert!(!self.has_tail(), "nothing is added after a large piece");
        if piece.len() <= COPY_MAX {
            self.output.extend_from_slice(&piece);
            self.output.extend_from_slice(end);
        } else {
            (self.tail, self.tail_end) = (piece, end);
        }
    }

    /// Writes everything.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.has_output() {
            let has_tail = self.has_tail();
            let stream = Pin::new(&mut self.stream);
            let first = &self.output[self.written..];
            let mut count = if has_tail {
                let slices = [first, &self.tail, self.tail_end].map(IoSlice::new);
                ready!(stream.poll_write_vectored(context, &slices))?
            } else {
                ready!(stream.poll_write(context, first))?
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_first = count.min(first.len());
            self.written += of_first;
            count -= of_first;
            let of_tail = count.min(self.tail.len());
            self.tail.advance(of_tail);
            self.tail_end = &self.tail_end[count - of_tail..];
        }
        self.output.clear();
        self.written = 0;
        Pin::new(&mut self.stream).poll_flush(context)
    }
}
