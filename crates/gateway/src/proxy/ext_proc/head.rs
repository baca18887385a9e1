//! The head of a request as Envoy describes it, and its client.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::HOST;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Uri, Version};

use super::grpc::{Code, Status};
use super::messages::{HttpHeaders, Struct};
use super::subject::certificate_of;
use crate::identity::{Peer, Transport};

/// Attributes by which Envoy names the client.
const SOURCE_ADDRESS: &str = "source.address";
const CERTIFICATE_SUBJECT: &str = "connection.subject_peer_certificate";
/// The attribute by which Envoy names the version of HTTP: `HTTP/1.1`.
const PROTOCOL: &str = "request.protocol";
/// The bytes that a header counts beside its name and value, as in HTTP/2 (RFC 9113, 6.5.2).
const HEADER_BYTES: usize = 32;

/// The head of the request. If no request can have such a head, the message is at fault.
pub(super) fn head_of(headers: HttpHeaders) -> Result<Parts, Status> {
    let wrong = |what: &str| Status::new(Code::InvalidArgument, format!("request_headers: {what}"));
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.version = Version::HTTP_2;
    let (mut method, mut path, mut authority) = (None, None, None);
    for header in headers.headers.unwrap_or_default().headers {
        let value = if header.raw_value.is_empty() { header.value.into() } else { header.raw_value };
        match &*header.key {
            ":method" => method = Some(value),
            ":path" => path = Some(value),
            ":authority" => authority = Some(value),
            key if key.starts_with(':') => {}
            key => {
                let name = HeaderName::from_bytes(key.as_bytes()).map_err(|_| wrong("invalid name of a header"))?;
                let value = HeaderValue::from_maybe_shared(value).map_err(|_| wrong("invalid value of a header"))?;
                parts.headers.append(name, value);
            }
        }
    }
    let method = method.ok_or_else(|| wrong("no :method"))?;
    parts.method = Method::from_bytes(&method).map_err(|_| wrong("invalid :method"))?;
    let path = path.ok_or_else(|| wrong("no :path"))?;
    parts.uri = Uri::from_maybe_shared(path).map_err(|_| wrong("invalid :path"))?;
    if let Some(authority) = authority
        && !parts.headers.contains_key(HOST)
    {
        let host = HeaderValue::from_maybe_shared(authority).map_err(|_| wrong("invalid :authority"))?;
        parts.headers.insert(HOST, host);
    }
    Ok(parts)
}

/// How long the head is, as HTTP/2 counts: what `limits.headBytes` is compared with.
pub(super) fn list_bytes(headers: &HttpHeaders) -> usize {
    let headers = headers.headers.iter().flat_map(|map| &map.headers);
    headers.map(|header| header.key.len() + header.value.len().max(header.raw_value.len()) + HEADER_BYTES).sum()
}

/// The version of HTTP that the client speaks with Envoy. Envoy itself has every head in the form of HTTP/2.
pub(super) fn version_of(attributes: &HashMap<String, Struct>) -> Version {
    match attribute(attributes, PROTOCOL) {
        Some("HTTP/1.0") => Version::HTTP_10,
        Some("HTTP/1.1") => Version::HTTP_11,
        Some("HTTP/3") => Version::HTTP_3,
        _ => Version::HTTP_2,
    }
}

fn attribute<'a>(attributes: &'a HashMap<String, Struct>, name: &str) -> Option<&'a str> {
    attributes.values().find_map(|told| told.fields.get(name)?.text.as_deref())
}

/// The client of a request, as Envoy names it by attributes; Envoy itself if it names none.
pub(super) fn client_of(attributes: &HashMap<String, Struct>, envoy: SocketAddr) -> Peer {
    let address = attribute(attributes, SOURCE_ADDRESS).and_then(address_of).unwrap_or(envoy);
    let subject = attribute(attributes, CERTIFICATE_SUBJECT).filter(|subject| !subject.is_empty());
    let certificate = subject.map(|subject| Arc::new(certificate_of(subject)));
    let transport = if certificate.is_some() { Transport::Tls } else { Transport::Plain };
    Peer { address, transport, certificate }
}

/// An address with or without a port. A Unix socket has none.
fn address_of(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, 0)))
}

#[cfg(test)]
mod tests {
    use super::super::messages::{HeaderMap, HeaderValue as Header, Value};
    use super::*;

    const ENVOY: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7);

    fn headers(headers: &[(&str, &str)]) -> HttpHeaders {
        let header = |(key, value): &(&str, &str)| Header {
            key: (*key).to_owned(),
            raw_value: value.as_bytes().to_vec().into(),
            ..Header::default()
        };
        HttpHeaders { headers: Some(HeaderMap { headers: headers.iter().map(header).collect() }), end_of_stream: true }
    }

    #[test]
    fn a_head_is_what_envoy_says() {
        let sent = [
            (":method", "PUT"),
            (":path", "/a?b=c"),
            (":authority", "x.example"),
            (":scheme", "http"),
            ("x", "1"),
            ("x", "2"),
        ];
        let parts = head_of(headers(&sent)).unwrap();
        assert_eq!((parts.method.as_str(), parts.uri.to_string()), ("PUT", "/a?b=c".to_owned()));
        assert_eq!(parts.headers[HOST], "x.example");
        assert_eq!(parts.headers.get_all("x").iter().collect::<Vec<_>>(), ["1", "2"]);
    }

    #[test]
    fn what_no_request_has_is_refused() {
        for wrong in [
            &[(":path", "/")][..],
            &[(":method", "GET")],
            &[(":method", "G T"), (":path", "/")],
            &[(":method", "GET"), (":path", "/ x")],
            &[(":method", "GET"), (":path", "/"), ("a b", "c")],
            &[(":method", "GET"), (":path", "/"), ("a", "b\nc")],
        ] {
            assert!(head_of(headers(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_client_is_who_envoy_names() {
        let told = |fields: &[(&str, &str)]| {
            let value = |text: &str| Value { text: Some(text.to_owned()) };
            let fields = fields.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect();
            HashMap::from([("envoy.filters.http.ext_proc".to_owned(), Struct { fields })])
        };
        assert_eq!(client_of(&HashMap::new(), ENVOY).address, ENVOY);
        for (text, address) in [("10.0.0.1:80", "10.0.0.1:80"), ("10.0.0.1", "10.0.0.1:0"), ("[::1]:5", "[::1]:5")] {
            let client = client_of(&told(&[(SOURCE_ADDRESS, text)]), ENVOY);
            assert_eq!((client.address, client.certificate), (address.parse().unwrap(), None));
        }
        assert_eq!(client_of(&told(&[(SOURCE_ADDRESS, "/run/x.sock")]), ENVOY).address, ENVOY);
        let client = client_of(&told(&[(CERTIFICATE_SUBJECT, "CN=acme,O=paying")]), ENVOY);
        assert_eq!(client.certificate.unwrap().common_name.as_deref(), Some("acme"));
    }
}
