//! A watch as the body of a response: read as fast as the client takes it, and no faster.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use evenkeel_api::HubSpec;
use http::HeaderValue;

use super::{WatchPermit, WatchStream};
use crate::output::Columns;

/// The body of a watch.
///
/// Nothing is read from the store for a client that does not read its events: such a client falls behind alone.
pub(crate) struct WatchBody {
    content_type: HeaderValue,
    next: Option<Next>,
    _permit: WatchPermit,
}

/// The next line, and the stream of the others.
type Next = Pin<Box<dyn Future<Output = (Option<Bytes>, Box<dyn Lines>)> + Send>>;

/// A stream of lines, for either kind of objects.
trait Lines: Send {
    fn next(self: Box<Self>) -> Next;
}

// === impl WatchBody ===

impl WatchBody {
    pub(crate) fn new<S: HubSpec + Columns>(stream: WatchStream<S>, permit: WatchPermit) -> Self {
        let content_type = stream.content_type();
        Self { content_type, next: Some(Lines::next(Box::new(stream))), _permit: permit }
    }

    /// The format of the watch.
    pub(crate) fn content_type(&self) -> HeaderValue {
        self.content_type.clone()
    }

    /// The next event, as soon as there is one. None at the end.
    pub(crate) fn poll_line(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let (line, rest) = ready!(next.as_mut().poll(context));
        self.next = line.is_some().then(|| rest.next());
        Poll::Ready(line)
    }
}

impl<S: HubSpec + Columns> Lines for WatchStream<S> {
    fn next(mut self: Box<Self>) -> Next {
        Box::pin(async move {
            let line = Self::next(&mut self).await;
            (line, self as Box<dyn Lines>)
        })
    }
}

impl fmt::Debug for WatchBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchBody").field("is_open", &self.next.is_some()).finish_non_exhaustive()
    }
}
