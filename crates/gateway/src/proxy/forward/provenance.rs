//! Tells the upstream where a request comes from: `X-Forwarded-*`, `Forwarded` and `Via`.
//!
//! These headers are made from the connection. Values from a trusted proxy in front are kept, and added to; all others are
//! dropped.

use std::fmt;
use std::io::Write;
use std::net::IpAddr;

use http::header::{FORWARDED, HeaderName, HeaderValue, VIA};
use http::request::Parts;
use http::{HeaderMap, Version};

use crate::http1::HeadFlags;
use crate::identity::{Peer, Transport};

/// The origin of a connection's requests. It is as small as it can be: every idle connection has one.
#[derive(Debug)]
pub(crate) struct Provenance {
    address: AddressText,
    is_ipv6: bool,
    is_tls: bool,
    is_trusted: bool,
}

/// An IP address as text.
struct AddressText {
    bytes: [u8; ADDRESS_MAX],
    length: u8,
}

/// The longest text of an IPv6 address.
const ADDRESS_MAX: usize = 45;

pub(super) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(super) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

// === impl Provenance ===

impl Provenance {
    pub(crate) fn new(peer: &Peer, is_trusted: bool) -> Self {
        let ip = peer.address.ip().to_canonical();
        let (is_ipv6, is_tls) = (ip.is_ipv6(), peer.transport == Transport::Tls);
        Self { address: AddressText::new(ip), is_ipv6, is_tls, is_trusted }
    }

    fn scheme(&self) -> &'static [u8] {
        if self.is_tls { b"https" } else { b"http" }
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
        let start = b"via: 1.1 evenkeel\r\nx-forwarded-for: ";
        put_all(output, &[start, self.address.bytes(), b"\r\nx-forwarded-proto: ", self.scheme()]);
        put_all(output, &[b"\r\nx-forwarded-host: ", host, b"\r\nforwarded: "]);
        put_all(output, &self.forwarded(host));
        put_all(output, &[b"\r\n"]);
    }

    /// The value of `Forwarded`, in parts.
    fn forwarded<'a>(&'a self, host: &'a [u8]) -> [&'a [u8]; 6] {
        let (before, after): (&[u8], &[u8]) =
            if self.is_ipv6 { (b"for=\"[", b"]\";host=\"") } else { (b"for=", b";host=\"") };
        [before, self.address.bytes(), after, host, b"\";proto=", self.scheme()]
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
        let (address, scheme) = (self.address.bytes(), self.scheme());
        let forwarded = &self.forwarded(host);
        if !self.is_trusted {
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

// === impl AddressText ===

impl AddressText {
    fn new(ip: IpAddr) -> Self {
        let mut text = Self { bytes: [0; ADDRESS_MAX], length: 0 };
        let mut left = &mut text.bytes[..];
        // The buffer is long enough for every address.
        let _ = write!(left, "{ip}");
        let left = left.len();
        text.length = u8::try_from(ADDRESS_MAX - left).unwrap_or_default();
        text
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for AddressText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.bytes()))
    }
}

fn put_all(output: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        output.extend_from_slice(part);
    }
}

/// The values that were received under this name, with one more.
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
