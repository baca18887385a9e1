//! The head of a response on an HTTP/1.1 connection.

use std::io::Write;

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderValue};
use http::response::Parts;
use http::{HeaderMap, Method, StatusCode, Version};
use http_body::Body;

use crate::http1::{Encoder, content_length, put_field};
use crate::proxy::forward::REQUEST_ID;

/// The facts about the request that the response depends on.
#[derive(Debug, Clone)]
pub(super) struct ResponseContext {
    pub(super) method: Method,
    pub(super) version: Version,
    /// Whether the client goes on with this connection.
    pub(super) is_kept_alive: bool,
}

/// The response's fields that the rest of its head depends on.
struct Found<'a> {
    /// Whether the date is among them.
    date: bool,
    length: Option<&'a HeaderValue>,
}

/// Writes the head, and says how the body is to be sent; none if there is none. The connection is closed afterwards if
/// the client is told so, or cannot see the end of the body otherwise.
pub(super) fn put(
    output: &mut Vec<u8>,
    parts: &Parts,
    id: &HeaderValue,
    body: &impl Body,
    asked: &mut ResponseContext,
    date: impl FnOnce() -> HeaderValue,
) -> Option<Encoder> {
    put_status(output, parts.status);
    let found = put_fields(output, &parts.headers);
    put_field(output, REQUEST_ID.as_str(), id.as_bytes());
    if !found.date {
        put_field(output, "date", date().as_bytes());
    }
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        output.extend_from_slice(b"connection: upgrade\r\n\r\n");
        return None;
    }
    let encoder = put_length(output, parts, found.length, body, asked);
    if !asked.is_kept_alive {
        output.extend_from_slice(b"connection: close\r\n");
    } else if asked.version == Version::HTTP_10 {
        output.extend_from_slice(b"connection: keep-alive\r\n");
    }
    output.extend_from_slice(b"\r\n");
    encoder
}

/// Writes the head of an interim response.
pub(super) fn put_interim(output: &mut Vec<u8>, status: StatusCode, headers: &HeaderMap) {
    put_status(output, status);
    put_fields(output, headers);
    output.extend_from_slice(b"\r\n");
}

fn put_status(output: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        output.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        let reason = status.canonical_reason().unwrap_or_default();
        // Writing to memory does not fail.
        let _ = write!(output, "HTTP/1.1 {} {reason}\r\n", status.as_str());
    }
}

/// Writes all fields but the id and those that say how the message ends.
fn put_fields<'a>(output: &mut Vec<u8>, headers: &'a HeaderMap) -> Found<'a> {
    let mut found = Found { date: false, length: None };
    for (name, value) in headers {
        match *name {
            CONTENT_LENGTH => found.length = found.length.or(Some(value)),
            CONNECTION => {}
            _ if *name == REQUEST_ID => {}
            _ => {
                found.date |= *name == DATE;
                put_field(output, name.as_str(), value.as_bytes());
            }
        }
    }
    found
}

fn put_length(
    output: &mut Vec<u8>,
    parts: &Parts,
    announced: Option<&HeaderValue>,
    body: &impl Body,
    asked: &mut ResponseContext,
) -> Option<Encoder> {
    if parts.status == StatusCode::NO_CONTENT || parts.status.is_informational() {
        return None;
    }
    if asked.method == Method::HEAD || parts.status == StatusCode::NOT_MODIFIED {
        if let Some(length) = announced {
            put_field(output, "content-length", length.as_bytes());
        }
        return None;
    }
    let known = announced.and_then(|text| Some((text, content_length(text)?)));
    if let Some((text, length)) = known {
        put_field(output, "content-length", text.as_bytes());
        return Some(Encoder::Length(length));
    }
    if let Some(length) = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() } {
        let _ = write!(output, "content-length: {length}\r\n");
        return Some(Encoder::Length(length));
    }
    if asked.version == Version::HTTP_10 {
        asked.is_kept_alive = false;
        return Some(Encoder::ToTheClose);
    }
    output.extend_from_slice(b"transfer-encoding: chunked\r\n");
    Some(Encoder::Chunked)
}
