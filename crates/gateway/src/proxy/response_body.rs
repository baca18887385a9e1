//! `ResponseBody`: the body of a response, from an upstream or of the gateway's own.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::http1::Wire;
use crate::observe::metrics::UpstreamFailure;
use crate::proxy::exchange::Exchange;
use crate::proxy::forward::sanitize_trailers;
use crate::proxy::upstream::{Http1Body, Http1Response, InFlight};
use crate::timeouts::IdleTimeout;

/// The body of a response.
#[derive(Debug, Default)]
pub(crate) struct ResponseBody {
    source: ResponseBodySource,
    /// The upstream has this request to work on, until the body has ended.
    in_flight: Option<InFlight>,
}

#[derive(Debug, Default)]
enum ResponseBodySource {
    #[default]
    None,
    Own(Bytes),
    Http1(Box<Http1Response>),
    Http2(Box<Http2Response>),
    /// No body: the upstream's connection is used for another protocol.
    Upgraded(Box<Wire>),
}

#[derive(Debug)]
struct Http2Response {
    body: hyper::body::Incoming,
    stall: IdleTimeout<Exchange>,
}

/// Why a response's body did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResponseBodyError {
    #[error("the upstream closed the connection in the middle of a response")]
    Cut,
    #[error("the upstream's response has stalled")]
    Stalled,
    #[error("the upstream sent a malformed response body")]
    Malformed,
    #[error("the request failed because of its client")]
    Request,
    #[error("the request was told to end")]
    Revoked,
}

// === impl ResponseBodyError ===

impl ResponseBodyError {
    /// The kind of the failure in metrics.
    pub(crate) fn kind(self) -> UpstreamFailure {
        match self {
            Self::Cut | Self::Request | Self::Revoked => UpstreamFailure::Cut,
            Self::Stalled => UpstreamFailure::TimeOut,
            Self::Malformed => UpstreamFailure::Malformed,
        }
    }
}

// === impl ResponseBody ===

impl ResponseBody {
    /// A body that is in memory already.
    pub(crate) fn own(text: impl Into<Bytes>) -> Self {
        Self { source: ResponseBodySource::Own(text.into()), in_flight: None }
    }

    pub(crate) fn http1(body: Http1Body, in_flight: InFlight) -> Self {
        match body {
            Http1Body::Whole(bytes) => {
                in_flight.complete();
                Self::own(bytes)
            }
            Http1Body::Open(response) => {
                Self { source: ResponseBodySource::Http1(response), in_flight: Some(in_flight) }
            }
        }
    }

    pub(crate) fn http2(body: hyper::body::Incoming, stall: IdleTimeout<Exchange>, in_flight: InFlight) -> Self {
        if body.is_end_stream() {
            in_flight.complete();
            return Self::default();
        }
        Self { source: ResponseBodySource::Http2(Box::new(Http2Response { body, stall })), in_flight: Some(in_flight) }
    }

    /// The body of a response with status 101, after which this connection is used for another protocol.
    pub(crate) fn upgraded(wire: Box<Wire>) -> Self {
        Self { source: ResponseBodySource::Upgraded(wire), in_flight: None }
    }

    /// The upstream's connection, if it is to be used for another protocol.
    pub(crate) fn take_upgraded(&mut self) -> Option<Box<Wire>> {
        match std::mem::take(&mut self.source) {
            ResponseBodySource::Upgraded(wire) => Some(wire),
            other => {
                self.source = other;
                None
            }
        }
    }
}

/// A part of a response, without trailers that could be taken for something else.
fn clean(frame: Frame<Bytes>) -> Frame<Bytes> {
    if frame.is_data() {
        return frame;
    }
    Frame::trailers(frame.into_trailers().map(sanitize_trailers).unwrap_or_default())
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        let this = &mut *self;
        let frame = match &mut this.source {
            ResponseBodySource::None | ResponseBodySource::Upgraded(_) => None,
            ResponseBodySource::Own(text) => (!text.is_empty()).then(|| Ok(Frame::data(std::mem::take(text)))),
            ResponseBodySource::Http1(response) => ready!(response.poll_frame(context)),
            ResponseBodySource::Http2(response) => ready!(response.poll_frame(context)),
        };
        let frame = frame.map(|frame| frame.map(clean));
        match &frame {
            Some(Err(_)) => this.in_flight = None,
            Some(Ok(_)) if !this.is_end_stream() => {}
            Some(Ok(_)) | None => {
                if let Some(in_flight) = this.in_flight.take() {
                    in_flight.complete();
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            ResponseBodySource::None | ResponseBodySource::Upgraded(_) => true,
            ResponseBodySource::Own(text) => text.is_empty(),
            ResponseBodySource::Http1(response) => response.is_ended(),
            ResponseBodySource::Http2(response) => response.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            ResponseBodySource::None | ResponseBodySource::Upgraded(_) => SizeHint::with_exact(0),
            ResponseBodySource::Own(text) => SizeHint::with_exact(text.len() as u64),
            ResponseBodySource::Http1(response) => response.left().map_or_else(SizeHint::default, SizeHint::with_exact),
            ResponseBodySource::Http2(response) => response.body.size_hint(),
        }
    }
}

// === impl Http2Response ===

impl Http2Response {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            // The stream was reset because the request has failed. The code that notices the failure decides how long the request
            // keeps its seats.
            Poll::Ready(Some(Err(_))) if self.stall.subject().failure().is_some() => {
                self.stall.subject().note_cancelled();
                Poll::Pending
            }
            Poll::Ready(frame) => {
                self.stall.note_activity();
                Poll::Ready(frame.map(|frame| frame.map_err(|_| ResponseBodyError::Cut)))
            }
            Poll::Pending => self.stall.poll(context).map(|()| Some(Err(ResponseBodyError::Stalled))),
        }
    }
}
