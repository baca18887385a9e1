//! `StreamCount`: counts the running streams of an HTTP/2 connection, and closes the connection when it is idle.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use crate::proxy::worker::Worker;

/// How many streams of one connection are running, and how many there were. Clones count the same streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamCount {
    running: Rc<Cell<usize>>,
    begun: Rc<Cell<u64>>,
}

/// A running stream. It is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningStream {
    running: Rc<Cell<usize>>,
}

/// How long a connection that is told to close may take, if no stream runs on it.
const CLOSE_MAX: Duration = Duration::from_secs(2);

// === impl StreamCount ===

impl StreamCount {
    pub(crate) fn begin(&self) -> RunningStream {
        self.begun.set(self.begun.get() + 1);
        self.running.set(self.running.get() + 1);
        RunningStream { running: Rc::clone(&self.running) }
    }

    /// Runs a connection to its end. It is told to close by `shut_down` when the worker drains, or when no stream has run for the
    /// idle timeout.
    pub(crate) async fn run_connection<C: Future>(
        &self,
        mut connection: Pin<&mut C>,
        shut_down: impl Fn(Pin<&mut C>),
        worker: &Worker,
    ) -> Option<C::Output> {
        let mut timeout = worker.timer.timeout(worker.idle_after());
        let (mut is_closing, mut seen) = (false, 0);
        poll_fn(|context| {
            loop {
                if worker.is_draining() && !is_closing {
                    is_closing = true;
                    shut_down(connection.as_mut());
                    timeout.set(CLOSE_MAX);
                }
                if let Poll::Ready(output) = connection.as_mut().poll(context) {
                    return Poll::Ready(Some(output));
                }
                if self.running.get() > 0 || self.begun.get() != seen {
                    seen = self.begun.get();
                    timeout.set(if is_closing { CLOSE_MAX } else { worker.idle_after() });
                }
                match timeout.poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) if is_closing => return Poll::Ready(None),
                    Poll::Ready(()) => {
                        is_closing = true;
                        shut_down(connection.as_mut());
                        timeout.set(CLOSE_MAX);
                    }
                }
            }
        })
        .await
    }
}

// === impl RunningStream ===

impl Drop for RunningStream {
    fn drop(&mut self) {
        self.running.set(self.running.get().saturating_sub(1));
    }
}
