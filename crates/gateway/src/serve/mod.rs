//! Serving a client's connection: HTTP/1.1, HTTP/2, or whatever an upgrade leads to.

mod answer_head;
mod any_body;
mod first_bytes;
mod http1;
mod http2;
mod http2_head;
mod linger;
mod rejected;
mod relay;
mod streams;
mod upgrade;
mod websocket;

pub(crate) use first_bytes::first_bytes;
pub(crate) use http1::serve as serve_http1;
pub(crate) use http2::serve as serve_http2;
