//! Comparing an answer with a recorded one, placeholders and all.

use std::fmt;

use serde_json::Value;

/// A difference between an answer and the recorded one.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where in the body.
    pub path: String,
    /// What was recorded.
    pub expected: String,
    /// What was answered.
    pub actual: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}:\n  recorded {}\n  actual   {}", self.path, self.expected, self.actual)
    }
}

/// Compares member by member and element by element. A text with a placeholder matches when the text around the
/// placeholders is there in that order; what stands in their place is not looked at.
pub fn compare(path: &str, expected: &Value, actual: &Value) -> Vec<Mismatch> {
    let mismatch =
        || vec![Mismatch { path: path.to_owned(), expected: expected.to_string(), actual: actual.to_string() }];
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let names = expected.keys().chain(actual.keys().filter(|name| !expected.contains_key(*name)));
            let absent = Value::String("(absent)".into());
            names
                .flat_map(|name| {
                    let (expected, actual) = (expected.get(name), actual.get(name));
                    compare(&format!("{path}.{name}"), expected.unwrap_or(&absent), actual.unwrap_or(&absent))
                })
                .collect()
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => expected
            .iter()
            .zip(actual)
            .enumerate()
            .flat_map(|(index, (expected, actual))| compare(&format!("{path}[{index}]"), expected, actual))
            .collect(),
        (Value::String(expected), Value::String(actual)) if fits(expected, actual) => Vec::new(),
        _ if expected == actual => Vec::new(),
        _ => mismatch(),
    }
}

/// Whether a text fits one with placeholders.
fn fits(expected: &str, actual: &str) -> bool {
    let Some((before, rest)) = expected.split_once("{{") else { return expected == actual };
    let (Some(actual), Some((_, after))) = (actual.strip_prefix(before), rest.split_once("}}")) else { return false };
    (0..=actual.len()).filter_map(|length| actual.get(length..)).any(|rest| fits(after, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholders_stand_for_any_text() {
        assert!(fits("a {{any}} c {{int}}", "a b c 7"));
        assert!(!fits("a {{any}} c", "a b d"));
        assert!(!fits("plain", "plainer"));
    }

    #[test]
    fn every_difference_is_found_with_its_path() {
        let found = compare("", &json!({"a": [1, {"b": "{{uid:1}}"}], "c": 2}), &json!({"a": [2, {"b": "x"}], "d": 3}));
        let paths: Vec<_> = found.iter().map(|mismatch| mismatch.path.as_str()).collect();
        assert_eq!(paths, [".a[0]", ".c", ".d"]);
    }
}
