//! How the layer ends a request that is told to end (LM-7).

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;

use crate::layer::body::FlowBody;

/// How a request ends that is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RevokedEnd {
    /// The request goes on: either the code that drives it ends it, or its client could not tell that the response is not
    /// complete.
    #[default]
    GoesOn,
    /// There is no response yet: the layer makes one.
    Response,
    /// The response is a stream of events, and gets a last one.
    Event,
    /// The response ends before its length is reached.
    Cut,
}

/// The last event of a stream. The empty line before it ends an event that was not complete.
pub(crate) const LAST_EVENT: Bytes = Bytes::from_static(
    b"\n\nevent: error\ndata: {\"status\":503,\"reason\":\"revoked\",\"message\":\"the request was ended because others need its seats; \
      try again\"}\n\n",
);
const MESSAGE: &str = "the request was ended because others need its seats; try again\n";

// === impl RevokedEnd ===

impl RevokedEnd {
    /// For a request whose response has not begun.
    pub(crate) fn at_first(is_ended_here: bool) -> Self {
        if is_ended_here { Self::Response } else { Self::GoesOn }
    }

    /// For a response with these headers and this body.
    pub(crate) fn of_response(self, headers: &HeaderMap, body: &impl Body) -> Self {
        let is_of_events = || {
            let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
            content_type.starts_with(b"text/event-stream") && !headers.contains_key(CONTENT_ENCODING)
        };
        match self {
            Self::Response if is_of_events() => Self::Event,
            Self::Response if body.size_hint().exact().is_some() => Self::Cut,
            _ => Self::GoesOn,
        }
    }
}

/// The response to a request that was told to end before there was one.
#[cold]
pub(crate) fn response<B>() -> Response<FlowBody<B>> {
    let mut response = Response::new(FlowBody::own(Bytes::from_static(MESSAGE.as_bytes())));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
