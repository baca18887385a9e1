//! The head of the request that an upstream gets.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Uri, Version};

use super::fields::goes_on;
use super::provenance::Provenance;
use super::request_id::REQUEST_ID;
use crate::http1::{Encoder, HeadFlags, has_token};
use crate::proxy::request_body::RequestBody;
use crate::proxy::upstream::UpstreamTarget;

/// The head of a request as the client sent it, with the id that it goes on with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received<'a> {
    pub(super) parts: &'a Parts,
    /// What sorts of fields are in it.
    pub(super) flags: HeadFlags,
    pub(super) id: &'a HeaderValue,
    pub(super) is_upgrade: bool,
}

/// Writes the head for HTTP/1.1, and says how the body is to be sent.
pub(super) fn put_http1(
    output: &mut Vec<u8>,
    received: Received<'_>,
    body: &RequestBody,
    upstream: &UpstreamTarget,
    provenance: &Provenance,
) -> Encoder {
    let Received { parts, flags, id, is_upgrade } = received;
    let mut put = |pieces: &[&[u8]]| pieces.iter().for_each(|piece| output.extend_from_slice(piece));
    let host = host(parts, upstream);
    put(&[parts.method.as_str().as_bytes(), b" "]);
    let (slash, target) = target(&parts.uri);
    if target != "*" {
        put(&[upstream.prefix.as_bytes(), slash.as_bytes()]);
    }
    put(&[target.as_bytes(), b" HTTP/1.1\r\nhost: ", host, b"\r\n"]);
    for (name, value) in &parts.headers {
        if goes_on(name) {
            put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
    }
    put(&[REQUEST_ID.as_str().as_bytes(), b": ", id.as_bytes(), b"\r\n"]);
    provenance.put(output, parts, flags, host);
    let mut put = |pieces: &[&[u8]]| pieces.iter().for_each(|piece| output.extend_from_slice(piece));
    if is_upgrade {
        put(&[b"connection: upgrade\r\n"]);
        for protocol in parts.headers.get_all(UPGRADE) {
            put(&[b"upgrade: ", protocol.as_bytes(), b"\r\n"]);
        }
    } else if wants_trailers(&parts.headers, flags) {
        put(&[b"te: trailers\r\nconnection: te\r\n"]);
    }
    let encoder = match body.left() {
        Some(length) => {
            // A request that may have a body says that it has none.
            let has_length = flags.has(HeadFlags::LENGTH) && parts.headers.contains_key(CONTENT_LENGTH);
            if length > 0 || has_length || matches!(parts.method, Method::POST | Method::PUT | Method::PATCH) {
                put(&[b"content-length: ", length.to_string().as_bytes(), b"\r\n"]);
            }
            Encoder::Length(length)
        }
        None => {
            put(&[b"transfer-encoding: chunked\r\n"]);
            Encoder::Chunked
        }
    };
    put(&[b"\r\n"]);
    encoder
}

/// The request for HTTP/2.
pub(super) fn http2(
    received: Received<'_>,
    body: RequestBody,
    upstream: &UpstreamTarget,
    provenance: &Provenance,
) -> Option<Request<RequestBody>> {
    let Received { parts, flags, id, .. } = received;
    let mut headers = HeaderMap::with_capacity(parts.headers.len() + 8);
    for (name, value) in &parts.headers {
        if goes_on(name) && *name != CONNECTION {
            headers.append(name, value.clone());
        }
    }
    headers.insert(REQUEST_ID, id.clone());
    let host = host(parts, upstream);
    provenance.each(&parts.headers, parts.version, host, |name, pieces| {
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(pieces.concat())) {
            headers.append(HeaderName::clone(name), value);
        }
    });
    if wants_trailers(&parts.headers, flags) {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(length) = body.left()
        && (length > 0 || parts.headers.contains_key(CONTENT_LENGTH))
    {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    let (slash, target) = target(&parts.uri);
    let path = if target == "*" { target.to_owned() } else { format!("{}{slash}{target}", upstream.prefix) };
    let scheme = if upstream.tls.is_some() { "https" } else { "http" };
    let uri = Uri::builder().scheme(scheme).authority(host).path_and_query(path).build().ok()?;
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers;
    Some(request)
}

/// The path and the query. With a query and no path it begins with the query, and a slash has to be put before it.
fn target(uri: &Uri) -> (&'static str, &str) {
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    (if target.starts_with('?') { "/" } else { "" }, target)
}

/// The host that the client has asked for; one of HTTP/1.0 need not have said, or only in the target.
fn host<'a>(parts: &'a Parts, upstream: &'a UpstreamTarget) -> &'a [u8] {
    let in_target = || parts.uri.authority().map_or(upstream.authority.as_str(), |authority| authority.as_str());
    parts.headers.get(HOST).map_or_else(|| in_target().as_bytes(), HeaderValue::as_bytes)
}

fn wants_trailers(headers: &HeaderMap, flags: HeadFlags) -> bool {
    flags.has(HeadFlags::TE) && has_token(headers, &TE, "trailers")
}
