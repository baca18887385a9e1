//! Splits a command line into words as a shell does. Nothing is expanded.

use std::iter::Peekable;
use std::str::Chars;

/// The words of a line with quotes (`'…'`, `"…"`, `$'…'`), backslashes and continued lines.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '$' if characters.next_if_eq(&'\'').is_some() => {
                word.get_or_insert_default().push_str(&escaped_until_quote(&mut characters)?);
            }
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match (characters.next(), character) {
                        (None, _) => return Err(unended(character)),
                        (Some(end), quote) if end == quote => break,
                        (Some('\\'), '"') => match characters.next() {
                            Some('\n') | None => {}
                            Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                            Some(other) => word.extend(['\\', other]),
                        },
                        (Some(other), _) => word.push(other),
                    }
                }
            }
            '\\' => match characters.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn unended(quote: char) -> String {
    format!("curl: the quote {quote} has no end")
}

/// The text of `$'…'`, which browsers write where a text has quotes or line breaks.
fn escaped_until_quote(characters: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    // `\x` stands for a byte, of which several may be a character.
    let mut bytes = Vec::new();
    loop {
        match characters.next().ok_or_else(|| unended('\''))? {
            '\'' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            '\\' => match characters.next().ok_or_else(|| unended('\''))? {
                'n' => push(&mut bytes, '\n'),
                't' => push(&mut bytes, '\t'),
                'r' => push(&mut bytes, '\r'),
                'x' => match number(characters, 2).and_then(|byte| u8::try_from(byte).ok()) {
                    Some(byte) => bytes.push(byte),
                    None => push(&mut bytes, '\u{fffd}'),
                },
                'u' => push(&mut bytes, number(characters, 4).and_then(char::from_u32).unwrap_or('\u{fffd}')),
                'U' => push(&mut bytes, number(characters, 8).and_then(char::from_u32).unwrap_or('\u{fffd}')),
                escaped @ ('\'' | '"' | '\\' | '?') => push(&mut bytes, escaped),
                other => {
                    push(&mut bytes, '\\');
                    push(&mut bytes, other);
                }
            },
            other => push(&mut bytes, other),
        }
    }
}

fn push(bytes: &mut Vec<u8>, character: char) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// A hexadecimal number with that many digits at most.
fn number(characters: &mut Peekable<Chars<'_>>, digits_max: usize) -> Option<u32> {
    let mut number = None;
    for _ in 0..digits_max {
        let Some(digit) = characters.next_if(char::is_ascii_hexdigit).and_then(|digit| digit.to_digit(16)) else {
            break;
        };
        number = Some(number.unwrap_or(0) << 4 | digit);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        for (line, expected) in [
            ("curl  -s 'a b' \"c \\\" \\n\" d\\ e \\\n f''", &["curl", "-s", "a b", "c \" \\n", "d e", "f"][..]),
            (r"$'it\'s' a$'\\ \n\t\r\x41'b", &["it's", "a\\ \n\t\rAb"]),
            (r"$'\u00e4\xc3\xa4\u0041B\U0001f600' $'\xff\ud800\q'", &["ääAB😀", "\u{fffd}\u{fffd}\\q"]),
            (r#"$a '$'b "$'c'""#, &["$a", "$b", "$'c'"]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        for line in ["'a", "\"a", "$'a", r"$'a\'", r"$'a\"] {
            assert!(words(line).unwrap_err().ends_with(" has no end"), "{line}");
        }
    }
}
