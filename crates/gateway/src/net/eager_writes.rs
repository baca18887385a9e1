//! `EagerWrites`: a stream that notices a slow reader's progress.
//!
//! The system says that a socket has room when a good part of its buffer is free, and such a buffer has megabytes. A client
//! that reads some kilobytes a second takes minutes for that, and looks like one that does not read at all. So while a write
//! waits, this tries again twice a second, whatever the system has said. It costs nothing as long as no write waits.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::timeouts::{CoarseTimer, Timeout};

/// A stream that can be written to although the system has not said that it has room.
pub(crate) trait WriteNow {
    /// Writes what there is room for. `None` if there is none; otherwise how many of these bytes have been taken, which may be
    /// none where older ones have made room.
    fn write_now(&mut self, bytes: &[u8]) -> io::Result<Option<usize>>;
}

/// A stream whose waiting writes are tried again and again.
#[derive(Debug)]
pub(crate) struct EagerWrites<S> {
    stream: S,
    again: Timeout,
    is_waiting: bool,
}

/// How often a waiting write is tried again.
const PERIOD: Duration = Duration::from_millis(500);

// === impl EagerWrites ===

impl<S> EagerWrites<S> {
    pub(crate) fn new(stream: S, timer: &Rc<CoarseTimer>) -> Self {
        Self { stream, again: timer.timeout(Duration::ZERO), is_waiting: false }
    }

    /// A write waits. Ready when it is to be tried again.
    fn poll_again(&mut self, context: &Context<'_>) -> Poll<()> {
        if !self.is_waiting {
            self.is_waiting = true;
            self.again.set(PERIOD);
        }
        ready!(self.again.poll(context));
        self.again.set(PERIOD);
        // The timeout fires again at a later time, and has to know the task.
        let _ = self.again.poll(context);
        Poll::Ready(())
    }

    fn end_wait(&mut self) {
        if self.is_waiting {
            self.is_waiting = false;
            self.again.set(Duration::ZERO);
        }
    }
}

impl<S: WriteNow + AsyncWrite + Unpin> EagerWrites<S> {
    /// Writes these bytes in that way, or in another if that waits for too long.
    fn poll_written(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        write: impl Fn(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut result = write(Pin::new(&mut self.stream), context);
        if result.is_pending() {
            ready!(self.poll_again(context));
            match self.stream.write_now(bytes)? {
                None => return Poll::Pending,
                Some(0) => result = write(Pin::new(&mut self.stream), context),
                Some(taken) => result = Poll::Ready(Ok(taken)),
            }
        }
        if result.is_ready() {
            self.end_wait();
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for EagerWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: WriteNow + AsyncWrite + Unpin> AsyncWrite for EagerWrites<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_written(context, bytes, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |slice| &**slice);
        self.poll_written(context, first, |stream, context| stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = |stream: Pin<&mut S>, context: &mut Context<'_>| stream.poll_flush(context).map_ok(|()| 0);
        self.poll_written(context, &[], flush).map_ok(|_| ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::task::Waker;

    use super::*;

    /// A stream of which the system never says that it has room.
    struct Deaf {
        room: Rc<Cell<usize>>,
    }

    impl WriteNow for Deaf {
        fn write_now(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
            let taken = self.room.replace(0).min(bytes.len());
            Ok((taken > 0).then_some(taken))
        }
    }

    impl AsyncWrite for Deaf {
        fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, _bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_write_that_waits_takes_any_room_that_there_is() {
        let (timer, room) = (CoarseTimer::new(), Rc::<Cell<usize>>::default());
        let mut stream = EagerWrites::new(Deaf { room: Rc::clone(&room) }, &timer);
        let mut context = Context::from_waker(Waker::noop());
        let mut write = |timer: &CoarseTimer, ticks: u64| {
            timer.advance(timer.now() + ticks);
            Pin::new(&mut stream).poll_write(&mut context, b"hello")
        };
        assert!(write(&timer, 0).is_pending());
        assert!(write(&timer, 20).is_pending(), "there is no room");
        room.set(3);
        assert!(write(&timer, 1).is_pending(), "it was tried just now");
        assert!(matches!(write(&timer, 20), Poll::Ready(Ok(3))));
        room.set(9);
        assert!(write(&timer, 1).is_pending(), "the next write waits from its own beginning");
        assert!(matches!(write(&timer, 20), Poll::Ready(Ok(5))));
    }
}
