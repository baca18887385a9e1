//! `ClientBody`: the body of a request, read from the client's connection when it is asked for.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::exchange::Exchange;
use crate::forward::TrailerGuard;
use crate::h1::{Decoded, Decoder, Wire};
use crate::stall::Stall;
use crate::ticks::Ticks;
use crate::upload::Upload;

/// The body of a request. Most have none, and carry nothing about.
#[derive(Debug)]
pub(crate) struct ClientBody(Option<Box<Open>>);

/// A body of which something may come.
#[derive(Debug)]
struct Open {
    source: Source,
    /// Rings when nothing has moved for too long.
    stall: Option<Stall>,
    stall_after: Duration,
    bytes_left: u64,
    is_begun: bool,
    trailers: Option<TrailerGuard>,
    /// Somebody else waits for the answer, and is told how it gets on.
    upload: Option<Rc<Upload>>,
}

#[derive(Debug)]
enum Source {
    Http1(Rc<RefCell<ClientWire>>),
    Http2(hyper::body::Incoming),
}

/// A client's connection, which both the one that serves it and the body of its request look at.
#[derive(Debug)]
pub(crate) struct ClientWire {
    pub(crate) wire: Wire,
    /// How far the body of the current request has been read.
    pub(crate) decoder: Decoder,
    /// The client waits for permission to send its body.
    pub(crate) owes_continue: bool,
}

/// Why a request's body came to no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the client has gone")]
    Gone,
    #[error("the body of the request has stalled")]
    Stalled,
    #[error("the body of the request is too large")]
    TooLarge,
    #[error("the body of the request cannot be understood")]
    Malformed,
}

// === impl ClientBody ===

impl ClientBody {
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The body of the request whose head has just been read from this connection.
    pub(crate) fn http1(wire: &Rc<RefCell<ClientWire>>, stall_after: Duration, bytes_max: u64) -> Self {
        if wire.borrow().decoder.is_done() {
            return Self::none();
        }
        Self::new(Source::Http1(Rc::clone(wire)), stall_after, bytes_max)
    }

    pub(crate) fn http2(body: hyper::body::Incoming, stall_after: Duration, bytes_max: u64) -> Self {
        if body.is_end_stream() {
            return Self::none();
        }
        Self::new(Source::Http2(body), stall_after, bytes_max)
    }

    fn new(source: Source, stall_after: Duration, bytes_max: u64) -> Self {
        let bytes_left = if bytes_max == 0 { u64::MAX } else { bytes_max };
        let open = Open { source, stall: None, stall_after, bytes_left, is_begun: false, trailers: None, upload: None };
        Self(Some(Box::new(open)))
    }

    /// Whether nothing of it has been read, so that it can be sent to somebody else.
    pub(crate) fn is_untouched(&self) -> bool {
        self.0.as_ref().is_none_or(|open| !open.is_begun)
    }

    /// Whether there is nothing to read.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// How much is left to read, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.0.as_ref().map(|open| &open.source) {
            None => Some(0),
            Some(Source::Http1(wire)) => wire.borrow().decoder.left(),
            Some(Source::Http2(body)) => body.size_hint().exact(),
        }
    }

    /// Whether it is known to be larger than it may be.
    pub(crate) fn is_too_large(&self) -> bool {
        let Some(open) = &self.0 else { return false };
        self.left().is_some_and(|left| left > open.bytes_left)
    }

    /// Gives up waiting for it after the time that was said, and has its trailers looked at.
    pub(crate) fn watch(&mut self, ticks: &Rc<Ticks>, exchange: &Rc<Exchange>, guard: impl FnOnce() -> TrailerGuard) {
        if let Some(open) = &mut self.0 {
            open.stall = Some(Stall::new(ticks, exchange, open.stall_after));
            open.trailers = Some(guard());
        }
    }

    /// Tells somebody who waits for the answer how it gets on.
    pub(crate) fn tell(&mut self, upload: &Rc<Upload>) {
        if let Some(open) = &mut self.0 {
            open.upload = Some(Rc::clone(upload));
        }
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            None => Poll::Ready(None),
            Some(open) => {
                let frame = ready!(open.poll_frame(context));
                if let Some(upload) = &open.upload {
                    upload.note(frame.as_ref().and_then(|frame| frame.as_ref().err().copied()));
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.0.as_ref().map(|open| &open.source) {
            None => true,
            Some(Source::Http1(wire)) => wire.borrow().decoder.is_done(),
            Some(Source::Http2(body)) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.left().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

// === impl Open ===

impl Open {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.is_begun = true;
        let Poll::Ready(frame) = self.poll_source(context) else {
            if let Some(stall) = &mut self.stall {
                ready!(stall.poll(context));
                return Poll::Ready(Some(Err(BodyError::Stalled)));
            }
            return Poll::Pending;
        };
        if let Some(stall) = &self.stall {
            stall.note_movement();
        }
        Poll::Ready(match frame {
            None => None,
            Some(frame) => frame.and_then(|frame| self.check(frame)).transpose(),
        })
    }

    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.source {
            Source::Http1(wire) => wire.borrow_mut().poll_frame(context),
            Source::Http2(body) => {
                Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(|_| BodyError::Gone)))
            }
        }
    }

    /// What is let through of a part, if anything is.
    fn check(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, BodyError> {
        match frame.into_data() {
            Ok(data) => {
                self.bytes_left = self.bytes_left.checked_sub(data.len() as u64).ok_or(BodyError::TooLarge)?;
                Ok(Some(Frame::data(data)))
            }
            Err(frame) => Ok(match (frame.into_trailers(), &self.trailers) {
                (Ok(trailers), Some(guard)) => Some(Frame::trailers(guard.clean(trailers))),
                _ => None,
            }),
        }
    }
}

// === impl ClientWire ===

impl ClientWire {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire, decoder: Decoder::EMPTY, owes_continue: false }
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if std::mem::take(&mut self.owes_continue) && self.wire.input.is_empty() {
            self.wire.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if self.wire.has_output()
            && let Poll::Ready(Err(_)) = self.wire.poll_flush(context)
        {
            return Poll::Ready(Some(Err(BodyError::Gone)));
        }
        loop {
            match self.decoder.decode(&mut self.wire.input) {
                Ok(Some(Decoded::Data(data))) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(Some(Decoded::Trailers(trailers))) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                Ok(Some(Decoded::End)) => return Poll::Ready(None),
                Ok(None) => match ready!(self.wire.poll_fill(context)) {
                    Ok(0) | Err(_) => return Poll::Ready(Some(Err(BodyError::Gone))),
                    Ok(_) => {}
                },
                Err(_) => return Poll::Ready(Some(Err(BodyError::Malformed))),
            }
        }
    }
}
