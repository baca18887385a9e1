//! Warnings that go along with a response (API-95 to API-97).

use std::collections::HashSet;

use http::HeaderValue;

/// How many characters all warnings of a response may have together, so that they fit into what clients read.
const CHARACTERS_MAX: usize = 4096;
/// How many characters of each warning are kept once they do not fit.
const CHARACTERS_OF_EACH_MAX: usize = 256;

/// The values of the header fields `Warning`, one for each text, in their order. Repeated texts are sent once. When they
/// are too many, long ones are cut short, and the last ones left out.
pub(crate) fn warnings<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<HeaderValue> {
    let mut seen = HashSet::new();
    let texts: Vec<_> = texts.into_iter().filter(|text| !text.is_empty() && seen.insert(*text)).collect();
    let fits = texts.iter().map(|text| text.chars().count()).sum::<usize>() <= CHARACTERS_MAX;
    let of_each_max = if fits { CHARACTERS_MAX } else { CHARACTERS_OF_EACH_MAX };
    let mut left = CHARACTERS_MAX;
    let mut values = Vec::new();
    for text in texts {
        let length = text.chars().take(of_each_max).count();
        let Some(rest) = left.checked_sub(length) else { break };
        left = rest;
        values.extend(header_value(text.chars().take(length)));
    }
    values
}

fn header_value(text: impl Iterator<Item = char>) -> Option<HeaderValue> {
    let mut value = String::from("299 - \"");
    for c in text {
        match c {
            '"' | '\\' => value.extend(['\\', c]),
            // A header field is one line of visible characters.
            c if c.is_control() => value.push(' '),
            c => value.push(c),
        }
    }
    value.push('"');
    HeaderValue::from_bytes(value.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(values: &[HeaderValue]) -> Vec<&str> {
        values.iter().map(|value| std::str::from_utf8(value.as_bytes()).unwrap()).collect()
    }

    #[test]
    fn api_95_quotes_and_backslashes_are_escaped() {
        let values = warnings([r#"unknown field "spec.a\b""#, "two\r\nlines", "é"]);
        let expected = [r#"299 - "unknown field \"spec.a\\b\"""#, r#"299 - "two  lines""#, r#"299 - "é""#];
        assert_eq!(texts(&values), expected);
    }

    #[test]
    fn the_same_warning_is_given_once() {
        assert_eq!(warnings(["a", "b", "a", ""]).len(), 2);
    }

    #[test]
    fn too_many_warnings_are_cut_short() {
        let long: Vec<_> = (0..1000).map(|number| format!("{number:04}{}", "x".repeat(1000))).collect();
        let values = warnings(long.iter().map(String::as_str));
        assert_eq!(values.len(), CHARACTERS_MAX / CHARACTERS_OF_EACH_MAX);
        assert!(values.iter().all(|value| value.len() == CHARACTERS_OF_EACH_MAX + "299 - \"\"".len()));
        assert_eq!(warnings([long[0].as_str()])[0].len(), 1004 + "299 - \"\"".len(), "one fits as it is");
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_header_value(text in any::<String>()) {
            prop_assert_eq!(warnings([text.as_str()]).len(), usize::from(!text.is_empty()));
        }
    }
}
