//! Runs the streams of one HTTP/2 connection on the worker's thread.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::exchange::Exchange;
use crate::stall::Stall;
use crate::stream_watch::{self, StreamWatch};
use crate::ticks::{Alarm, Elapsed, Ticks};

/// Runs streams, and cuts those that nobody reads or that take too long.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    pub(super) ticks: Rc<Ticks>,
    pub(super) stall: Duration,
    /// The stream that is about to be run.
    pub(super) next: Rc<RefCell<Option<OfStream>>>,
}

/// What is known of a stream with a request. One that an upgrade has led to has no such thing, and no limit.
#[derive(Debug)]
pub(super) struct OfStream {
    pub(super) watch: Arc<StreamWatch>,
    pub(super) exchange: Rc<Exchange>,
    pub(super) total: Total,
}

/// The end of the time for a whole request. The one who waits for its answer looks at it, and from then on the one who
/// runs the stream: nobody asks for the body of an answer while the client has no room for it.
#[derive(Debug, Clone)]
pub(super) struct Total(Rc<RefCell<Alarm>>);

// === impl Streams ===

impl<F: Future + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let Some(OfStream { watch, exchange, total }) = self.next.borrow_mut().take() else {
            tokio::task::spawn_local(async move {
                stream.await;
            });
            return;
        };
        let stall = Stall::new(&self.ticks, &exchange, self.stall);
        let stream = stream_watch::run(stream, watch, stall, self.stall);
        tokio::task::spawn_local(async move {
            // Either way the stream is over.
            let _ = total.limit(stream).await;
        });
    }
}

// === impl Total ===

impl Total {
    pub(super) fn new(alarm: Alarm) -> Self {
        Self(Rc::new(RefCell::new(alarm)))
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
