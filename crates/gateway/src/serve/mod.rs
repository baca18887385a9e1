//! Serving a client's connection: HTTP/1.1, HTTP/2, or whatever an upgrade leads to.

mod answer_head;
mod first_bytes;
mod http1;
mod http2;
mod http2_head;
mod linger;
mod pending;
mod presence;
mod rejected;
mod relay;
mod response_body;
mod streams;
mod upgrade;
mod websocket;

pub(crate) use first_bytes::first_bytes;
pub(crate) use http1::serve as serve_http1;
pub(crate) use http2::serve as serve_http2;
