//! Texts of any bytes, as strings of JSON and as values of `name=value` pairs.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a string of JSON. What is not UTF-8 becomes U+FFFD.
pub(super) fn put_json(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    if text.iter().all(|byte| is_plain(*byte)) {
        // Nearly all texts are.
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

/// Appends a value: as it is if nobody can mistake its end, and as a string of JSON otherwise.
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

fn put_escaped(out: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            // A terminal may act on it.
            0..=0x1f | 0x7f => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 0xf)]);
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_string_of_json(bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_json(&mut out, &bytes);
            let text: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
            prop_assert!(!out.iter().any(|byte| matches!(byte, 0..=0x1f | 0x7f)));
        }

        #[test]
        fn any_bytes_are_one_value_of_a_line(bytes: Vec<u8>) {
            let mut out = Vec::new();
            put_text(&mut out, &bytes);
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
