//! Where a request comes from, as the upstream is told: `X-Forwarded-*`, `Forwarded` and `Via`.
//!
//! They are made from the connection. Only what a trusted proxy in front has said is kept, and added to.

use http::header::{FORWARDED, HeaderName, HeaderValue, VIA};
use http::request::Parts;
use http::{HeaderMap, Version};

use crate::http1::HeadFlags;
use crate::identity::{Peer, Transport};

/// What the connection tells of where its requests come from. Made once for a connection.
#[derive(Debug)]
pub(crate) struct Provenance {
    address: String,
    /// The address as `Forwarded` wants it.
    node: String,
    scheme: &'static str,
    is_believed: bool,
    /// The fields that are the same in all requests, as they are in a head of HTTP/1.1. They do for most requests.
    same: Vec<u8>,
}

pub(super) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(super) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

// === impl Provenance ===

impl Provenance {
    pub(crate) fn new(peer: &Peer, is_believed: bool) -> Self {
        let ip = peer.address.ip().to_canonical();
        let node = if ip.is_ipv6() { format!("\"[{ip}]\"") } else { ip.to_string() };
        let scheme = match peer.transport {
            Transport::Plain => "http",
            Transport::Tls => "https",
        };
        let same = format!("via: 1.1 evenkeel\r\nx-forwarded-for: {ip}\r\nx-forwarded-proto: {scheme}\r\n").into();
        Self { address: ip.to_string(), node, scheme, is_believed, same }
    }

    /// Writes every header into a head of HTTP/1.1.
    pub(super) fn put(&self, output: &mut Vec<u8>, received: &Parts, flags: HeadFlags, host: &[u8]) {
        if flags.has(HeadFlags::PROVENANCE) || received.version == Version::HTTP_2 {
            return self.each(&received.headers, received.version, host, |name, value| {
                put_all(output, &[name.as_str().as_bytes(), b": "]);
                put_all(output, value);
                put_all(output, &[b"\r\n"]);
            });
        }
        put_all(output, &[&self.same, b"x-forwarded-host: ", host, b"\r\nforwarded: "]);
        put_all(output, &self.forwarded(host));
        put_all(output, &[b"\r\n"]);
    }

    /// The value of `Forwarded`, in parts.
    fn forwarded<'a>(&'a self, host: &'a [u8]) -> [&'a [u8]; 6] {
        [b"for=", self.node.as_bytes(), b";host=\"", host, b"\";proto=", self.scheme.as_bytes()]
    }

    /// Names every header with the parts that its value consists of.
    pub(super) fn each(
        &self,
        received: &HeaderMap,
        version: Version,
        host: &[u8],
        mut put: impl FnMut(&HeaderName, &[&[u8]]),
    ) {
        let protocol = if version == Version::HTTP_2 { &b"2.0 evenkeel"[..] } else { b"1.1 evenkeel" };
        append(received, &VIA, &[protocol], &mut put);
        let (address, scheme) = (self.address.as_bytes(), self.scheme.as_bytes());
        let forwarded = &self.forwarded(host);
        if !self.is_believed {
            put(&X_FORWARDED_FOR, &[address]);
            put(&X_FORWARDED_PROTO, &[scheme]);
            put(&X_FORWARDED_HOST, &[host]);
            put(&FORWARDED, forwarded);
            return;
        }
        append(received, &X_FORWARDED_FOR, &[address], &mut put);
        append(received, &FORWARDED, forwarded, &mut put);
        let kept = |name| received.get(name).map(HeaderValue::as_bytes);
        put(&X_FORWARDED_PROTO, &[kept(X_FORWARDED_PROTO).unwrap_or(scheme)]);
        put(&X_FORWARDED_HOST, &[kept(X_FORWARDED_HOST).unwrap_or(host)]);
    }
}

fn put_all(output: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        output.extend_from_slice(part);
    }
}

/// What was received under this name, with something added to the list.
fn append(received: &HeaderMap, name: &HeaderName, added: &[&[u8]], put: &mut impl FnMut(&HeaderName, &[&[u8]])) {
    let mut values = received.get_all(name).iter().peekable();
    if values.peek().is_none() {
        return put(name, added);
    }
    let mut parts = Vec::new();
    for value in values {
        parts.extend([value.as_bytes(), b", "]);
    }
    parts.extend_from_slice(added);
    put(name, &parts);
}
