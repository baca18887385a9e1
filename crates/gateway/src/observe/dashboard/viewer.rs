//! `Viewer`: the body of a stream of frames.
//!
//! A viewer's stream makes the next piece only when its connection has room for it, and always from the latest frame. So a viewer who stops
//! reading costs what is in the buffers of its connection and one frame, and skips what it missed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::frames::{Frames, Latest, event};

/// Too many viewers watch already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are too many viewers; close one, or try again later")]
pub struct TooManyViewers;

/// A stream of server-sent events.
pub struct Viewer {
    frames: Frames,
    /// The part that is sent next without waiting.
    next: NextPart,
    /// Waits for the next frame.
    waiting: Pin<Box<dyn Future<Output = Option<Receiver>> + Send>>,
    sent: u32,
    _permit: OwnedSemaphorePermit,
}

type Receiver = watch::Receiver<Arc<Latest>>;

enum NextPart {
    Greeting,
    /// The names of the levels whose past is to be sent.
    Past(VecDeque<String>),
    Frames,
}

/// Browsers come back after this long when the stream ends.
const GREETING: &[u8] = b"retry: 500\n\n";
/// A stream ends after so many frames, before the admin endpoint closes the connection in the middle of one.
const FRAMES_MAX: u32 = 280;

// === impl Viewer ===

impl Viewer {
    pub(super) fn new(frames: Frames, mut latest: Receiver, permit: OwnedSemaphorePermit) -> Self {
        // The first frame is there already, and need not be waited for.
        if latest.borrow_and_update().is_there() {
            latest.mark_changed();
        }
        Self { frames, next: NextPart::Greeting, waiting: changed(latest), sent: 0, _permit: permit }
    }

    fn past(&mut self) -> Option<Bytes> {
        loop {
            match &mut self.next {
                NextPart::Greeting => {
                    self.next = NextPart::Past(self.frames.names().into());
                    return Some(Bytes::from_static(GREETING));
                }
                NextPart::Past(names) => match names.pop_front() {
                    Some(name) => {
                        if let Some(past) = self.frames.past(&name) {
                            return Some(event("past", &past));
                        }
                    }
                    None => self.next = NextPart::Frames,
                },
                NextPart::Frames => return None,
            }
        }
    }
}

fn changed(mut latest: Receiver) -> Pin<Box<dyn Future<Output = Option<Receiver>> + Send>> {
    Box::pin(async move { latest.changed().await.is_ok().then_some(latest) })
}

impl Body for Viewer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(past) = self.past() {
            return Poll::Ready(Some(Ok(Frame::data(past))));
        }
        if self.sent >= FRAMES_MAX {
            return Poll::Ready(None);
        }
        let Some(mut latest) = ready!(self.waiting.as_mut().poll(context)) else { return Poll::Ready(None) };
        let frame = latest.borrow_and_update().text();
        self.waiting = changed(latest);
        self.sent += 1;
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

impl std::fmt::Debug for Viewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Viewer").field("sent", &self.sent).finish_non_exhaustive()
    }
}
