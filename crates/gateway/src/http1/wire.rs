//! `Wire`: a connection with the bytes that have been read and not parsed yet, and those to be written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWrite;

use super::buffer_pool::{BufferPool, Message};
use super::head_memory::HeadMemory;
use crate::net::{Stream, WriteNow};

/// A connection with its buffers. While it is idle it has none.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: Stream,
    /// Bytes that have been read and not parsed yet.
    pub(crate) input: BytesMut,
    message: Option<Box<Message>>,
    pool: Rc<BufferPool>,
    read_size: usize,
}

/// How much is read at first, and at most if there is more.
const READ_MIN: usize = 4 * 1024;
const READ_MAX: usize = 64 * 1024;
/// Pieces up to this length are copied, so that they leave together with what is around them.
const COPY_MAX: usize = 4 * 1024;
/// When so many bytes wait to be written, nothing is added.
const OUTPUT_MAX: usize = 32 * 1024;

// === impl Wire ===

impl Wire {
    pub(crate) fn new(stream: Stream, pool: &Rc<BufferPool>) -> Self {
        Self { stream, input: BytesMut::new(), message: None, pool: Rc::clone(pool), read_size: READ_MIN }
    }

    /// The buffer that messages are written to.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.message().output
    }

    /// The memory of parsed heads.
    pub(crate) fn heads(&mut self) -> &mut HeadMemory {
        &mut self.message().heads
    }

    /// The bytes that have been read, and the memory for heads that are parsed out of them.
    pub(crate) fn input_and_heads(&mut self) -> (&mut BytesMut, &mut HeadMemory) {
        let message = self.message.get_or_insert_with(|| self.pool.take_message());
        (&mut self.input, &mut message.heads)
    }

    #[inline]
    fn message(&mut self) -> &mut Message {
        self.message.get_or_insert_with(|| self.pool.take_message())
    }

    /// Reads more. Zero means that the other end has closed.
    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.input.capacity() == 0 {
            // No buffer is allocated before there is something to read.
            ready!(self.stream.poll_readable(context))?;
            self.input = self.pool.take_input();
        }
        let room = self.input.capacity() - self.input.len();
        if room < self.read_size / 2 {
            self.input.reserve(self.read_size);
        }
        let room = self.input.capacity() - self.input.len();
        let Poll::Ready(count) = self.stream.poll_read_to(context, &mut self.input) else {
            self.release_input();
            return Poll::Pending;
        };
        let count = count?;
        self.read_size =
            if count == room { (self.read_size * 2).min(READ_MAX) } else { READ_MIN.max(self.read_size / 2) };
        Poll::Ready(Ok(count))
    }

    /// Gives back the buffers with nothing in them.
    pub(crate) fn release_buffers(&mut self) {
        self.release_input();
        if let Some(message) = self.message.take_if(|message| !message.has_output()) {
            self.pool.put_message(message);
        }
    }

    fn release_input(&mut self) {
        if self.input.is_empty() && self.input.capacity() > 0 {
            self.pool.put_input(std::mem::take(&mut self.input), READ_MIN);
        }
    }

    /// Whether something waits to be written.
    pub(crate) fn has_output(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.has_output())
    }

    /// Whether so much waits to be written that nothing may be added.
    pub(crate) fn is_full(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.has_tail() || message.output.len() >= OUTPUT_MAX)
    }

    /// How much waits to be written.
    pub(crate) fn unsent(&self) -> usize {
        self.message
            .as_ref()
            .map_or(0, |message| message.output.len() - message.written + message.tail.len() + message.tail_end.len())
    }

    /// Adds a piece of a body, and its end. Call it only if the wire is not [full](Self::is_full).
    pub(crate) fn push(&mut self, piece: Bytes, end: &'static [u8]) {
        let message = self.message();
        debug_assert!(!message.has_tail(), "nothing is added after a large piece");
        if piece.len() <= COPY_MAX {
            message.output.extend_from_slice(&piece);
            message.output.extend_from_slice(end);
        } else {
            (message.tail, message.tail_end) = (piece, end);
        }
    }

    /// Writes as much as there is room for, although the system has not said that there is any: see
    /// [`EagerWrites`](crate::net::EagerWrites). Tells whether anything has moved.
    pub(crate) fn write_now(&mut self) -> bool {
        let unwritten = self.message.as_ref().map(|message| message.unwritten());
        let next = unwritten.and_then(|parts| parts.into_iter().find(|part| !part.is_empty())).unwrap_or_default();
        // If it fails, the next write fails too.
        let Ok(Some(count)) = self.stream.write_now(next) else { return false };
        if let Some(message) = &mut self.message {
            message.advance(count);
        }
        true
    }

    /// Writes everything.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(message) = &mut self.message {
            while message.has_output() {
                let stream = Pin::new(&mut self.stream);
                let unwritten = message.unwritten();
                let count = if message.has_tail() {
                    ready!(stream.poll_write_vectored(context, &unwritten.map(IoSlice::new)))?
                } else {
                    ready!(stream.poll_write(context, unwritten[0]))?
                };
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                message.advance(count);
            }
            message.output.clear();
            message.written = 0;
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }
}
