//! Characters that a reader of a log, a report or a terminal does not see, or that change what the reader sees: one rule for all of
//! them. Names of users, flows and paths come from clients, who must not be able to forge or reorder what people read.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character is shown as it is: no control character, no mark that is invisible or changes the direction of text, no
/// separator of lines.
///
/// ```
/// use evenkeel_gateway::observe::visible::is_visible;
///
/// assert!("système:日本-7".chars().all(is_visible));
/// assert!(!is_visible('\u{202e}') && !is_visible('\u{200b}') && !is_visible('\n'));
/// ```
pub fn is_visible(character: char) -> bool {
    // Nearly all text is ASCII.
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    let is_hidden = matches!(character,
        // Soft hyphen, and letters without a shape.
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
        // Marks of direction, embeddings, overrides and isolates.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Characters without any shape: joiners, spaces without width, invisible operators, and deprecated marks of formatting.
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
        // Separators of lines and paragraphs, annotations, and tags.
        | '\u{2028}' | '\u{2029}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    !character.is_control() && !is_hidden
}

/// The text with an escape (`\u{202e}`) in place of each character that is not visible.
///
/// ```
/// use evenkeel_gateway::observe::visible::visible;
///
/// assert_eq!(visible("alice"), "alice");
/// assert_eq!(visible("gro\u{202e}.eliv"), r"gro\u{202e}.eliv");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    with_escapes(text, |escaped, character| {
        // Writing to a string does not fail.
        let _ = write!(escaped, "\\u{{{:x}}}", u32::from(character));
    })
}

/// JSON with escapes for such characters in its strings. It means the same to programs. Line breaks between members stay.
///
/// ```
/// use evenkeel_gateway::observe::visible::visible_json;
///
/// assert_eq!(visible_json("{\n\"a\": \"\u{202e}\u{e0041}\"}"), "{\n\"a\": \"\\u202e\\udb40\\udc41\"}");
/// ```
pub fn visible_json(json: &str) -> Cow<'_, str> {
    with_escapes(json, |escaped, character| match character {
        '\n' => escaped.push('\n'),
        _ => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    })
}

fn with_escapes(text: &str, put: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if text.chars().all(is_visible) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 32);
    for character in text.chars() {
        if is_visible(character) {
            escaped.push(character);
        } else {
            put(&mut escaped, character);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a class of a regular expression in JavaScript has between its brackets: characters as `\uXXXX` or `\u{XXXXX}`, and
    /// ranges of them.
    fn characters(class: &str) -> impl Fn(char) -> bool {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for part in class.split("\\u").skip(1) {
            let (digits, is_range) = part.strip_suffix('-').map_or((part, false), |digits| (digits, true));
            let number = u32::from_str_radix(digits.trim_matches(['{', '}']), 16).unwrap();
            match ranges.last_mut() {
                // The end of a range is known when its last character is.
                Some((_, end)) if *end == u32::MAX => *end = number,
                _ => ranges.push((number, if is_range { u32::MAX } else { number })),
            }
        }
        move |character| ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(character)))
    }

    #[test]
    fn the_dashboard_has_the_same_rule() {
        let script = include_str!("dashboard/page/dashboard.js");
        let (_, rest) = script.split_once("const HIDDEN = /[").unwrap();
        let (class, _) = rest.split_once("]/gu;").unwrap();
        let is_hidden = characters(class);
        let differing: Vec<char> = ('\0'..=char::MAX).filter(|one| is_hidden(*one) == is_visible(*one)).collect();
        assert!(differing.is_empty(), "{differing:?}");
    }
}
