//! Percent-encoding of the parts of URLs.

/// The text with every byte percent-encoded that is not unreserved (RFC 3986) and not among those to keep.
pub(crate) fn encoded(text: &str, kept: &[u8]) -> String {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte);
    text.bytes().map(|byte| if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The text without percent-encoding. Malformed escapes stay as they are.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded_and_decoded() {
        assert_eq!(encoded("a b/ä%#~", b"/"), "a%20b/%C3%A4%25%23~");
        assert_eq!(encoded("a/b", b""), "a%2Fb");
        assert_eq!(decoded("a%20b%2F%c3%A4"), "a b/ä");
        assert_eq!(decoded("%%4z%"), "%%4z%");
    }
}
