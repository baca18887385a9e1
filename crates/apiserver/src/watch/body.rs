//! A watch as the body of an answer: read as fast as the client takes it, and no faster.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use evenkeel_api::HubSpec;
use http_body::{Body, Frame};

use super::{WatchPermit, WatchStream};
use crate::output::Columns;

/// The body of a watch.
///
/// Nothing is read from the store for a client that does not take what it got: it falls behind alone.
pub(crate) struct WatchBody {
    next: Option<Next>,
    _permit: WatchPermit,
}

/// The next line, and the stream it came from.
type Next = Pin<Box<dyn Future<Output = Option<(Bytes, Rest)>> + Send>>;
/// What makes the line after.
type Rest = Box<dyn FnOnce() -> Next + Send>;

// === impl WatchBody ===

impl WatchBody {
    pub(crate) fn new<S: HubSpec + Columns>(stream: WatchStream<S>, permit: WatchPermit) -> Self {
        Self { next: Some(next(stream)), _permit: permit }
    }
}

fn next<S: HubSpec + Columns>(mut stream: WatchStream<S>) -> Next {
    Box::pin(async move {
        let line = stream.next().await?;
        let rest: Rest = Box::new(|| next(stream));
        Some((line, rest))
    })
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let line = ready!(next.as_mut().poll(context)).map(|(line, rest)| {
            self.next = Some(rest());
            Ok(Frame::data(line))
        });
        if line.is_none() {
            self.next = None;
        }
        Poll::Ready(line)
    }
}

impl fmt::Debug for WatchBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchBody").field("is_open", &self.next.is_some()).finish_non_exhaustive()
    }
}
