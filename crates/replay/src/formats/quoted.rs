//! `key="value"` pairs as Go's structured logger writes them.

use std::borrow::Cow;

use super::Damage;

/// Calls `pair` with each key and its value. Values are numbers and words, or quoted with the escapes of Go.
pub(super) fn pairs<'a>(
    text: &'a str,
    mut pair: impl FnMut(&'a str, Cow<'a, str>) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or(Damage::Form)?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted_value(quoted)?,
            None => {
                let end = after.find(' ').unwrap_or(after.len());
                (Cow::Borrowed(&after[..end]), &after[end..])
            }
        };
        pair(key, value)?;
        rest = after.trim_start();
    }
    Ok(())
}

/// A text up to its closing quote, and what follows.
fn quoted_value(text: &str) -> Result<(Cow<'_, str>, &str), Damage> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => {
                let (inner, after) = (&text[..at], &text[at + 1..]);
                let value = if inner.contains('\\') { Cow::Owned(unescape(inner)?) } else { Cow::Borrowed(inner) };
                return Ok((value, after));
            }
            _ => {}
        }
    }
    Err(Damage::Form)
}

/// What escapes of Go or nginx stand for. Bytes that are no UTF-8 become U+FFFD.
pub(super) fn unescape(text: &str) -> Result<String, Damage> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.extend_from_slice(before.as_bytes());
        let escape = after.chars().next().ok_or(Damage::Form)?;
        rest = &after[escape.len_utf8()..];
        let digits = match escape {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if digits == 0 {
            let byte = match escape {
                'a' => 7,
                'b' => 8,
                'f' => 12,
                'n' => b'\n',
                'r' => b'\r',
                't' => b'\t',
                'v' => 11,
                '"' | '\'' | '\\' | '/' => escape as u8,
                _ => return Err(Damage::Form),
            };
            plain.push(byte);
            continue;
        }
        let code = rest.get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok()).ok_or(Damage::Form)?;
        rest = &rest[digits..];
        match u8::try_from(code) {
            Ok(byte) if escape == 'x' => plain.push(byte),
            _ => {
                let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    plain.extend_from_slice(rest.as_bytes());
    Ok(String::from_utf8(plain).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<(String, String)>, Damage> {
        let mut found = Vec::new();
        pairs(text, |key, value| {
            found.push((key.to_owned(), value.into_owned()));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn values_are_bare_or_quoted() {
        let found = all(r#" verb="GET" URI="/a?b=\"c\"&d= \xc3\xa9\u00e9" resp=200"#).unwrap();
        let expected = [("verb", "GET"), ("URI", "/a?b=\"c\"&d= éé"), ("resp", "200")];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_is_cut_off_is_damaged() {
        for text in [r#"verb="GET"#, "verb", r#"verb="a\"#, r#"verb="\q""#, r#"verb="\u00"#, r#"verb="\xzz""#] {
            assert_eq!(all(text), Err(Damage::Form), "{text}");
        }
    }
}
