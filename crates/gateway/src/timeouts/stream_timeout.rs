//! Cuts streams of HTTP/2 whose client does not read its answer.
//!
//! The windows of HTTP/2 keep such an answer waiting for as long as the client likes. hyper asks for the next part of a
//! body when there is room for it; so a body that is not asked, or has given a part and is not asked again, is one that
//! nobody reads.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep};

/// How an answer's body is doing.
#[derive(Debug, Default)]
pub(crate) struct StreamProgress {
    /// How many parts have been asked for.
    asked: AtomicU64,
    /// Whether there is something that has not been asked for: a body, or its next part.
    is_waiting: AtomicBool,
}

/// What rings when nothing has moved for too long.
pub(crate) trait StreamLimit {
    /// Lets it ring after this time, whatever it was set to.
    fn set(&mut self, after: Duration);
    /// Waits for it to ring.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

pin_project! {
    /// A body that tells its watch when it is asked for something.
    #[derive(Debug)]
    pub(crate) struct TrackedBody<B> {
        #[pin]
        body: B,
        watch: Arc<StreamProgress>,
    }
}

/// Runs a stream to its end, or until nobody has read its answer for so long.
pub(crate) async fn run(
    stream: impl Future,
    watch: Arc<StreamProgress>,
    mut timeout: impl StreamLimit,
    stall: Duration,
) {
    let (mut stream, mut seen) = (pin!(stream), (0, false));
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let is_waiting = watch.is_waiting();
        let now = (watch.asked.load(Ordering::Relaxed), is_waiting);
        if now != seen {
            seen = now;
            timeout.set(stall);
        }
        if is_waiting { timeout.poll(context) } else { Poll::Pending }
    })
    .await;
}

// === impl StreamProgress ===

impl StreamProgress {
    /// Whether the client has no room for what comes next.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }
}

// === impl StreamLimit ===

impl StreamLimit for Pin<Box<Sleep>> {
    fn set(&mut self, after: Duration) {
        self.as_mut().reset(Instant::now() + after);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.as_mut().poll(context)
    }
}

// === impl TrackedBody ===

impl<B> TrackedBody<B> {
    pub(crate) fn new(body: B, watch: Arc<StreamProgress>) -> Self {
        watch.is_waiting.store(true, Ordering::Relaxed);
        Self { body, watch }
    }
}

impl<B: Body<Data = Bytes>> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        this.watch.asked.fetch_add(1, Ordering::Relaxed);
        this.watch.is_waiting.store(false, Ordering::Relaxed);
        let frame = ready!(this.body.poll_frame(context));
        this.watch.is_waiting.store(true, Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
