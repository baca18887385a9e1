//! `BufferPool`: the buffers that no connection of a worker needs at the moment.
//!
//! Most connections are idle most of the time. They hold no buffers: a connection takes them when there is something to read or
//! to write, and gives them back when it waits for its next message.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::{Buf, Bytes, BytesMut};

use super::head_memory::HeadMemory;

/// The buffers that are free.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    inputs: RefCell<Vec<BytesMut>>,
    // Boxed, because connections hold them so.
    #[expect(clippy::vec_box, reason = "a box goes from here to a connection as it is")]
    messages: RefCell<Vec<Box<Message>>>,
}

/// The buffers that a connection holds while a message is under way.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// The memory of parsed heads.
    pub(super) heads: HeadMemory,
    /// The bytes to be written first.
    pub(super) output: Vec<u8>,
    /// How much of that has been written.
    pub(super) written: usize,
    /// The bytes to be written after those. Large pieces are not copied.
    pub(super) tail: Bytes,
    /// The end of that piece.
    pub(super) tail_end: &'static [u8],
}

/// More than this are not kept.
const COUNT_MAX: usize = 128;
/// A buffer that has grown larger than this is not kept.
const BYTES_MAX: usize = 64 * 1024;

// === impl BufferPool ===

impl BufferPool {
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// A buffer with nothing in it.
    pub(super) fn take_input(&self) -> BytesMut {
        self.inputs.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back an empty buffer. It is kept if it has room for `bytes_min` bytes.
    pub(super) fn put_input(&self, mut input: BytesMut, bytes_min: usize) {
        let mut inputs = self.inputs.borrow_mut();
        if inputs.len() < COUNT_MAX && input.capacity() <= BYTES_MAX && input.try_reclaim(bytes_min) {
            inputs.push(input);
        }
    }

    pub(super) fn take_message(&self) -> Box<Message> {
        self.messages.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes the buffers of a message that has been written.
    pub(super) fn put_message(&self, message: Box<Message>) {
        let mut messages = self.messages.borrow_mut();
        if messages.len() < COUNT_MAX && message.output.capacity() <= BYTES_MAX {
            messages.push(message);
        }
    }
}

// === impl Message ===

impl Message {
    pub(super) fn has_tail(&self) -> bool {
        !self.tail.is_empty() || !self.tail_end.is_empty()
    }

    pub(super) fn has_output(&self) -> bool {
        self.written < self.output.len() || self.has_tail()
    }

    /// The bytes to be written next, in three parts.
    pub(super) fn unwritten(&self) -> [&[u8]; 3] {
        [&self.output[self.written..], &self.tail, self.tail_end]
    }

    /// Notes how many bytes have been written.
    pub(super) fn advance(&mut self, count: usize) {
        let of_first = count.min(self.output.len() - self.written);
        self.written += of_first;
        let of_tail = (count - of_first).min(self.tail.len());
        self.tail.advance(of_tail);
        self.tail_end = &self.tail_end[count - of_first - of_tail..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_unless_they_are_in_use_or_large() {
        let pool = BufferPool::default();
        pool.put_input(BytesMut::with_capacity(8192), 4096);
        let mut input = pool.take_input();
        assert!(input.capacity() >= 8192 && pool.inputs.borrow().is_empty());
        input.extend_from_slice(b"a part of a body");
        let in_use = input.split();
        pool.put_input(input, 8192);
        assert!(pool.inputs.borrow().is_empty(), "somebody reads from it");
        drop(in_use);
        pool.put_input(BytesMut::with_capacity(BYTES_MAX + 1), 4096);
        let large = Message { output: Vec::with_capacity(BYTES_MAX + 1), ..Message::default() };
        pool.put_message(Box::new(large));
        assert!(pool.inputs.borrow().is_empty() && pool.messages.borrow().is_empty());
        (0..2 * COUNT_MAX).for_each(|_| pool.put_message(Box::default()));
        assert_eq!(pool.messages.borrow().len(), COUNT_MAX);
    }
}
