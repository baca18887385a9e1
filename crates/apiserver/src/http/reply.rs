//! The HTTP response: with the headers that every response has, or as a watch (API-92).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Extensions, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::gzip;
use crate::in_flight::{ConnectionInFlight, ConnectionRoom, Room};
use crate::response_data::ResponseData;
use crate::watch::{CountedWatch, WatchBody};
use crate::websocket::{self, Handshake, MessageType};

/// The body of a response.
#[derive(Debug)]
pub struct ApiBody(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Whole),
    Watch(CountedWatch),
}

/// A complete body, sent in parts, so that its room is released bit by bit.
#[derive(Debug)]
struct Whole {
    rest: Bytes,
    room: Option<ConnectionRoom>,
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// A response, and the room that it takes of its connection, if it is counted.
    Whole(ResponseData, Option<ConnectionRoom>),
    /// A watch, and the room of its connection.
    Watch(WatchBody, ConnectionInFlight),
    /// A watch over a `WebSocket`. The extensions of the request are kept for as long as the connection is used.
    WebSocket { handshake: Handshake, watch: CountedWatch, message: MessageType, extensions: Extensions },
}

/// The size of a part.
const PART_BYTES: usize = 64 * 1024;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Tells browsers to trust the content type of the response.
pub(crate) const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, private");

// === impl Reply ===

impl From<ResponseData> for Reply {
    fn from(response: ResponseData) -> Self {
        Self::Whole(response, None)
    }
}

impl Reply {
    /// A response that takes this room, if any.
    pub(super) fn with_room(mut response: ResponseData, room: Option<Room>) -> Self {
        let Some(Room { mut connection, mut all }) = room else { return response.into() };
        connection.shrink(response.body.len());
        all.shrink(response.body.len());
        response.body = all.count(response.body);
        Self::Whole(response, Some(connection))
    }

    /// The response, with the warnings that go with it.
    pub(super) fn into_response(self, request: &HeaderMap, warnings: Vec<HeaderValue>) -> Response<ApiBody> {
        let mut response = match self {
            Self::Whole(response, room) => {
                let ResponseData { status, content_type, headers, body } = gzip::packed(response, request);
                let mut response = Response::new(ApiBody(Inner::Whole(Whole { rest: body, room })));
                *response.status_mut() = status;
                if let Some(content_type) = content_type {
                    response.headers_mut().insert(CONTENT_TYPE, content_type);
                }
                for (name, value) in headers {
                    response.headers_mut().append(name, value);
                }
                response
            }
            Self::Watch(body, in_flight) => {
                let content_type = body.content_type();
                let mut response = Response::new(ApiBody(Inner::Watch(CountedWatch::new(body, in_flight))));
                *response.status_mut() = StatusCode::OK;
                response.headers_mut().insert(CONTENT_TYPE, content_type);
                response
            }
            Self::WebSocket { handshake, watch, message, extensions } => {
                let mut response = Response::new(ApiBody(Inner::Whole(Whole { rest: Bytes::new(), room: None })));
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                response.headers_mut().extend(handshake.headers());
                tokio::spawn(websocket::serve(handshake.connection, watch, message, extensions));
                response
            }
        };
        let headers = response.headers_mut();
        headers.entry(CACHE_CONTROL).or_insert(NO_CACHE);
        headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        headers.insert(AUDIT_ID, request.get(AUDIT_ID).cloned().unwrap_or_else(random_id));
        for warning in warnings {
            headers.append(http::header::WARNING, warning);
        }
        response
    }
}

/// A random id, which only logs use.
fn random_id() -> HeaderValue {
    let id = uuid::Builder::from_random_bytes(fastrand::u128(..).to_ne_bytes()).into_uuid();
    let mut buffer = uuid::Uuid::encode_buffer();
    HeaderValue::from_str(id.hyphenated().encode_lower(&mut buffer)).unwrap_or(NO_CACHE)
}

// === impl Whole ===

impl Whole {
    fn next(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            return None;
        }
        let part = self.rest.split_to(self.rest.len().min(PART_BYTES));
        let is_last = self.rest.is_empty();
        Some(match &mut self.room {
            Some(room) => room.count(part, is_last),
            None => part,
        })
    }
}

// === impl ApiBody ===

impl Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Inner::Whole(body) => Poll::Ready(body.next().map(|part| Ok(Frame::data(part)))),
            Inner::Watch(body) => body.poll_next(context).map(|part| part.map(|part| Ok(Frame::data(part)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(body) => body.rest.is_empty(),
            Inner::Watch(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(body) => SizeHint::with_exact(body.rest.len() as u64),
            Inner::Watch(_) => SizeHint::default(),
        }
    }
}
