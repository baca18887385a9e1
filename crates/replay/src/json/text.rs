//! The inside of JSON strings: where it ends, and what its escapes stand for.

const WORD: usize = size_of::<u64>();

/// The first position from `at` on that is a quote, a backslash or a control character; or the end.
#[inline]
pub(super) fn ordinary_until(bytes: &[u8], mut at: usize) -> usize {
    // Eight bytes at a time: most strings are long enough for that to pay.
    while let Some(word) = bytes.get(at..at + WORD).and_then(|word| <[u8; WORD]>::try_from(word).ok()) {
        let special = special_bytes(u64::from_le_bytes(word));
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += WORD;
    }
    while bytes.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        at += 1;
    }
    at
}

/// A word whose lowest set bit is in the first byte that is a quote, a backslash or a control character.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let below_space = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c)) | below_space
}

/// The text that the inside of a string stands for. Halves of surrogate pairs become U+FFFD. `None`: there is an escape that JSON
/// does not have.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let escape = after.chars().next()?;
        rest = &after[escape.len_utf8()..];
        let letter = match escape {
            '"' | '\\' | '/' => escape,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = code_unit(rest)?;
                rest = &rest[4..];
                match rest.strip_prefix("\\u").and_then(code_unit) {
                    Some(second) if (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second) => {
                        rest = &rest[6..];
                        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))?
                    }
                    _ => char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            _ => return None,
        };
        plain.push(letter);
    }
    plain.push_str(rest);
    Some(plain)
}

fn code_unit(text: &str) -> Option<u32> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_found_at_every_place() {
        for special in [b'"', b'\\', 0, 0x1f, b'\n'] {
            for length in 0..40 {
                let mut text = "é ÿ!~\u{7f}[]abcdefgh".repeat(3).into_bytes();
                text.truncate(length);
                let expected = text.len();
                text.push(special);
                text.extend_from_slice(b"abcdefghijklmnop\"");
                assert_eq!(ordinary_until(&text, 0), expected, "{special} after {length}");
            }
        }
        assert_eq!(ordinary_until(b"abc", 0), 3);
        assert_eq!(ordinary_until(b"abc", 7), 7);
    }

    #[test]
    fn below_space_does_not_carry_into_the_next_byte() {
        // The lowest bit is what counts: bytes before the first special one must not be reported.
        assert_eq!(ordinary_until(b"        \x20\x21\x23abcde\x01", 0), 16);
    }
}
