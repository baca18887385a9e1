//! Normalizes the head of an HTTP/2 request to the form of HTTP/1.1: code after this looks at `host`, at one cookie, and at a
//! target that fits in a request line.

use http::header::{COOKIE, HOST, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::http1::is_sound_host;
use crate::proxy::error_response::Failure;

/// Normalizes the fields in which the two versions differ, or fails if the request has to be refused.
pub(crate) fn normalize(parts: &mut Parts, fields_max: usize) -> Result<(), Failure> {
    if parts.headers.len() > fields_max {
        return Err(Failure::TooManyFields);
    }
    let path = parts.uri.path();
    let is_of_server = path == "*" && parts.method == Method::OPTIONS;
    if !path.starts_with('/') && !is_of_server {
        return Err(Failure::Target);
    }
    normalize_host(parts)?;
    join_cookies(&mut parts.headers)
}

/// Brings `:authority` and `host` together.
fn normalize_host(parts: &mut Parts) -> Result<(), Failure> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let (host, other) = (hosts.next(), hosts.next());
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let is_same = match (authority, host) {
        (Some(authority), Some(host)) => host.as_bytes().eq_ignore_ascii_case(authority),
        _ => true,
    };
    let Some(settled) = host.map(HeaderValue::as_bytes).or(authority) else { return Err(Failure::HostConflict) };
    if other.is_some() || !is_same || !is_sound_host(settled) {
        return Err(Failure::HostConflict);
    }
    if host.is_none() {
        let host = HeaderValue::from_bytes(settled).map_err(|_| Failure::HostConflict)?;
        parts.headers.insert(HOST, host);
    }
    Ok(())
}

/// Joins cookies, which clients may send one by one: servers of HTTP/1.1 only look at the first (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) -> Result<(), Failure> {
    let mut cookies = headers.get_all(COOKIE).iter();
    if cookies.next().is_none() || cookies.next().is_none() {
        return Ok(());
    }
    let all: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let joined = HeaderValue::from_bytes(&all.join(&b"; "[..])).map_err(|_| Failure::TooManyFields)?;
    headers.insert(COOKIE, joined);
    Ok(())
}
