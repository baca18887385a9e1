//! Which metrics and labels an expression of `PromQL` uses.

use std::collections::BTreeSet;

/// What an expression uses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// Each metric with the labels that it is selected by.
    pub(super) selectors: Vec<(String, BTreeSet<String>)>,
    /// The labels by which it groups and joins.
    pub(super) groupings: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Sign(char),
}

const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OTHER_WORDS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

// === impl Used ===

impl Used {
    /// What this expression uses. It must be one that Prometheus accepts.
    pub(super) fn of(expression: &str) -> Self {
        let tokens = tokens(expression);
        let mut used = Self::default();
        let mut rest = &*tokens;
        while let [first, after @ ..] = rest {
            rest = after;
            let Token::Word(word) = *first else { continue };
            let next = after.first().copied();
            if GROUPING.contains(&word) {
                let list = after.iter().take_while(|token| **token != Token::Sign(')'));
                used.groupings.extend(list.clone().filter_map(Token::word));
                rest = &after[list.count()..];
            } else if next == Some(Token::Sign('{')) {
                let matchers = after.iter().take_while(|token| **token != Token::Sign('}'));
                let labels = matchers.clone().filter_map(Token::word).collect();
                used.selectors.push((word.to_owned(), labels));
                rest = &after[matchers.count()..];
            } else {
                let is_function = matches!(next, Some(Token::Sign('(') | Token::Word("by" | "without")))
                    || OTHER_WORDS.contains(&word);
                if !is_function {
                    used.selectors.push((word.to_owned(), BTreeSet::new()));
                }
            }
        }
        used
    }
}

// === impl Token ===

impl Token<'_> {
    fn word(&self) -> Option<String> {
        if let Self::Word(word) = self { Some((*word).to_owned()) } else { None }
    }
}

/// The words and signs, without texts, numbers and ranges.
fn tokens(expression: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = expression;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => 1 + rest[1..].find('"').map_or(rest.len() - 1, |end| end + 1),
            '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
            c if is_part(c) => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        if is_part(first) && !first.is_ascii_digit() {
            found.push(Token::Word(&rest[..end]));
        } else if "(){}".contains(first) {
            found.push(Token::Sign(first));
        }
        rest = &rest[end..];
    }
    found
}

#[test]
fn metrics_and_labels_of_an_expression() {
    let labels = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let used = Used::of(
        r#"histogram_quantile(0.99, sum by (job, le) (rate(a_bucket{execute="tr{ue", level=~"$x"}[5m]))) > 1e3 and on (instance) b:c or 2 * up"#,
    );
    let selectors = [("a_bucket", &["execute", "level"][..]), ("b:c", &[]), ("up", &[])];
    assert_eq!(used.selectors, selectors.map(|(name, of)| (name.to_owned(), labels(of))));
    assert_eq!(used.groupings, labels(&["instance", "job", "le"]));
}
