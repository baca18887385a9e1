//! Label selectors: `app=web,tier in (a,b),!canary` (DG-18, API-146, API-147).

mod error;
mod fault;
mod parser;
mod token;

use std::collections::BTreeMap;

pub use error::{LabelSelectorError, RequirementError};

use fault::Fault;
use parser::Parser;

/// A label selector: requirements, all of which have to hold. Without any it selects everything.
///
/// ```
/// use std::collections::BTreeMap;
/// use evenkeel_engine::digest::LabelSelector;
///
/// let selector = LabelSelector::parse("app=web, tier in (a,b), !canary").unwrap();
/// let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
///     pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
/// };
/// assert!(selector.matches(&labels(&[("app", "web"), ("tier", "a")])));
/// assert!(!selector.matches(&labels(&[("app", "web"), ("tier", "a"), ("canary", "")])));
///
/// let error = LabelSelector::parse("app=web tier").unwrap_err();
/// assert_eq!(error.to_string(), "found 'tier', expected: ',' or 'end of string'");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement<Box<str>>>,
}

/// One requirement. Its texts are borrowed while they are only looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement<T> {
    key: T,
    test: Test<T>,
}

/// What a label has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test<T> {
    Exists,
    Missing,
    Is(T),
    IsNot(T),
    In(Vec<T>),
    NotIn(Vec<T>),
    Above(i64),
    Below(i64),
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Parses a selector; an empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let requirements = Parser::new(text).map(|requirement| requirement.map(Requirement::into_owned));
        Ok(Self { requirements: requirements.collect::<Result<_, Fault<'_>>>()? })
    }

    /// Whether the text is a selector, without making one or saying what is wrong with it: this takes time in
    /// proportion to the text, and allocates for lists of values only.
    pub fn is_valid(text: &str) -> bool {
        Parser::new(text).all(|requirement| requirement.is_ok())
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether these labels fulfil all requirements.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| {
            let label = labels.get(&*requirement.key).map(String::as_str);
            requirement.test.holds(label)
        })
    }
}

// === impl Requirement ===

impl Requirement<&str> {
    fn into_owned(self) -> Requirement<Box<str>> {
        let own = |values: Vec<&str>| sorted(values).into_iter().map(Box::from).collect();
        let test = match self.test {
            Test::Exists => Test::Exists,
            Test::Missing => Test::Missing,
            Test::Is(value) => Test::Is(value.into()),
            Test::IsNot(value) => Test::IsNot(value.into()),
            Test::In(values) => Test::In(own(values)),
            Test::NotIn(values) => Test::NotIn(own(values)),
            Test::Above(bound) => Test::Above(bound),
            Test::Below(bound) => Test::Below(bound),
        };
        Requirement { key: self.key.into(), test }
    }
}

/// Values in order and without repetition.
fn sorted(mut values: Vec<&str>) -> Vec<&str> {
    values.sort_unstable();
    values.dedup();
    values
}

// === impl Test ===

impl Test<Box<str>> {
    fn holds(&self, label: Option<&str>) -> bool {
        let is_among = |values: &[Box<str>]| label.is_some_and(|label| values.iter().any(|value| **value == *label));
        let number = || label.and_then(|label| label.parse::<i64>().ok());
        match self {
            Test::Exists => label.is_some(),
            Test::Missing => label.is_none(),
            Test::Is(value) => label == Some(value),
            Test::IsNot(value) => label != Some(value),
            Test::In(values) => is_among(values),
            Test::NotIn(values) => !is_among(values),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_146_what_requirements_select() {
        let labels: BTreeMap<String, String> =
            [("env", "prod"), ("n", "5"), ("empty", "")].map(|(key, value)| (key.into(), value.into())).into();
        for (text, selected) in [
            ("", true),
            ("env=prod", true),
            ("env == prod", true),
            ("env=test", false),
            ("env!=prod", false),
            ("env!=test", true),
            ("other!=test", true),
            ("env in (test, prod)", true),
            ("env notin (test,prod)", false),
            ("other notin (test)", true),
            ("other in (test)", false),
            ("env", true),
            ("!env", false),
            ("!other", true),
            ("n>4", true),
            ("n > 5", false),
            ("n<6", true),
            ("env>1", false),
            ("other<1", false),
            ("empty=", true),
            ("env=,n", false),
            ("empty in (prod,)", true),
            ("empty in ()", true),
            ("empty in (,prod)", true),
            ("env in ()", false),
            ("in in (in,notin)", false),
            ("env=prod,n=5", true),
            ("env=prod,n=6", false),
            ("\tenv\r\n=\nprod ", true),
        ] {
            let selector = LabelSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(selector.matches(&labels), selected, "{text}");
            assert!(LabelSelector::is_valid(text));
        }
        assert!(LabelSelector::parse(" ").unwrap().is_empty());
    }

    #[test]
    fn api_147_texts_of_syntax_errors() {
        for (text, message) in [
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("a==b=c", "found '=', expected: ',' or 'end of string'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
            ("a===b", "unable to parse requirement: found '=', expected: identifier"),
            ("!!!", "unable to parse requirement: found '!', expected: identifier"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a notin", "unable to parse requirement: found '' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
            ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap_err().to_string(), message, "{text}");
            assert!(!LabelSelector::is_valid(text));
        }
    }

    #[test]
    fn api_147_texts_of_wrong_keys_and_values() {
        for (text, start, end) in [
            ("a/b/c", "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key", "MyName')"),
            ("-a=b", "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist", "]')"),
            ("a=-b", "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must", ")?')"),
            ("a in (z,-b)", "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid", ")?')"),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators,",
                " the value must be an integer",
            ),
            ("a>", "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt'", "be an integer"),
            ("a>-1", "unable to parse requirement: values[0][a]: Invalid value: \"-1\": a valid label", ")?')"),
            ("a>-b", "unable to parse requirement: [values[0]: Invalid value: \"-b\": for 'Gt'", ")?')]"),
        ] {
            let message = LabelSelector::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(start) && message.ends_with(end), "{text}: {message}");
        }
    }
}
