//! What goes back over HTTP: an answer with the header fields that every one has, or a watch (API-92).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use crate::answer::Answer;
use crate::gzip;
use crate::watch::WatchBody;

/// The body of an answer.
#[derive(Debug)]
pub struct ApiBody(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Full<Bytes>),
    Watch(WatchBody),
}

/// What a request comes to.
#[derive(Debug)]
pub(super) enum Reply {
    Answer(Answer),
    Watch(WatchBody),
}

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, private");

// === impl Reply ===

impl Reply {
    /// The response, with the warnings that go with it.
    pub(super) fn into_response(self, request: &HeaderMap, warnings: Vec<HeaderValue>) -> Response<ApiBody> {
        let mut response = match self {
            Self::Answer(answer) => {
                let Answer { status, content_type, headers, body } = gzip::packed(answer, request);
                let mut response = Response::new(ApiBody(Inner::Whole(Full::new(body))));
                *response.status_mut() = status;
                if let Some(content_type) = content_type {
                    response.headers_mut().insert(CONTENT_TYPE, content_type);
                }
                for (name, value) in headers {
                    response.headers_mut().append(name, value);
                }
                response
            }
            Self::Watch(body) => {
                let content_type = body.content_type();
                let mut response = Response::new(ApiBody(Inner::Watch(body)));
                *response.status_mut() = StatusCode::OK;
                response.headers_mut().insert(CONTENT_TYPE, content_type);
                response
            }
        };
        let headers = response.headers_mut();
        headers.entry(CACHE_CONTROL).or_insert(NO_CACHE);
        headers.insert(AUDIT_ID, request.get(AUDIT_ID).cloned().unwrap_or_else(made_up_id));
        for warning in warnings {
            headers.append(http::header::WARNING, warning);
        }
        response
    }
}

/// An identity for what is not looked up again by anything but logs.
fn made_up_id() -> HeaderValue {
    let id = uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes()).into_uuid();
    let mut buffer = uuid::Uuid::encode_buffer();
    HeaderValue::from_str(id.hyphenated().encode_lower(&mut buffer)).unwrap_or(NO_CACHE)
}

// === impl ApiBody ===

impl Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Inner::Whole(body) => Pin::new(body).poll_frame(context),
            Inner::Watch(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(body) => body.is_end_stream(),
            Inner::Watch(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(body) => body.size_hint(),
            Inner::Watch(body) => body.size_hint(),
        }
    }
}
