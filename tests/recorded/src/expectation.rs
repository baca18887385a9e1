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

/// What is made of members that were answered but not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extra {
    Refused,
    Allowed,
}

/// Compares member by member and element by element. A text with a placeholder matches when the text around the
/// placeholders is there in that order; what stands in their place is not looked at.
///
/// `"{{any}}"` alone stands for any value and `"{{absent}}"` for none, `{"$contains": […]}` for a list in which each of
/// these elements is found, and `{"$unordered": […]}` for a list of these elements in any order.
pub fn compare(path: &str, expected: &Value, actual: &Value) -> Vec<Mismatch> {
    compare_values(path, expected, actual, Extra::Refused)
}

/// Compares in the same way, except that objects may have more members than were recorded.
pub fn compare_subset(path: &str, expected: &Value, actual: &Value) -> Vec<Mismatch> {
    compare_values(path, expected, actual, Extra::Allowed)
}

// === impl Mismatch ===

impl Mismatch {
    fn new(path: &str, expected: impl fmt::Display, actual: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), expected: expected.to_string(), actual: actual.to_string() }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}:\n  recorded {}\n  actual   {}", self.path, self.expected, self.actual)
    }
}

fn compare_values(path: &str, expected: &Value, actual: &Value, extra: Extra) -> Vec<Mismatch> {
    if let Some(elements) = only_member(expected, "$contains") {
        return compare_bag(path, elements, actual, extra, Extra::Allowed);
    }
    if let Some(elements) = only_member(expected, "$unordered") {
        return compare_bag(path, elements, actual, extra, Extra::Refused);
    }
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let more = actual.keys().filter(|name| extra == Extra::Refused && !expected.contains_key(*name));
            expected
                .keys()
                .chain(more)
                .flat_map(|name| {
                    compare_members(&format!("{path}.{name}"), expected.get(name), actual.get(name), extra)
                })
                .collect()
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => expected
            .iter()
            .zip(actual)
            .enumerate()
            .flat_map(|(index, (expected, actual))| {
                compare_values(&format!("{path}[{index}]"), expected, actual, extra)
            })
            .collect(),
        (Value::String(placeholder), _) if placeholder == "{{any}}" => Vec::new(),
        (Value::String(placeholder), Value::Number(_)) if placeholder == "{{int}}" => Vec::new(),
        (Value::String(expected), Value::String(actual)) if fits(expected, actual) => Vec::new(),
        _ if expected == actual => Vec::new(),
        _ => vec![Mismatch::new(path, expected, actual)],
    }
}

fn compare_members(path: &str, expected: Option<&Value>, actual: Option<&Value>, extra: Extra) -> Vec<Mismatch> {
    const ABSENT: &str = "(absent)";
    let must_be_absent = expected.is_none_or(|expected| expected == "{{absent}}");
    match (expected, actual) {
        (_, None) if must_be_absent => Vec::new(),
        (_, Some(actual)) if must_be_absent => vec![Mismatch::new(path, ABSENT, actual)],
        (Some(expected), Some(actual)) => compare_values(path, expected, actual, extra),
        (Some(expected), None) => vec![Mismatch::new(path, expected, ABSENT)],
        (None, _) => Vec::new(),
    }
}

/// Looks for each element anywhere in the list.
fn compare_bag(path: &str, wanted: &[Value], actual: &Value, extra: Extra, further: Extra) -> Vec<Mismatch> {
    let Value::Array(actual) = actual else { return vec![Mismatch::new(path, "(a list)", actual)] };
    let mut rest: Vec<&Value> = actual.iter().collect();
    let mut mismatches = Vec::new();
    for element in wanted {
        match rest.iter().position(|candidate| compare_values(path, element, candidate, extra).is_empty()) {
            Some(index) if further == Extra::Refused => drop(rest.remove(index)),
            Some(_) => {}
            None => mismatches.push(Mismatch::new(path, element, "(no such element)")),
        }
    }
    if further == Extra::Refused {
        mismatches.extend(rest.into_iter().map(|element| Mismatch::new(path, "(no such element)", element)));
    }
    mismatches
}

/// The list that an object has as its only member, of that name.
fn only_member<'a>(value: &'a Value, name: &str) -> Option<&'a [Value]> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get(name)?.as_array().map(Vec::as_slice)
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

    fn paths(mismatches: &[Mismatch]) -> Vec<&str> {
        mismatches.iter().map(|mismatch| mismatch.path.as_str()).collect()
    }

    #[test]
    fn placeholders_stand_for_any_text() {
        assert!(fits("a {{any}} c {{int}}", "a b c 7"));
        assert!(!fits("a {{any}} c", "a b d"));
        assert!(!fits("plain", "plainer"));
    }

    #[test]
    fn every_difference_is_found_with_its_path() {
        let found = compare("", &json!({"a": [1, {"b": "{{uid:1}}"}], "c": 2}), &json!({"a": [2, {"b": "x"}], "d": 3}));
        assert_eq!(paths(&found), [".a[0]", ".c", ".d"]);
    }

    #[test]
    fn whole_values() {
        let expected = json!({"a": "{{any}}", "b": "{{absent}}"});
        assert_eq!(compare("", &expected, &json!({"a": {"x": [1]}})), []);
        assert_eq!(paths(&compare("", &expected, &json!({"b": "text"}))), [".a", ".b"]);
    }

    #[test]
    fn a_subset_may_have_more_members_at_any_depth_but_not_more_elements() {
        let expected = json!({"a": [{"b": 1}]});
        assert_eq!(compare_subset("", &expected, &json!({"a": [{"b": 1, "c": 2}], "d": 3})), []);
        assert_eq!(paths(&compare("", &expected, &json!({"a": [{"b": 1, "c": 2}], "d": 3}))), [".a[0].c", ".d"]);
        assert_eq!(paths(&compare_subset("", &expected, &json!({"a": [{"b": 1}, 2]}))), [".a"]);
        assert_eq!(paths(&compare_subset("", &expected, &json!({"a": [{"c": 1}]}))), [".a[0].b"]);
    }

    #[test]
    fn some_elements_of_a_list() {
        let expected = json!({"$contains": [{"name": "a"}, {"name": "b"}]});
        let actual = json!([{"name": "c"}, {"name": "b", "in": "query"}, {"name": "a"}]);
        assert_eq!(compare_subset("", &expected, &actual), []);
        let found = compare("", &expected, &actual);
        assert_eq!(found.len(), 1, "an exact comparison is exact about the elements");
        assert_eq!(found[0].expected, r#"{"name":"b"}"#);
        assert_eq!(compare_subset("", &expected, &json!({})).len(), 1);
    }

    #[test]
    fn all_elements_of_a_list_in_any_order() {
        let expected = json!({"$unordered": [1, 2, 2]});
        assert_eq!(compare("", &expected, &json!([2, 1, 2])), []);
        assert_eq!(compare("", &expected, &json!([2, 1, 1])).len(), 2, "a 2 is missing and a 1 too many");
    }
}
