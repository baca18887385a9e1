//! A JSON value as YAML, with sorted keys (API-90).
//!
//! Texts are written plain only where no reader, of YAML 1.1 or 1.2, takes them for anything else; all others are in
//! double quotes.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Readers need not look further than 1024 characters for the end of a key; longer ones are marked.
const KEY_LENGTH_MAX: usize = 1000;

/// The value as a YAML document.
pub fn to_yaml(value: &Value) -> String {
    let mut text = String::new();
    write_block(&mut text, value, 0);
    text
}

/// A value that starts at the beginning of a line, which has been indented already.
fn write_block(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => write_members(text, members, depth),
        Value::Array(elements) if !elements.is_empty() => {
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    indent(text, depth);
                }
                text.push_str("- ");
                write_block(text, element, depth + 1);
            }
        }
        scalar => {
            write_scalar(text, scalar);
            text.push('\n');
        }
    }
}

fn write_members(text: &mut String, members: &Map<String, Value>, depth: usize) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            indent(text, depth);
        }
        if name.len() > KEY_LENGTH_MAX {
            text.push_str("? ");
            write_text(text, name);
            text.push('\n');
            indent(text, depth);
        } else {
            write_text(text, name);
        }
        text.push(':');
        write_member(text, value, depth);
    }
}

/// A value behind its key and colon.
fn write_member(text: &mut String, value: &Value, depth: usize) {
    let inner = match value {
        Value::Object(members) if !members.is_empty() => depth + 1,
        // The dashes of a list stand below its key, as kubectl writes them.
        Value::Array(elements) if !elements.is_empty() => depth,
        _ => {
            text.push(' ');
            write_scalar(text, value);
            text.push('\n');
            return;
        }
    };
    text.push('\n');
    indent(text, inner);
    write_block(text, value, inner);
}

fn write_scalar(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(string) => write_text(text, string),
        Value::Array(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
    }
}

fn write_text(text: &mut String, string: &str) {
    if is_plain(string) {
        text.push_str(string);
    } else {
        write_quoted(text, string);
    }
}

/// Whether every reader takes the bare text for this very text.
fn is_plain(string: &str) -> bool {
    let starts_plain = string.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let is_plain_character = |c: char| c.is_ascii_alphanumeric() || "_-./:, ".contains(c);
    let has_own_meaning = |word: &str| string.eq_ignore_ascii_case(word);
    starts_plain
        && string.chars().all(is_plain_character)
        && !string.ends_with([' ', ':'])
        && !string.contains(": ")
        && !["y", "yes", "n", "no", "on", "off", "true", "false", "null"].into_iter().any(has_own_meaning)
}

fn write_quoted(text: &mut String, string: &str) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if is_printable(c) => text.push(c),
            c => {
                // A String takes everything.
                let _ = match u32::from(c) {
                    code @ ..=0xff => write!(text, "\\x{code:02x}"),
                    code @ ..=0xffff => write!(text, "\\u{code:04x}"),
                    code => write!(text, "\\U{code:08x}"),
                };
            }
        }
    }
    text.push('"');
}

/// Whether every reader accepts the character as it is, and takes it for no line break.
fn is_printable(c: char) -> bool {
    matches!(c,
        ' '..='~'
        | '\u{a0}'..='\u{2027}'
        | '\u{202a}'..='\u{d7ff}'
        | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}'
        | '\u{10000}'..='\u{1fffd}')
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{any_json, read_yaml};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn api_90_keys_are_sorted_and_lists_stand_below_their_key() {
        let value = json!({
            "status": {}, "kind": "FlowSchema", "spec": {"rules": [{"b": [1, 2], "a": "x"}, {"c": null}], "none": []},
        });
        let expected = "kind: FlowSchema\nspec:\n  none: []\n  rules:\n  - a: x\n    b:\n    - 1\n    - 2\n  - c: null\n\
                        status: {}\n";
        assert_eq!(to_yaml(&value), expected);
    }

    #[test]
    fn texts_that_look_like_something_else_are_quoted() {
        for text in [
            "",
            " ",
            "true",
            "No",
            "y",
            "null",
            "~",
            "1",
            "0x1f",
            "1e3",
            ".5",
            "1:30",
            "2024-01-02T03:04:05Z",
            "-",
            "- a",
            "a: b",
            "a:",
            "a #b",
            "#",
            "*",
            "&a",
            "!x",
            "|",
            ">",
            "'",
            "\"",
            "%",
            "@",
            "`",
            "[a]",
            "{}",
            "a ",
            "two\nlines\n",
            "\u{85}\u{2028}\u{feff}\u{7f}\u{0}",
            "\u{10ffff}",
            "=",
            "<<",
            "?",
            "---",
            "...",
        ] {
            assert!(!is_plain(text), "{text:?}");
            assert_eq!(read_yaml(&to_yaml(&json!({ "a": text }))), json!({ "a": text }), "{text:?}");
        }
        for text in ["system:masters", "flowcontrol.apiserver.k8s.io/v1", "workload-low", "/healthz", "not found, yet"]
        {
            assert_eq!(to_yaml(&json!(text)), format!("{text}\n"));
        }
    }

    #[test]
    fn long_keys_are_marked() {
        let value = json!({ "k".repeat(5000): { "\n".repeat(2000): [{"a": 1}] } });
        assert_eq!(read_yaml(&to_yaml(&value)), value);
    }

    proptest! {
        #[test]
        fn api_90_what_is_written_is_read_yaml(value in any_json()) {
            // A document that is null is no document.
            let value = json!({ "value": value });
            prop_assert_eq!(read_yaml(&to_yaml(&value)), value);
        }
    }
}
