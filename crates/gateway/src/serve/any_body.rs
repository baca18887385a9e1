//! `AnyBody`: the body of an answer that was passed on, or of one of the connection's own.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use evenkeel::FlowBody;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::answer_body::{AnswerBody, AnswerError};

pin_project! {
    /// The body of an answer.
    #[derive(Debug)]
    pub(super) struct AnyBody {
        #[pin]
        source: Source,
    }
}

pin_project! {
    #[project = SourceProjection]
    #[derive(Debug)]
    enum Source {
        Passed { #[pin] body: FlowBody<AnswerBody> },
        Own { #[pin] body: AnswerBody },
    }
}

// === impl AnyBody ===

impl AnyBody {
    /// That of an answer that came through the flow control.
    pub(super) fn passed(body: FlowBody<AnswerBody>) -> Self {
        Self { source: Source::Passed { body } }
    }

    /// That of an answer to a request that did not get so far.
    pub(super) fn own(body: AnswerBody) -> Self {
        Self { source: Source::Own { body } }
    }
}

impl Body for AnyBody {
    type Data = Bytes;
    type Error = AnswerError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.project().source.project() {
            SourceProjection::Passed { body } => body.poll_frame(context),
            SourceProjection::Own { body } => body.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Passed { body } => body.is_end_stream(),
            Source::Own { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Passed { body } => body.size_hint(),
            Source::Own { body } => body.size_hint(),
        }
    }
}
