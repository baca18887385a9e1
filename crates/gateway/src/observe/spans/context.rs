//! The W3C trace context: `traceparent` and `tracestate` (<https://www.w3.org/TR/trace-context/>).

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The id of a trace. It is not zero.
pub(super) type TraceId = [u8; 16];
/// The id of a span. It is not zero.
pub(super) type SpanId = [u8; 8];

/// The flag of requests that are recorded.
pub(super) const SAMPLED: u8 = 1;
/// The flag of traces whose id is random. It is set by the system that began the trace.
pub(super) const RANDOM: u8 = 1 << 1;

/// The parent of our span, which belongs to another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace_id: TraceId,
    pub(super) span_id: SpanId,
    pub(super) flags: u8,
}

/// The length of a `traceparent` of version 00, and the place of the hyphen that follows in later versions.
const LENGTH: usize = 55;

// === impl Parent ===

impl Parent {
    /// The parent that the headers of a request name. A header that is malformed or sent twice counts as none.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Self::parse(value.as_bytes()),
            _ => None,
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let (text, rest) = text.split_at_checked(LENGTH)?;
        let [version] = bytes(&text[..2])?;
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            // Later versions may have more behind another hyphen.
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        let has_hyphens = [2, 35, 52].into_iter().all(|place| text[place] == b'-');
        if !is_whole || !has_hyphens {
            return None;
        }
        let (trace_id, span_id, [flags]) = (bytes(&text[3..35])?, bytes(&text[36..52])?, bytes(&text[53..])?);
        (trace_id != [0; 16] && span_id != [0; 8]).then_some(Self { trace_id, span_id, flags })
    }
}

/// The bytes that these hexadecimal digits stand for. Capitals are not allowed.
fn bytes<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    Some(bytes)
}

fn digit(text: u8) -> Option<u8> {
    match text {
        b'0'..=b'9' => Some(text - b'0'),
        b'a'..=b'f' => Some(text - b'a' + 10),
        _ => None,
    }
}

/// The value of `traceparent` for requests that belong to this span.
pub(super) fn traceparent(trace_id: TraceId, span_id: SpanId, flags: u8) -> HeaderValue {
    let mut text = [b'-'; LENGTH];
    put_hex(&mut text[..2], &[0]);
    put_hex(&mut text[3..35], &trace_id);
    put_hex(&mut text[36..52], &span_id);
    put_hex(&mut text[53..], &[flags]);
    HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn put_hex(text: &mut [u8], bytes: &[u8]) {
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
    for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
        digits.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_parent_is_read_and_written() {
        let parent = Parent::of(&headers(&[GOOD])).unwrap();
        assert_eq!(parent.flags, SAMPLED);
        assert_eq!(traceparent(parent.trace_id, parent.span_id, parent.flags), GOOD);
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        for later in [&format!("cc{}", &GOOD[2..]), &format!("01{}-what-comes-then", &GOOD[2..])] {
            assert_eq!(Parent::of(&headers(&[later])), Parent::of(&headers(&[GOOD])), "{later}");
        }
    }

    #[test]
    fn malformed_parents_are_ignored() {
        for wrong in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-00"),
            &format!("{GOOD} "),
            &format!("ff{}", &GOOD[2..]),
            &format!("01{}x", &GOOD[2..]),
            &format!("0x{}", &GOOD[2..]),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
            "00-0af7651916cd43dd8448eb211c8031-9c-b7ad6b716920333-01",
        ] {
            assert_eq!(Parent::of(&headers(&[wrong])), None, "{wrong}");
        }
        assert_eq!(Parent::of(&headers(&[GOOD, GOOD])), None, "it was sent twice");
        assert_eq!(Parent::of(&HeaderMap::new()), None);
    }

    proptest! {
        #[test]
        fn any_value_is_read_or_ignored(value: Vec<u8>) {
            if let Some(parent) = Parent::parse(&value) {
                prop_assert!(value.len() >= LENGTH && parent.trace_id != [0; 16] && parent.span_id != [0; 8]);
            }
        }

        #[test]
        fn all_ids_and_flags_survive(trace_id: [u8; 16], span_id: [u8; 8], flags: u8) {
            prop_assume!(trace_id != [0; 16] && span_id != [0; 8]);
            let written = traceparent(trace_id, span_id, flags);
            prop_assert_eq!(Parent::parse(written.as_bytes()), Some(Parent { trace_id, span_id, flags }));
        }
    }
}
