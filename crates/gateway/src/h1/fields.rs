//! Fields of a head: from the bytes of a message to a `HeaderMap` that shares them.

use bytes::{Bytes, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Copies the bytes of a head once, and cuts everything that it consists of out of the copy.
pub(super) struct Cutter<'a> {
    original: &'a [u8],
    copy: Bytes,
}

/// Whether a list of tokens names this one, in whatever case.
pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers.get_all(name).iter().any(|value| tokens(value).any(|found| found.eq_ignore_ascii_case(token.as_bytes())))
}

/// The tokens of a list.
pub(crate) fn tokens(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// A length, written in digits and nothing else.
pub(super) fn content_length(value: &HeaderValue) -> Option<u64> {
    let digits = value.as_bytes();
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

// === impl Cutter ===

impl<'a> Cutter<'a> {
    /// Copies into memory that is used again when everything that was cut out of it is gone.
    pub(super) fn new(original: &'a [u8], memory: &mut BytesMut) -> Self {
        memory.extend_from_slice(original);
        Self { original, copy: memory.split().freeze() }
    }

    /// The same bytes, of the copy.
    pub(super) fn cut(&self, part: &[u8]) -> Bytes {
        let start = (part.as_ptr() as usize).saturating_sub(self.original.as_ptr() as usize);
        let end = (start + part.len()).min(self.copy.len());
        self.copy.slice(start.min(end)..end)
    }

    /// The fields, or none if one has a name or a value that cannot be.
    pub(super) fn headers(&self, fields: &[httparse::Header<'_>]) -> Option<HeaderMap> {
        let mut headers = HeaderMap::with_capacity(fields.len() + 2);
        for field in fields {
            let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
            let value = HeaderValue::from_maybe_shared(self.cut(field.value)).ok()?;
            headers.try_append(name, value).ok()?;
        }
        Some(headers)
    }
}
