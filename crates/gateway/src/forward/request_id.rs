//! Request ids: kept if a client sends a sane one, made otherwise.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header with the id, in requests and answers.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Makes the ids of one worker: a random number of its own, and a count.
#[derive(Debug)]
pub(crate) struct RequestIds {
    random: u64,
    count: Cell<u64>,
}

const LENGTH_MAX: usize = 128;

// === impl RequestIds ===

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self { random: RandomState::new().hash_one(0), count: Cell::new(0) }
    }

    /// The id of a request, which is in its headers afterwards.
    pub(crate) fn assign(&self, headers: &mut HeaderMap) -> HeaderValue {
        if let Some(id) = headers.get(REQUEST_ID)
            && is_sane(id.as_bytes())
        {
            return id.clone();
        }
        let id = self.make();
        headers.insert(REQUEST_ID, id.clone());
        id
    }

    fn make(&self) -> HeaderValue {
        let count = self.count.get();
        self.count.set(count.wrapping_add(1));
        let number = u128::from(self.random) << 64 | u128::from(count);
        let mut text = [0; 32];
        for (place, digit) in text.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (124 - 4 * place)) as usize & 0xf];
        }
        HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static("0"))
    }
}

/// Ids end up in logs: nothing that has a meaning there is let in.
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
            let id = ids.assign(&mut headers);
            assert_eq!((id == sent, &headers[REQUEST_ID] == id), (is_kept, true), "{sent}");
        }
        let (first, second) = (ids.make(), ids.make());
        assert!(first != second && first.len() == 32);
    }
}
