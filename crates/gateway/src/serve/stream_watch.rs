//! Cuts streams of HTTP/2 whose client does not read its answer.
//!
//! The windows of HTTP/2 keep such an answer waiting for as long as the client likes. hyper asks for the next part of a
//! body when there is room for it; so a body that has given a part and is not asked again is one that nobody reads.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::ticks::Ticks;

/// How an answer's body is doing.
#[derive(Debug, Default)]
pub(super) struct StreamWatch {
    /// How many parts have been asked for.
    asked: Cell<u64>,
    /// Whether a part was given, and the next one has not been asked for.
    is_waiting: Cell<bool>,
}

/// Runs the streams of one connection on the worker's thread, and cuts those that nobody reads.
#[derive(Debug, Clone)]
pub(super) struct WatchedStreams {
    pub(super) ticks: Rc<Ticks>,
    pub(super) stall_after: Duration,
    /// The watch of the stream that is about to be run.
    pub(super) next: Rc<RefCell<Option<Rc<StreamWatch>>>>,
}

pin_project! {
    /// A body that tells its watch when it is asked for something.
    #[derive(Debug)]
    pub(super) struct WatchedBody<B> {
        #[pin]
        body: B,
        watch: Rc<StreamWatch>,
    }
}

// === impl WatchedStreams ===

impl<F: Future + 'static> hyper::rt::Executor<F> for WatchedStreams {
    fn execute(&self, future: F) {
        let watch = self.next.borrow_mut().take().unwrap_or_default();
        let (ticks, stall_after) = (Rc::clone(&self.ticks), self.stall_after);
        tokio::task::spawn_local(async move {
            let (mut future, mut alarm, mut asked) = (pin!(future), ticks.alarm(stall_after), 0);
            poll_fn(|context| {
                if future.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                if watch.asked.get() != asked || !watch.is_waiting.get() {
                    asked = watch.asked.get();
                    alarm.set(stall_after);
                }
                if watch.is_waiting.get() { alarm.poll(context) } else { Poll::Pending }
            })
            .await;
        });
    }
}

// === impl WatchedBody ===

impl<B> WatchedBody<B> {
    pub(super) fn new(body: B, watch: Rc<StreamWatch>) -> Self {
        Self { body, watch }
    }
}

impl<B: Body<Data = Bytes>> Body for WatchedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        this.watch.asked.set(this.watch.asked.get() + 1);
        this.watch.is_waiting.set(false);
        let frame = ready!(this.body.poll_frame(context));
        this.watch.is_waiting.set(true);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
