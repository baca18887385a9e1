//! Which headers are forwarded (RFC 9110, 7.6.1).

use evenkeel_identity::header_names;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, FORWARDED, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::{HeaderMap, StatusCode};

use crate::http1::HeadFlags;

/// Whether a field is about one connection only, and never goes on.
pub(super) fn is_of_the_connection(name: &HeaderName) -> bool {
    HeadFlags::of(name).has(HeadFlags::OF_THE_CONNECTION)
}

/// Whether a field of a request goes on as it is. Others do not, or are written anew.
pub(super) fn goes_on(name: &HeaderName) -> bool {
    match *name {
        EXPECT | CONTENT_LENGTH | HOST | VIA | FORWARDED => false,
        _ => !is_of_the_connection(name) && !is_written_anew(name.as_str()),
    }
}

/// Whether the gateway writes this field itself, or the upstream would take the field for one that the gateway writes.
fn is_written_anew(name: &str) -> bool {
    let is = |known: &str| header_names::matches(name, known);
    match name.len() {
        12 => is("x-request-id"),
        14 => is("content-length"),
        15 => is("x-forwarded-for"),
        16 => is("x-forwarded-host"),
        17 => is("x-forwarded-proto") || is("transfer-encoding"),
        _ => false,
    }
}

/// Removes the fields that `Connection` names, except those that say how the message ends, or which host it is for.
///
/// It is called before the gateway adds its own fields, so that a client cannot have those removed.
pub(super) fn remove_named(headers: &mut HeaderMap) {
    if !headers.contains_key(CONNECTION) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|token| HeaderName::from_bytes(token.trim_ascii()).ok())
        .filter(|name| !matches!(*name, HOST | CONTENT_LENGTH | TRANSFER_ENCODING | CONNECTION | TE | UPGRADE | EXPECT))
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// Removes from a response the fields that are about the upstream's connection only.
pub(crate) fn sanitize_response(status: StatusCode, headers: &mut HeaderMap, flags: HeadFlags) {
    if status == StatusCode::SWITCHING_PROTOCOLS || !flags.has(HeadFlags::OF_THE_CONNECTION) {
        return;
    }
    if flags.has(HeadFlags::CONNECTION) {
        remove_named(headers);
    }
    // Most responses have one of them at most.
    while let Some(name) = headers.keys().find(|name| is_of_the_connection(name)) {
        let name = name.clone();
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_gateway_writes_goes_on_in_no_spelling() {
        for name in [
            "content-length",
            "content_length",
            "transfer_encoding",
            "x-forwarded-for",
            "x_forwarded_for",
            "x_forwarded-host",
            "x-forwarded_proto",
            "x-request-id",
            "x_request_id",
        ] {
            assert!(!goes_on(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["content-language", "content_type", "x-forwarded-by", "x_forwarded_to", "transfer-decoding"] {
            assert!(goes_on(&HeaderName::from_static(name)), "{name}");
        }
    }

    #[test]
    fn what_connection_names_is_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("connection", "close, x-one"), ("connection", "Host,X-Two,content-length"), ("host", "a")]
        {
            headers.append(name, value.parse().unwrap());
        }
        for name in ["x-one", "x-two", "x-three", "content-length"] {
            headers.insert(name, "1".parse().unwrap());
        }
        remove_named(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["connection", "content-length", "host", "x-three"]);
    }
}
