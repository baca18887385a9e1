//! Texts of any bytes, as strings of JSON and as values of `name=value` pairs.

use crate::observe::visible::is_visible;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a string of JSON. Bytes that are not UTF-8 become U+FFFD.
pub(super) fn put_json(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    if text.iter().all(|byte| is_plain(*byte)) {
        // Nearly all texts are plain.
        out.extend_from_slice(text);
    } else {
        for chunk in text.utf8_chunks() {
            put_escaped(out, chunk.valid());
            if !chunk.invalid().is_empty() {
                out.extend_from_slice("\u{fffd}".as_bytes());
            }
        }
    }
    out.push(b'"');
}

/// Appends a value: as it is if its end is unambiguous, and as a string of JSON otherwise.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let is_word = !text.is_empty() && text.iter().all(|byte| is_plain(*byte) && !matches!(byte, b' ' | b'='));
    if is_word || text.starts_with(b"/") && text.iter().all(|byte| is_plain(*byte) && *byte != b' ') {
        out.extend_from_slice(text);
    } else {
        put_json(out, text);
    }
}

/// Whether a byte stands for itself, alone and whatever is around it.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// Appends the text with escapes for what would end the string, and for what a terminal or a log reader may act on.
fn put_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(is_escaped) {
        let (plain, escaped) = rest.split_at(at);
        out.extend_from_slice(plain.as_bytes());
        let mut chars = escaped.chars();
        match chars.next() {
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            other => {
                for unit in other.unwrap_or_default().encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(b"\\u");
                    out.extend([12, 8, 4, 0].map(|shift| HEX[usize::from(*unit >> shift & 0xf)]));
                }
            }
        }
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Whether a character does not stand for itself in a string.
fn is_escaped(char: char) -> bool {
    matches!(char, '"' | '\\') || !is_visible(char)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether a terminal or a log reader may act on a character instead of showing it.
    fn is_unsafe(char: char) -> bool {
        !is_visible(char)
    }

    #[test]
    fn control_characters_and_line_ends_beyond_ascii_are_escaped() {
        for (text, expected) in [
            ("/a\u{9b}31m", r#""/a\u009b31m""#),
            ("/\u{85}", r#""/\u0085""#),
            ("/\u{2028}é\u{2029}", r#""/\u2028é\u2029""#),
            ("\u{7f}\u{80}\u{9f}\u{a0}", "\"\\u007f\\u0080\\u009f\u{a0}\""),
            ("日本\"\\\n\r\t\0", r#""日本\"\\\n\r\t\u0000""#),
            ("gro\u{202e}.eliv\u{200b}\u{e0041}", r#""gro\u202e.eliv\u200b\udb40\udc41""#),
        ] {
            for put in [put_json, put_text] {
                let mut out = Vec::new();
                put(&mut out, text.as_bytes());
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_string_of_json(bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_json(&mut out, &bytes);
            let text: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
            prop_assert!(!String::from_utf8(out).unwrap().contains(is_unsafe));
        }

        #[test]
        fn any_bytes_are_one_value_of_a_line(bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_text(&mut out, &bytes);
            prop_assert!(!String::from_utf8_lossy(&out).contains(is_unsafe));
            if out.starts_with(b"\"") {
                let text: String = serde_json::from_slice(&out).unwrap();
                prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
            } else {
                prop_assert_eq!(&out, &bytes);
                prop_assert!(!bytes.contains(&b' '));
            }
        }
    }
}
