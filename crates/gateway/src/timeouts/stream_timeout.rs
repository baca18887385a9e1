//! `StreamTimeout`: ends an HTTP/2 stream whose client does not read its response.
//!
//! The flow-control windows of HTTP/2 let a client keep a response waiting for as long as it likes. hyper polls a body for its
//! next part when there is room for it. So a body that is not polled, or that has returned a part and is not polled again, is not
//! being read.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep};

/// How far the client has read the body of a response.
#[derive(Debug, Default)]
pub(crate) struct StreamProgress {
    /// How many parts have been polled for.
    polled: AtomicU64,
    /// Whether a body, or its next part, has not been polled for.
    is_waiting: AtomicBool,
}

/// A timeout that can start again.
pub(crate) trait Restart {
    /// Fires after this time, whatever it was set to.
    fn restart(&mut self, after: Duration);
    /// Whether the time is over; if not, the task is woken when it is.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()>;
}

/// The timeout of a stream, on a timer of either kind.
#[derive(Debug)]
pub(crate) struct StreamTimeout<T> {
    progress: Arc<StreamProgress>,
    timeout: T,
    after: Duration,
    /// The progress when it was last checked.
    seen: (u64, bool),
}

pin_project! {
    /// A body that records when it is polled.
    #[derive(Debug)]
    pub(crate) struct TrackedBody<B> {
        #[pin]
        body: B,
        progress: Arc<StreamProgress>,
    }
}

// === impl StreamProgress ===

impl StreamProgress {
    /// Whether the client has no room for the next part.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }
}

// === impl Restart ===

impl Restart for Pin<Box<Sleep>> {
    fn restart(&mut self, after: Duration) {
        self.as_mut().reset(Instant::now() + after);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Future::poll(self.as_mut(), context)
    }
}

// === impl StreamTimeout ===

impl<T: Restart> StreamTimeout<T> {
    pub(crate) fn new(progress: Arc<StreamProgress>, timeout: T, after: Duration) -> Self {
        Self { progress, timeout, after, seen: (0, false) }
    }

    /// Whether the client has not read the response for too long. To be called whenever the stream has been polled.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let is_waiting = self.progress.is_waiting();
        let now = (self.progress.polled.load(Ordering::Relaxed), is_waiting);
        if now != self.seen {
            self.seen = now;
            self.timeout.restart(self.after);
        }
        if is_waiting { self.timeout.poll(context) } else { Poll::Pending }
    }
}

// === impl TrackedBody ===

impl<B> TrackedBody<B> {
    pub(crate) fn new(body: B, progress: Arc<StreamProgress>) -> Self {
        progress.is_waiting.store(true, Ordering::Relaxed);
        Self { body, progress }
    }
}

impl<B: Body<Data = Bytes>> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        this.progress.polled.fetch_add(1, Ordering::Relaxed);
        this.progress.is_waiting.store(false, Ordering::Relaxed);
        let frame = ready!(this.body.poll_frame(context));
        this.progress.is_waiting.store(true, Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
