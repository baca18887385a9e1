//! Runs the streams of one HTTP/2 connection on the worker's thread.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::buffered_body::BodyOfStream;
use crate::proxy::exchange::Exchange;
use crate::proxy::worker::Worker;
use crate::timeouts::IdleTimeout;
use crate::timeouts::MinimumRate;
use crate::timeouts::stream_timeout::{self, StreamProgress};
use crate::timeouts::{Elapsed, Timeout};

/// Runs streams, and cuts those that nobody reads or that take too long.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor {
    pub(super) worker: Rc<Worker>,
    /// The stream that is about to be run.
    pub(super) next: Rc<RefCell<Option<StreamState>>>,
}

/// What is known of a stream with a request. One that an upgrade has led to has no such thing, and no limit.
#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) watch: Arc<StreamProgress>,
    pub(super) exchange: Rc<Exchange>,
    pub(super) total: TotalTimeout,
    pub(super) body: BodyOfStream,
}

/// The end of the time for a whole request. The one who waits for its answer looks at it, and from then on the one who
/// runs the stream: nobody asks for the body of an answer while the client has no room for it.
#[derive(Debug, Clone)]
pub(super) struct TotalTimeout(Rc<RefCell<Timeout>>);

// === impl StreamExecutor ===

impl<F: Future + 'static> hyper::rt::Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        let Some(StreamState { watch, exchange, total, body }) = self.next.borrow_mut().take() else {
            tokio::task::spawn_local(async move {
                stream.await;
            });
            return;
        };
        let (timer, stall_after) = (&self.worker.timer, self.worker.config.timeouts.stall);
        let stall = IdleTimeout::new(timer, &exchange, stall_after);
        let stream = read_ahead(stream, body, Arc::clone(&watch), Rc::clone(&self.worker));
        let stream = stream_timeout::run(stream, watch, stall, stall_after);
        tokio::task::spawn_local(async move {
            // Either way the stream is over.
            let _ = total.limit(stream).await;
        });
    }
}

/// Runs a stream, and reads its response ahead while the client is slow to take it: the request does not keep its seats for
/// that. Ends a stream whose response has no room and whose client is too slow.
async fn read_ahead(stream: impl Future, body: BodyOfStream, watch: Arc<StreamProgress>, worker: Rc<Worker>) {
    let mut stream = pin!(stream);
    let mut minimum_rate = MinimumRate::new(&worker.timer, worker.config.limits.body_bytes_per_second_min);
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let Some(body) = body.borrow().upgrade() else { return Poll::Pending };
        let mut body = body.borrow_mut();
        minimum_rate.note(body.take_sent());
        // A client that has room waits for the upstream.
        if !watch.is_waiting() {
            return Poll::Pending;
        }
        body.poll_ahead(context);
        if !body.is_held_up() {
            return Poll::Pending;
        }
        let slow = minimum_rate.poll_slow(context);
        if slow.is_ready() {
            worker.metrics.client_too_slow();
        }
        slow
    })
    .await;
}

// === impl TotalTimeout ===

impl TotalTimeout {
    pub(super) fn new(timeout: Timeout) -> Self {
        Self(Rc::new(RefCell::new(timeout)))
    }

    /// Begins again.
    pub(super) fn set(&self, duration: Duration) {
        self.0.borrow_mut().set(duration);
    }

    /// What the future gives, unless the time is over first.
    pub(super) async fn limit<F: Future>(&self, future: F) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.0.borrow_mut().poll(context).map(|()| Err(Elapsed)),
        })
        .await
    }
}
