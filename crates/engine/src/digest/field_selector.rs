//! Field selectors: `metadata.name=web-1,spec.nodeName!=n1` (DG-20, API-148).

use std::borrow::Cow;
use std::iter;

/// A field selector that is known to be well-formed.
///
/// ```
/// use evenkeel_engine::digest::FieldSelector;
///
/// let selector = FieldSelector::parse("metadata.name=b,metadata.name=a,spec.nodeName!=n1").unwrap();
/// assert_eq!(selector.exact_value("metadata.name").as_deref(), Some("a"), "the first in sorted order");
/// assert_eq!(selector.exact_value("spec.nodeName"), None);
/// assert_eq!(FieldSelector::parse("web").unwrap_err().to_string(), "invalid selector: 'web'; can't understand 'web'");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldSelector<'t>(&'t str);

/// One term of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTerm<'t> {
    /// The field, such as `metadata.name`.
    pub key: &'t str,
    /// How the field is compared.
    pub operator: FieldOperator,
    /// The value, without its escapes.
    pub value: Cow<'t, str>,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equal,
    /// `!=`.
    NotEqual,
}

/// Why a field selector is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NoOperator {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A value has a character that needs a backslash before it.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
    /// A value has a backslash before something else than `\`, `,` or `=`.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
}

const OPERATORS: [(&str, FieldOperator); 3] =
    [("!=", FieldOperator::NotEqual), ("==", FieldOperator::Equal), ("=", FieldOperator::Equal)];

// === impl FieldSelector ===

impl<'t> FieldSelector<'t> {
    /// Checks every term. Of several faults, the one of the term that sorts first is reported.
    pub fn parse(text: &'t str) -> Result<Self, FieldSelectorError> {
        let faults = split(text).filter_map(|term| Some((term, FieldTerm::parse(text, term).err()?)));
        match faults.min_by_key(|(term, _)| *term) {
            Some((_, error)) => Err(error),
            None => Ok(Self(text)),
        }
    }

    /// The terms, in the order in which they were written.
    pub fn terms(self) -> impl Iterator<Item = FieldTerm<'t>> {
        split(self.0).filter_map(move |term| FieldTerm::parse(self.0, term).ok())
    }

    /// The value that the field has to have, if there is one. Of several, that of the term which sorts first.
    pub fn exact_value(self, key: &str) -> Option<Cow<'t, str>> {
        let is_exact = |term: &FieldTerm<'_>| term.key == key && term.operator == FieldOperator::Equal;
        split(self.0)
            .filter_map(|text| Some((text, FieldTerm::parse(self.0, text).ok().filter(is_exact)?)))
            .min_by_key(|(text, _)| *text)
            .map(|(_, term)| term.value)
    }
}

// === impl FieldTerm ===

impl<'t> FieldTerm<'t> {
    fn parse(selector: &str, term: &'t str) -> Result<Self, FieldSelectorError> {
        let found = term.char_indices().find_map(|(position, _)| {
            let (key, rest) = term.split_at(position);
            OPERATORS.iter().find_map(|&(sign, operator)| Some((key, operator, rest.strip_prefix(sign)?)))
        });
        let Some((key, operator, value)) = found else {
            return Err(FieldSelectorError::NoOperator { selector: selector.to_owned(), term: term.to_owned() });
        };
        Ok(Self { key, operator, value: unescape(value)? })
    }
}

/// The terms between commas that no backslash precedes, without empty ones.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    iter::from_fn(move || {
        let text = rest?;
        let mut escaped = false;
        let comma = text.bytes().position(|byte| {
            let is_end = byte == b',' && !escaped;
            escaped = byte == b'\\' && !escaped;
            is_end
        });
        let (term, after) = match comma {
            Some(position) => (&text[..position], Some(&text[position + 1..])),
            None => (text, None),
        };
        rest = after;
        Some(term)
    })
    .filter(|term| !term.is_empty())
}

fn unescape(value: &str) -> Result<Cow<'_, str>, FieldSelectorError> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(Cow::Borrowed(value));
    }
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => return Err(FieldSelectorError::Escape(iter::once('\\').chain(other).collect())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(character)),
            _ => plain.push(character),
        }
    }
    Ok(Cow::Owned(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        let selector = FieldSelector::parse(text).unwrap();
        selector.terms().map(|term| format!("{}|{:?}|{}", term.key, term.operator, term.value)).collect()
    }

    #[test]
    fn dg_20_terms() {
        assert_eq!(written("a=1,,b==2,c!=3,d="), ["a|Equal|1", "b|Equal|2", "c|NotEqual|3", "d|Equal|"]);
        assert_eq!(written(r"a=x\,y\=z\\"), [r"a|Equal|x,y=z\"]);
        assert_eq!(written(r"a\b=1"), [r"a\b|Equal|1"], "keys have no escapes");
        assert_eq!(written("=1"), ["|Equal|1"]);
        assert_eq!(written("a!b!=1"), ["a!b|NotEqual|1"]);
        assert!(written("").is_empty());
        assert!(written(",,").is_empty());
    }

    #[test]
    fn dg_20_faults_and_api_148_texts() {
        for (text, message) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("z,b=1,a", "invalid selector: 'z,b=1,a'; can't understand 'a'"),
            ("a===1", "invalid field selector: unescaped character in value: 61"),
            ("a=1=2", "invalid field selector: unescaped character in value: 61"),
            (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"a=\", r"invalid field selector: invalid escape sequence: \"),
            (r"a\,b", r"invalid selector: 'a\,b'; can't understand 'a\,b'"),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn dg_20_the_first_exact_term_in_sorted_order_counts() {
        let exact = |text| FieldSelector::parse(text).unwrap().exact_value("a");
        assert_eq!(exact("a=2,a=1").as_deref(), Some("1"));
        assert_eq!(exact("a=0,a==9").as_deref(), Some("0"), "`0` sorts before `=`");
        assert_eq!(exact("a=z,a==9").as_deref(), Some("9"), "`=` sorts before `z`");
        assert_eq!(exact("a!=0,a=9").as_deref(), Some("9"));
        assert_eq!(exact("ab=1"), None);
    }
}
