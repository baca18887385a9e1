//! `ResponseHead`: the head of an upstream's response.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, StatusCode, Version};

use super::decoder::{Decoder, Malformed};
use super::fields::{Cutter, content_length, is_kept_alive};
use super::head_flags::HeadFlags;
use super::head_memory::HeadMemory;

/// The head of a response that has been read.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// What sorts of fields are among them.
    pub(crate) flags: HeadFlags,
    /// How the body ends.
    pub(crate) body: Decoder,
    /// Whether the connection can be used for another request afterwards.
    pub(crate) is_kept_alive: bool,
}

const FIELDS_MAX: usize = 256;
const BYTES_MAX: usize = 256 * 1024;

// === impl ResponseHead ===

impl ResponseHead {
    /// Takes the head of the response to a request with this method; `None` if it is not complete. It is kept in the memory
    /// given.
    pub(crate) fn take(
        input: &mut BytesMut,
        memory: &mut HeadMemory,
        method: &Method,
    ) -> Result<Option<Self>, Malformed> {
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let length = match parser.parse_response_with_uninit_headers(&mut response, input, &mut fields) {
            Ok(httparse::Status::Complete(length)) if length <= BYTES_MAX => length,
            Ok(httparse::Status::Partial) if input.len() < BYTES_MAX => return Ok(None),
            Ok(_) => return Err(Malformed("the head of the response is too large")),
            Err(_) => return Err(Malformed("malformed response head")),
        };
        let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.ok_or(Malformed("invalid status code in the response"))?;
        let headers = Cutter::new(&input[..length], memory).headers(response.headers, memory);
        let (headers, flags) = headers.ok_or(Malformed("invalid header in the response"))?;
        let version = if response.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
        let body = body(&headers, flags, method, status)?;
        // Chunks in HTTP/1.0 may be a mistake of a server that does not know them (RFC 9112, 6.1).
        let is_surely_over = version == Version::HTTP_11 || !flags.has(HeadFlags::CODING);
        let is_kept_alive = is_surely_over && body != Decoder::TO_THE_CLOSE && is_kept_alive(&headers, flags, version);
        input.advance(length);
        Ok(Some(Self { status, headers, flags, body, is_kept_alive }))
    }
}

/// How the body of a response ends (RFC 9112, 6.3).
fn body(headers: &HeaderMap, flags: HeadFlags, method: &Method, status: StatusCode) -> Result<Decoder, Malformed> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let mut codings = flags.has(HeadFlags::CODING).then(|| headers.get_all(TRANSFER_ENCODING)).into_iter().flatten();
    let (length, coding) = (lengths.next(), codings.next());
    if let (Some(_), Some(_)) = (length, coding) {
        return Err(Malformed("the response has both Content-Length and Transfer-Encoding"));
    }
    if method == Method::HEAD
        || status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
    {
        return Ok(Decoder::EMPTY);
    }
    if let Some(coding) = coding {
        if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err(Malformed("the Transfer-Encoding of the response is not chunked"));
        }
        return Ok(Decoder::CHUNKED);
    }
    let Some(length) = length else { return Ok(Decoder::TO_THE_CLOSE) };
    if lengths.any(|other| other != length) {
        return Err(Malformed("the response has more than one Content-Length"));
    }
    content_length(length).map(Decoder::length).ok_or(Malformed("the Content-Length of the response is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str, method: &Method) -> Result<Option<ResponseHead>, Malformed> {
        ResponseHead::take(&mut BytesMut::from(text), &mut HeadMemory::default(), method)
    }

    #[test]
    fn the_end_of_a_body_is_known() {
        for (method, head, body, is_kept_alive) in [
            (Method::GET, "200 OK\r\nContent-Length: 3", Decoder::length(3), true),
            (Method::GET, "200 OK\r\nTransfer-Encoding: chunked", Decoder::CHUNKED, true),
            (Method::GET, "200 OK\r\nA: b", Decoder::TO_THE_CLOSE, false),
            (Method::HEAD, "200 OK\r\nContent-Length: 3", Decoder::EMPTY, true),
            (Method::GET, "304 Not Modified\r\nContent-Length: 3", Decoder::EMPTY, true),
            (Method::GET, "204 No Content\r\nConnection: close", Decoder::EMPTY, false),
            (Method::GET, "100 Continue\r\nA: b", Decoder::EMPTY, true),
        ] {
            let found = take(&format!("HTTP/1.1 {head}\r\n\r\n"), &method).unwrap().unwrap();
            assert_eq!((found.body, found.is_kept_alive), (body, is_kept_alive), "{head}");
        }
        for (fields, is_kept_alive) in [
            ("Content-Length: 0", false),
            ("Content-Length: 0\r\nConnection: keep-alive", true),
            ("Content-Length: 0\r\nConnection: close, keep-alive", false),
            ("Transfer-Encoding: chunked\r\nConnection: keep-alive", false),
        ] {
            let found = take(&format!("HTTP/1.0 200 OK\r\n{fields}\r\n\r\n"), &Method::GET).unwrap().unwrap();
            assert_eq!(found.is_kept_alive, is_kept_alive, "{fields}");
        }
    }

    #[test]
    fn a_response_that_could_be_read_in_two_ways_is_rejected() {
        for head in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Content-Length: 3\r\nContent-Length: 4",
            "Content-Length: x",
            "Transfer-Encoding: gzip",
            "A: b\r\n folded",
        ] {
            assert!(take(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n"), &Method::GET).is_err(), "{head}");
        }
        assert!(take("HTTP/1.1 99 OK\r\n\r\n", &Method::GET).is_err());
        assert!(take(&format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(BYTES_MAX)), &Method::GET).is_err());
    }
}
