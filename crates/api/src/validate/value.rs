//! Values as messages show them, the way clients know it from the reference server.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use super::{EmptyRules, internal};
use crate::schema::Described;

/// A value as a message shows it.
///
/// Plain texts are shown as the Go language quotes them, everything else as Go writes JSON; the two differ in how
/// unusual characters are escaped.
///
/// ```
/// use evenkeel_api::validate::Value;
///
/// assert_eq!(Value::text("a\u{7}<b>").to_string(), r#""a\a<b>""#);
/// assert_eq!(Value::json(&["a\u{7}<b>"]).to_string(), r#"["a\u0007\u003cb\u003e"]"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value(String);

// === impl Value ===

impl Value {
    /// A plain text.
    pub fn text(text: &str) -> Self {
        let mut quoted = String::with_capacity(text.len() + 2);
        quoted.push('"');
        for c in text.chars() {
            match escaped(c) {
                Some(escaped) => quoted.push_str(&escaped),
                None => quoted.push(c),
            }
        }
        quoted.push('"');
        Self(quoted)
    }

    /// A number, a list, an object of `metadata`, or a text of few values.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Self {
        Self(json(value))
    }

    /// A part of a specification, under the names that it has inside the reference server (API-52).
    pub(super) fn internal<T: Serialize + Described>(value: &T, empty_rules: EmptyRules) -> Self {
        Self(internal::json(value, empty_rules))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value as Go writes JSON, where a text can stand in a web page without being taken for a part of it.
pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    // Writing one of our types to memory cannot fail.
    let plain = serde_json::to_string(value).unwrap_or_default();
    let mut escaped = String::with_capacity(plain.len());
    for c in plain.chars() {
        // Outside of texts JSON has none of these.
        match c {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// How Go quotes a character that does not stand for itself.
fn escaped(c: char) -> Option<Cow<'static, str>> {
    let escaped = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ if is_printable(c) => return None,
        _ => {
            return Some(match u32::from(c) {
                code @ ..0x80 => format!("\\x{code:02x}").into(),
                code @ ..0x1_0000 => format!("\\u{code:04x}").into(),
                code => format!("\\U{code:08x}").into(),
            });
        }
    };
    Some(escaped.into())
}

fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    // Alone, a combining mark would count as something to escape; after a letter it does not.
    String::from_iter(['a', c]).escape_debug().nth(1) == Some(c)
}
