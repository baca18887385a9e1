//! `RequestHead`: the head of a request, read strictly.
//!
//! A head that two readers could understand differently is rejected, since the next reader is the upstream: two lengths, a length
//! and chunks, two hosts, folded lines. `docs/decisions/0038-strict-http1.md` compares it with other readers.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode, Uri, Version};

use super::decoder::Decoder;
use super::fields::{Cutter, content_length, has_token, has_whole_line_ends, is_kept_alive};
use super::head_flags::HeadFlags;
use super::head_memory::HeadMemory;

/// The head of a request that has been read.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    /// What sorts of fields are among them.
    pub(crate) flags: HeadFlags,
    /// How the body ends.
    pub(crate) body: Decoder,
    /// Whether the client wants to go on with this connection afterwards.
    pub(crate) is_kept_alive: bool,
    /// Whether the client waits for permission to send the body.
    pub(crate) expects_continue: bool,
    /// Whether the client wants to speak something else on this connection.
    pub(crate) is_upgrade: bool,
}

/// How large a head may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadLimits {
    pub(crate) bytes: usize,
    pub(crate) fields: usize,
}

/// A head that is rejected. The connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadFault {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

/// Up to this many fields are read without an allocation.
const FIELDS_ON_STACK: usize = 128;

// === impl RequestHead ===

impl RequestHead {
    /// Takes a head out of the bytes that have been read; `None` if it is not complete. It is kept in the memory given.
    pub(crate) fn take(
        input: &mut BytesMut,
        memory: &mut HeadMemory,
        limits: HeadLimits,
    ) -> Result<Option<Self>, HeadFault> {
        let parsed = if limits.fields <= FIELDS_ON_STACK {
            let mut fields = [const { MaybeUninit::uninit() }; FIELDS_ON_STACK];
            parse(input, memory, &mut fields[..limits.fields])
        } else {
            parse(input, memory, &mut vec![MaybeUninit::uninit(); limits.fields])
        };
        match parsed? {
            Some((length, _)) if length > limits.bytes => Err(TOO_LARGE),
            None if input.len() >= limits.bytes => Err(TOO_LARGE),
            None => Ok(None),
            Some((length, head)) => {
                input.advance(length);
                Ok(Some(head))
            }
        }
    }

    fn new(
        method: Method,
        uri: Uri,
        version: Version,
        headers: HeaderMap,
        flags: HeadFlags,
    ) -> Result<Self, HeadFault> {
        let has_body = flags.has(HeadFlags::LENGTH) || flags.has(HeadFlags::CODING);
        let body = if has_body { body(&headers, version)? } else { Decoder::EMPTY };
        check_target(&method, &uri, &headers, version)?;
        let is_11 = version == Version::HTTP_11;
        let wants = |token| has_token(&headers, &CONNECTION, token);
        let has_connection = flags.has(HeadFlags::CONNECTION);
        let is_kept_alive = is_kept_alive(&headers, flags, version);
        let is_upgrade = has_connection && is_11 && flags.has(HeadFlags::UPGRADE) && wants("upgrade");
        let expects_continue = is_11
            && !body.is_done()
            && flags.has(HeadFlags::EXPECT)
            && headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        Ok(Self { method, uri, version, headers, flags, body, is_kept_alive, expects_continue, is_upgrade })
    }
}

const TOO_LARGE: HeadFault =
    HeadFault { status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, reason: "the head of the request is too large" };

const fn fault(reason: &'static str) -> HeadFault {
    HeadFault { status: StatusCode::BAD_REQUEST, reason }
}

fn parse<'a>(
    input: &'a [u8],
    memory: &mut HeadMemory,
    fields: &mut [MaybeUninit<httparse::Header<'a>>],
) -> Result<Option<(usize, RequestHead)>, HeadFault> {
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(input, fields) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(HeadFault { reason: "the request has too many headers", ..TOO_LARGE });
        }
        Err(httparse::Error::Version) => {
            let status = StatusCode::HTTP_VERSION_NOT_SUPPORTED;
            return Err(HeadFault { status, reason: "the HTTP version is not supported" });
        }
        Err(httparse::Error::HeaderName) => return Err(fault("invalid header name")),
        Err(httparse::Error::HeaderValue) => return Err(fault("invalid header value")),
        Err(_) => return Err(fault("malformed request")),
    };
    if !has_whole_line_ends(&input[..length], request.headers) {
        return Err(fault("a line of the head ends with a bare line feed"));
    }
    let cutter = Cutter::new(&input[..length], memory);
    let method =
        Method::from_bytes(request.method.unwrap_or_default().as_bytes()).map_err(|_| fault("invalid method"))?;
    let target = request.path.unwrap_or_default();
    let uri = Uri::from_maybe_shared(cutter.cut(target.as_bytes())).map_err(|_| fault("invalid request target"))?;
    let version = if request.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let (headers, flags) = cutter.headers(request.headers, memory).ok_or(fault("invalid header"))?;
    Ok(Some((length, RequestHead::new(method, uri, version, headers, flags)?)))
}

/// How the body of a request ends (RFC 9112, 6.3). A request with more than one is rejected.
fn body(headers: &HeaderMap, version: Version) -> Result<Decoder, HeadFault> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(Decoder::EMPTY),
        (Some(_), Some(_)) => Err(fault("the request has both Content-Length and Transfer-Encoding")),
        (Some(length), None) => {
            if lengths.next().is_some() {
                return Err(fault("the request has more than one Content-Length"));
            }
            content_length(length).map(Decoder::length).ok_or(fault("the Content-Length is not a number"))
        }
        (None, Some(coding)) => {
            if version != Version::HTTP_11 {
                return Err(fault("HTTP/1.0 has no Transfer-Encoding"));
            }
            if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Err(fault("unsupported Transfer-Encoding; only chunked is supported"));
            }
            Ok(Decoder::CHUNKED)
        }
    }
}

/// Checks that all readers understand the target and the host in the same way.
fn check_target(method: &Method, uri: &Uri, headers: &HeaderMap, version: Version) -> Result<(), HeadFault> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(fault("the request has more than one Host"));
    }
    if host.is_none() && version == Version::HTTP_11 {
        return Err(fault("the request has no Host"));
    }
    if host.is_some_and(|host| !is_sound_host(host.as_bytes())) {
        return Err(fault("invalid Host"));
    }
    if *method == Method::CONNECT {
        // The request is rejected, and its target is not looked at.
        return Ok(());
    }
    match (uri.scheme_str(), uri.authority()) {
        (None, None) if uri.path().starts_with('/') => Ok(()),
        (None, None) if uri.path() == "*" && *method == Method::OPTIONS => Ok(()),
        (Some("http" | "https"), Some(authority)) => match host {
            Some(host) if host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) => Ok(()),
            None if !authority.as_str().contains('@') => Ok(()),
            _ => Err(fault("Host differs from the request target")),
        },
        _ => Err(fault("invalid request target")),
    }
}

/// Whether this can be a host with or without a port.
pub(crate) fn is_sound_host(host: &[u8]) -> bool {
    let name_end = match host.first() {
        Some(b'[') => host.iter().position(|byte| *byte == b']').map_or(host.len(), |end| end + 1),
        _ => host.iter().position(|byte| *byte == b':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(name_end);
    let is_port = match port {
        [] | [b':'] => true,
        [b':', digits @ ..] => std::str::from_utf8(digits).is_ok_and(|digits| digits.parse::<u16>().is_ok()),
        _ => false,
    };
    // Most are a plain name and a number.
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_name = !name.is_empty() && name.iter().all(is_plain);
    is_port && (is_name || Authority::try_from(host).is_ok_and(|host| !host.as_str().contains('@')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { bytes: 1024, fields: 8 };

    fn take(text: &str) -> Result<Option<RequestHead>, HeadFault> {
        RequestHead::take(&mut BytesMut::from(text), &mut HeadMemory::default(), LIMITS)
    }

    #[test]
    fn a_head_is_read() {
        let head = take("POST /a?b HTTP/1.1\r\nHost: x:1\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\nhello")
            .unwrap()
            .unwrap();
        assert_eq!((head.method.as_str(), head.uri.path(), head.uri.query()), ("POST", "/a", Some("b")));
        assert_eq!((head.body, head.is_kept_alive, head.expects_continue), (Decoder::length(5), true, true));
        let head = take("GET / HTTP/1.0\r\n\r\n").unwrap().unwrap();
        assert!(!head.is_kept_alive && head.body.is_done());
        let head = take("GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
            .unwrap()
            .unwrap();
        assert!(head.is_upgrade && head.is_kept_alive);
        assert!(take("GET http://x/ HTTP/1.1\r\nHost: X\r\n\r\n").unwrap().is_some());
        assert!(take("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").unwrap().is_some());
        assert!(take("GET / HTTP/1.1\r\nHost: x\r\n").unwrap().is_none());
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_rejected() {
        for (head, reason) in [
            ("Content-Length: 3\r\nTransfer-Encoding: chunked", "both Content-Length and Transfer-Encoding"),
            ("Transfer-Encoding: chunked\r\nContent-Length: 3", "both Content-Length and Transfer-Encoding"),
            ("Content-Length: 3\r\nContent-Length: 4", "more than one Content-Length"),
            ("Content-Length: 3, 3", "not a number"),
            ("Content-Length: +3", "not a number"),
            ("Content-Length: 0x3", "not a number"),
            ("Content-Length:", "not a number"),
            ("Content-Length: 99999999999999999999", "not a number"),
            ("Transfer-Encoding: gzip, chunked", "unsupported Transfer-Encoding"),
            ("Transfer-Encoding: xchunked", "unsupported Transfer-Encoding"),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "unsupported Transfer-Encoding"),
            ("Transfer-Encoding : chunked", "invalid header name"),
            ("A: b\r\n folded", "invalid header name"),
            ("A: b\0c", "invalid header value"),
            ("A: b\rc", "invalid header value"),
            ("A\0: b", "invalid header name"),
            ("Host: y", "more than one Host"),
        ] {
            let fault = take(&format!("POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n")).unwrap_err();
            assert!(fault.status == StatusCode::BAD_REQUEST && fault.reason.contains(reason), "{head:?}: {fault:?}");
        }
        for (text, reason) in [
            ("GET / HTTP/1.1\r\n\r\n", "no Host"),
            ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "invalid Host"),
            ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "invalid Host"),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", "invalid Host"),
            ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "invalid Host"),
            ("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", "invalid Host"),
            ("GET / HTTP/1.1\r\nHost: [::1]:b\r\n\r\n", "invalid Host"),
            ("GET / HTTP/1.1\r\nHost: [::1]b\r\n\r\n", "invalid Host"),
            ("GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n", "differs from"),
            ("GET http://u@x/ HTTP/1.1\r\nHost: x\r\n\r\n", "differs from"),
            ("GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "target"),
            ("GET x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "target"),
            ("GET * HTTP/1.1\r\nHost: x\r\n\r\n", "target"),
            ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "malformed"),
            ("GET / HTTP/1.1\nHost: x\r\n\r\n", "line feed"),
            ("GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", "line feed"),
            ("GET / HTTP/1.1\r\nHost: x\r\nA: b\n\r\n", "line feed"),
            ("GET / HTTP/1.1\r\nHost: x\r\n\n", "line feed"),
            ("GET / HTTP/1.0\n\r\n", "line feed"),
            ("G\x01T / HTTP/1.1\r\nHost: x\r\n\r\n", "malformed"),
            ("POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0 has no"),
        ] {
            let fault = take(text).unwrap_err();
            assert!(fault.status == StatusCode::BAD_REQUEST && fault.reason.contains(reason), "{text:?}: {fault:?}");
        }
        assert_eq!(
            take("GET / HTTP/3.0\r\nHost: x\r\n\r\n").unwrap_err().status,
            StatusCode::HTTP_VERSION_NOT_SUPPORTED
        );
    }

    #[test]
    fn a_head_has_limits() {
        let many = "a: b\r\n".repeat(9);
        let long = "b".repeat(1024);
        for text in
            [format!("GET / HTTP/1.1\r\n{many}\r\n"), format!("GET / HTTP/1.1\r\na: {long}"), format!("GET /{long}")]
        {
            assert_eq!(take(&text).unwrap_err().status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
    }
}
