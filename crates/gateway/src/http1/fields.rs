//! Fields of a head: from the bytes of a message to a `HeaderMap` that shares them.

use bytes::Bytes;
use http::Version;
use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};

use super::head_flags::HeadFlags;
use super::head_memory::HeadMemory;

/// Copies the bytes of a head once, and cuts everything that it consists of out of the copy.
pub(super) struct Cutter<'a> {
    original: &'a [u8],
    copy: Bytes,
}

/// Whether a list of tokens names this one, in whatever case.
pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers.get_all(name).iter().any(|value| tokens(value).any(|found| found.eq_ignore_ascii_case(token.as_bytes())))
}

/// Whether the connection stays open after a message with this head (RFC 9112, 9.3): `close` counts more than `keep-alive`.
pub(super) fn is_kept_alive(headers: &HeaderMap, flags: HeadFlags, version: Version) -> bool {
    let says = |token| flags.has(HeadFlags::CONNECTION) && has_token(headers, &CONNECTION, token);
    !says("close") && (version == Version::HTTP_11 || flags.has(HeadFlags::KEEP_ALIVE) || says("keep-alive"))
}

/// The tokens of a list.
pub(crate) fn tokens(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// A length, written in digits and nothing else.
pub(crate) fn content_length(value: &HeaderValue) -> Option<u64> {
    let digits = value.as_bytes();
    if digits.is_empty() || digits.len() > 19 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether every line of a head ends with both characters. The parser takes a line feed for an end too, and the reader
/// before us may not have.
pub(super) fn has_whole_line_ends(head: &[u8], fields: &[httparse::Header<'_>]) -> bool {
    let ends_before = |field: &httparse::Header<'_>| {
        let start = (field.name.as_ptr() as usize).saturating_sub(head.as_ptr() as usize);
        start == 0 || head[..start.min(head.len())].ends_with(b"\r\n")
    };
    fields.iter().all(ends_before) && (head.ends_with(b"\r\n\r\n") || fields.is_empty() && head == b"\r\n")
}

// === impl Cutter ===

impl<'a> Cutter<'a> {
    pub(super) fn new(original: &'a [u8], memory: &mut HeadMemory) -> Self {
        Self { original, copy: memory.copy(original) }
    }

    /// The part of the copy that has the same bytes.
    pub(super) fn cut(&self, part: &[u8]) -> Bytes {
        let start = (part.as_ptr() as usize).saturating_sub(self.original.as_ptr() as usize);
        let end = (start + part.len()).min(self.copy.len());
        self.copy.slice(start.min(end)..end)
    }

    /// The fields, and what sorts of them there are; `None` if a field has an invalid name or value.
    pub(super) fn headers(
        &self,
        fields: &[httparse::Header<'_>],
        memory: &mut HeadMemory,
    ) -> Option<(HeaderMap, HeadFlags)> {
        let (mut headers, mut flags) = (memory.map(fields.len()), HeadFlags::NONE);
        for field in fields {
            let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
            let sort = HeadFlags::of(&name);
            if sort == HeadFlags::CONNECTION && field.value.eq_ignore_ascii_case(b"keep-alive") {
                // Many messages have this field, and it is passed on as it is.
                flags |= HeadFlags::KEEP_ALIVE;
                continue;
            }
            flags |= sort;
            let value = HeaderValue::from_maybe_shared(self.cut(field.value)).ok()?;
            headers.try_append(name, value).ok()?;
        }
        Some((headers, flags))
    }
}
