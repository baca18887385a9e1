//! Serves a client's connection: HTTP/1.1, HTTP/2, or another protocol after an upgrade.

mod buffered_body;
mod disconnect;
mod first_bytes;
mod http1;
mod http2;
mod http2_head;
mod linger;
mod logged_request;
mod pass_on;
mod pending;
mod relay;
mod response_head;
mod revoked_end;
mod stream_count;
mod stream_executor;
mod upgrade;
mod websocket;

pub(crate) use first_bytes::first_bytes;
pub(crate) use http1::serve as serve_http1;
pub(crate) use http2::serve as serve_http2;
pub(crate) use http2_head::normalize as normalize_head;
pub(crate) use logged_request::LoggedRequest;
pub(crate) use stream_count::StreamCount;
