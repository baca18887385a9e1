//! `RetryInfo`: when a collector of gRPC wants a message again, as the details of its status say.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::HeaderMap;

use super::protobuf_reader::{Field, fields, find};

/// A `google.rpc.RetryInfo`: the collector wants the message again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetryInfo {
    /// How long to wait until then. `None` if it does not say, or says that there is no need to wait: the ordinary pauses apply.
    pub(super) delay: Option<Duration>,
}

/// The encoded `google.rpc.Status`, whose field 3 is a list of `google.protobuf.Any`.
const DETAILS: &str = "grpc-status-details-bin";
const TYPE_URL_END: &[u8] = b"/google.rpc.RetryInfo";

// === impl RetryInfo ===

impl RetryInfo {
    /// Reads the headers or trailers with the status; `None` if they have no such details, or malformed ones.
    pub(super) fn of(status: &HeaderMap) -> Option<Self> {
        // The value may be padded or not.
        let details = status.get(DETAILS)?.to_str().ok()?.trim_end_matches('=');
        let details = STANDARD_NO_PAD.decode(details).ok()?;
        let is_retry_info = |any: &&[u8]| bytes(any, 1).is_some_and(|name| name.ends_with(TYPE_URL_END));
        let mut all = fields(&details, 3).filter_map(Field::bytes);
        // An `Any` without a value has the defaults.
        let info = bytes(all.find(is_retry_info)?, 2).unwrap_or_default();
        Some(Self { delay: bytes(info, 1).and_then(duration) })
    }
}

fn bytes(message: &[u8], wanted: u64) -> Option<&[u8]> {
    find(message, wanted).and_then(Field::bytes)
}

/// A `google.protobuf.Duration`, if it is longer than zero.
fn duration(message: &[u8]) -> Option<Duration> {
    let number = |wanted| match find(message, wanted) {
        Some(Field::Number(number)) => number.cast_signed(),
        _ => 0,
    };
    let (seconds, nanos) = (u64::try_from(number(1)).ok()?, u32::try_from(number(2)).ok()?);
    let whole = Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos.into()));
    (!whole.is_zero()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;
    use crate::observe::spans::protobuf::{put_bytes, put_message, put_number};

    fn detail(out: &mut Vec<u8>, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        put_message(out, 3, |out| {
            put_bytes(out, 1, format!("type.googleapis.com/google.rpc.{name}").as_bytes());
            put_message(out, 2, value);
        });
    }

    /// A status with this delay, after other details.
    fn status(seconds: i64, nanos: i64) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 1, 8);
        put_bytes(&mut out, 2, b"no room");
        detail(&mut out, "QuotaFailure", |out| put_bytes(out, 1, b"x"));
        detail(&mut out, "RetryInfo", |out| {
            put_message(out, 1, |out| {
                put_number(out, 1, seconds.cast_unsigned());
                put_number(out, 2, nanos.cast_unsigned());
            });
        });
        out
    }

    fn read(encoded: &str) -> Option<RetryInfo> {
        RetryInfo::of(&HeaderMap::from_iter([(DETAILS.parse().unwrap(), encoded.parse().unwrap())]))
    }

    #[test]
    fn a_delay_is_found_among_details() {
        let some = |delay| Some(RetryInfo { delay: Some(delay) });
        for (seconds, nanos, expected) in [
            (3, 0, some(Duration::from_secs(3))),
            (0, 250_000_000, some(Duration::from_millis(250))),
            (i64::MAX, 999_999_999, some(Duration::new(i64::MAX.cast_unsigned(), 999_999_999))),
            (0, 0, Some(RetryInfo { delay: None })),
            (-1, 0, Some(RetryInfo { delay: None })),
            (0, -1, Some(RetryInfo { delay: None })),
        ] {
            for engine in [STANDARD, STANDARD_NO_PAD] {
                assert_eq!(read(&engine.encode(status(seconds, nanos))), expected, "{seconds} {nanos}");
            }
        }
    }

    #[test]
    fn other_details_say_nothing() {
        let mut other = Vec::new();
        detail(&mut other, "QuotaFailure", |out| put_bytes(out, 1, b"x"));
        for encoded in [&STANDARD.encode(other), "", "!", "AAAA"] {
            assert_eq!(read(encoded), None, "{encoded}");
        }
        assert_eq!(RetryInfo::of(&HeaderMap::new()), None);
    }

    proptest! {
        #[test]
        fn whatever_is_read_no_delay_is_zero(bytes: Vec<u8>, at: usize, byte: u8) {
            let mut damaged = status(3, 4);
            let at = at % damaged.len();
            damaged[at] = byte;
            for encoded in [bytes, damaged].map(|bytes| STANDARD.encode(bytes)) {
                let delay = read(&encoded).and_then(|info| info.delay);
                prop_assert!(delay.is_none_or(|delay| !delay.is_zero()));
            }
        }
    }
}
