//! The head of an answer on an HTTP/1.1 connection.

use std::io::Write;

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderValue};
use http::response::Parts;
use http::{HeaderMap, Method, StatusCode, Version};
use http_body::Body;

use crate::h1::Encoder;

/// What of the request its answer depends on.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) version: Version,
    /// Whether the client goes on with this connection.
    pub(super) is_kept_alive: bool,
}

/// Writes the head, and says how the body is to be sent; none if there is none. The connection is closed afterwards if
/// the client is told so, or cannot see the end of the body otherwise.
pub(super) fn put(
    output: &mut Vec<u8>,
    parts: &Parts,
    body: &impl Body,
    asked: &mut Asked,
    date: impl FnOnce() -> HeaderValue,
) -> Option<Encoder> {
    put_status(output, parts.status);
    let has_date = put_fields(output, &parts.headers);
    if !has_date {
        put_field(output, "date", date().as_bytes());
    }
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        output.extend_from_slice(b"connection: upgrade\r\n\r\n");
        return None;
    }
    let encoder = put_length(output, parts, body, asked);
    if !asked.is_kept_alive {
        output.extend_from_slice(b"connection: close\r\n");
    } else if asked.version == Version::HTTP_10 {
        output.extend_from_slice(b"connection: keep-alive\r\n");
    }
    output.extend_from_slice(b"\r\n");
    encoder
}

/// Writes the head of an interim answer.
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

/// Writes all fields but those that say how the message ends, and whether the date is among them.
fn put_fields(output: &mut Vec<u8>, headers: &HeaderMap) -> bool {
    let mut has_date = false;
    for (name, value) in headers {
        match *name {
            CONTENT_LENGTH | CONNECTION => continue,
            DATE => has_date = true,
            _ => {}
        }
        put_field(output, name.as_str(), value.as_bytes());
    }
    has_date
}

fn put_field(output: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        output.extend_from_slice(part);
    }
}

fn put_length(output: &mut Vec<u8>, parts: &Parts, body: &impl Body, asked: &mut Asked) -> Option<Encoder> {
    let announced = parts.headers.get(CONTENT_LENGTH);
    if parts.status == StatusCode::NO_CONTENT || parts.status.is_informational() {
        return None;
    }
    if asked.method == Method::HEAD || parts.status == StatusCode::NOT_MODIFIED {
        if let Some(length) = announced {
            put_field(output, "content-length", length.as_bytes());
        }
        return None;
    }
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let length = announced.or_else(|| if body.is_end_stream() { Some(0) } else { body.size_hint().exact() });
    if let Some(length) = length {
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
