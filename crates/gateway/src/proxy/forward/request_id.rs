//! Request ids: adopted from clients as far as the settings say, generated otherwise.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header with the id, in requests and responses.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Makes the ids of one worker: a random number of its own, and a count. They are made some at a time, so that they share
/// their memory.
#[derive(Debug)]
pub(crate) struct RequestIds {
    random: u64,
    made: RefCell<Made>,
}

#[derive(Debug, Default)]
struct Made {
    count: u64,
    /// New ids, one after the other.
    rest: Bytes,
}

const LENGTH: usize = 32;
const BATCH: usize = 32;
const LENGTH_MAX: usize = 128;

// === impl RequestIds ===

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self { random: RandomState::new().hash_one(0), made: RefCell::default() }
    }

    /// The id that these headers have, if it is sound, or a new one.
    pub(crate) fn adopt(&self, headers: &HeaderMap) -> HeaderValue {
        match headers.get(REQUEST_ID) {
            Some(id) if is_sane(id.as_bytes()) => id.clone(),
            _ => self.make(),
        }
    }

    /// A new id.
    pub(crate) fn make(&self) -> HeaderValue {
        let made = &mut *self.made.borrow_mut();
        if made.rest.is_empty() {
            let mut text = Vec::with_capacity(LENGTH * BATCH);
            for _ in 0..BATCH {
                put_hex(&mut text, self.random);
                put_hex(&mut text, made.count);
                made.count = made.count.wrapping_add(1);
            }
            made.rest = text.into();
        }
        let id = made.rest.split_to(LENGTH);
        HeaderValue::from_maybe_shared(id).unwrap_or_else(|_| HeaderValue::from_static("0"))
    }
}

fn put_hex(text: &mut Vec<u8>, number: u64) {
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
    text.extend(number.to_be_bytes().into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]));
}

/// Ids end up in logs: characters with a meaning there are refused.
fn is_sane(id: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@".contains(byte);
    !id.is_empty() && id.len() <= LENGTH_MAX && id.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_ids_are_kept_and_others_replaced() {
        let ids = RequestIds::new();
        let long = "a".repeat(LENGTH_MAX + 1);
        for (sent, is_kept) in [("abc-1", true), ("", false), ("a b", false), ("a\"b", false), (&*long, false)] {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(sent).unwrap());
            assert_eq!(ids.adopt(&headers) == sent, is_kept, "{sent}");
        }
        let (first, second) = (ids.make(), ids.make());
        assert!(first != second && first.len() == 32);
    }
}
