//! `ResponseData`: what is sent back, as plain data that the HTTP layer wraps.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};

use crate::output::{Media, TextFormat};

/// A response that is ready to be sent, except for the header fields that every response has (API-92).
#[derive(Debug, Clone)]
pub(crate) struct ResponseData {
    /// The status.
    pub(crate) status: StatusCode,
    /// The format of the body; `None` without a body.
    pub(crate) content_type: Option<HeaderValue>,
    /// Further header fields. A `Cache-Control` here takes the place of the common one.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub(crate) body: Bytes,
}

// === impl ResponseData ===

impl ResponseData {
    /// A document, given as one line of JSON, written as the client wants it.
    pub(crate) fn document(status: StatusCode, line: Bytes, format: TextFormat) -> Self {
        Self::new(status, format.content_type(), format.written(line))
    }

    /// A message in protobuf, in its envelope.
    pub(crate) fn protobuf(status: StatusCode, message: Vec<u8>) -> Self {
        Self::new(status, HeaderValue::from_static(Media::Protobuf.name()), message.into())
    }

    /// A body of that type.
    pub(crate) fn new(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Self {
        Self { status, content_type: Some(content_type), headers: Vec::new(), body }
    }

    /// Plain text.
    pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self::new(status, HeaderValue::from_static("text/plain; charset=utf-8"), text.into())
    }

    /// No body.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, content_type: None, headers: Vec::new(), body: Bytes::new() }
    }

    /// The same with one more header field.
    #[must_use]
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}
