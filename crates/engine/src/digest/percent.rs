//! Percent-decoding of paths and queries.

use std::borrow::Cow;

/// What a plus sign stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plus {
    Itself,
    Space,
}

/// A percent sign that two hexadecimal digits do not follow, and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadEscape {
    pub(super) position: usize,
}

/// Decodes a path or a segment of one.
pub(super) fn decode_path(text: &str) -> Result<Cow<'_, str>, BadEscape> {
    decode(text, Plus::Itself)
}

/// Decodes a text in which a plus sign stands for itself. `None` if a percent sign is not followed by two hexadecimal digits.
pub fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    decode_path(text).ok()
}

/// Decodes a path, but for the `%2F` in it: there a slash is a part of a name.
pub fn decode_keeping_slashes(path: &str) -> Result<Cow<'_, str>, super::DigestError> {
    if !path.contains("%2F") && !path.contains("%2f") {
        return Ok(decode_path(path)?);
    }
    // An escaped percent sign becomes one, and `2F` stays behind it.
    Ok(Cow::Owned(decode_path(&path.replace("%2F", "%252F").replace("%2f", "%252F"))?.into_owned()))
}

/// Decodes a name or a value of a query.
pub(super) fn decode_query(text: &str) -> Result<Cow<'_, str>, BadEscape> {
    decode(text, Plus::Space)
}

/// Bytes that are no UTF-8 become U+FFFD: no rule and no parameter can ask for them.
fn decode(text: &str, plus: Plus) -> Result<Cow<'_, str>, BadEscape> {
    let is_coded = |byte: u8| byte == b'%' || (byte == b'+' && plus == Plus::Space);
    let Some(first) = text.bytes().position(is_coded) else { return Ok(Cow::Borrowed(text)) };
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    decoded.extend_from_slice(&bytes[..first]);
    let mut position = first;
    while let Some(&byte) = bytes.get(position) {
        match byte {
            b'%' => {
                let digit = |offset| bytes.get(position + offset).and_then(|&digit| hexadecimal(digit));
                let (Some(high), Some(low)) = (digit(1), digit(2)) else { return Err(BadEscape { position }) };
                decoded.push(high << 4 | low);
                position += 3;
                continue;
            }
            b'+' if plus == Plus::Space => decoded.push(b' '),
            plain => decoded.push(plain),
        }
        position += 1;
    }
    Ok(Cow::Owned(match String::from_utf8(decoded) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }))
}

pub(super) fn hexadecimal(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_two_hexadecimal_digits() {
        assert_eq!(decode_path("/a%2fb%2F%25+c").unwrap(), "/a/b/%+c");
        assert_eq!(decode_query("a+b%2B").unwrap(), "a b+");
        for (text, position) in [("%", 0), ("a%2", 1), ("%20%zz", 3), ("%é", 0)] {
            assert_eq!(decode_path(text), Err(BadEscape { position }), "{text}");
        }
    }

    #[test]
    fn escaped_slashes_can_be_kept() {
        assert_eq!(decode_keeping_slashes("/a%2fb%2F%20c").unwrap(), "/a%2Fb%2F c");
        assert!(matches!(decode_keeping_slashes("/a+b"), Ok(Cow::Borrowed("/a+b"))));
        assert!(decode_keeping_slashes("/a%2F%2").is_err());
    }

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(decode_path("/a+b"), Ok(Cow::Borrowed("/a+b"))));
        assert!(matches!(decode_query("é"), Ok(Cow::Borrowed("é"))));
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(decode_path("a%FFb%E6%97%A5").unwrap(), "a\u{fffd}b日");
    }
}
