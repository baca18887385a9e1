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
#[non_exhaustive]
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
#[non_exhaustive]
pub enum FieldOperator {
    /// `=` or `==`.
    Equal,
    /// `!=`.
    NotEqual,
}

/// Why a field selector is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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

/// A fault of a term. It is borrowed, since of many faults only one is reported.
#[derive(Debug, Clone, Copy)]
enum Fault<'t> {
    NoOperator,
    Unescaped(char),
    /// The backslash, and what follows it.
    Escape(&'t str),
}

const OPERATORS: [(&str, FieldOperator); 3] =
    [("!=", FieldOperator::NotEqual), ("==", FieldOperator::Equal), ("=", FieldOperator::Equal)];

// === impl FieldSelector ===

impl<'t> FieldSelector<'t> {
    /// Checks every term. Of several faults, the one of the term that sorts first is reported.
    pub fn parse(text: &'t str) -> Result<Self, FieldSelectorError> {
        let faults = split(text).filter_map(|term| Some((term, cut(term).err()?)));
        match faults.min_by_key(|(term, _)| *term) {
            Some((term, fault)) => Err(fault.into_error(text, term)),
            None => Ok(Self(text)),
        }
    }

    /// The selector, if it is well-formed. Unlike [`parse`](Self::parse) this stops at the first fault, whichever it
    /// is, and never allocates.
    pub fn well_formed(text: &'t str) -> Option<Self> {
        split(text).all(|term| cut(term).is_ok()).then_some(Self(text))
    }

    /// The terms, in the order in which they were written.
    pub fn terms(self) -> impl Iterator<Item = FieldTerm<'t>> {
        split(self.0).filter_map(|term| cut(term).ok()).map(|(key, operator, value)| FieldTerm {
            key,
            operator,
            value: unescape(value),
        })
    }

    /// The value that the field has to have, if there is one. Of several, that of the term which sorts first.
    pub fn exact_value(self, key: &str) -> Option<Cow<'t, str>> {
        let exact = |term| match cut(term) {
            Ok((found, FieldOperator::Equal, value)) if found == key => Some((term, value)),
            _ => None,
        };
        split(self.0).filter_map(exact).min_by_key(|(term, _)| *term).map(|(_, value)| unescape(value))
    }
}

// === impl Fault ===

impl Fault<'_> {
    fn into_error(self, selector: &str, term: &str) -> FieldSelectorError {
        match self {
            Self::NoOperator => FieldSelectorError::NoOperator { selector: selector.to_owned(), term: term.to_owned() },
            Self::Unescaped(character) => FieldSelectorError::Unescaped(character),
            Self::Escape(sequence) => FieldSelectorError::Escape(sequence.to_owned()),
        }
    }
}

/// Cuts a term into its key, its operator and its value, which still has its escapes.
fn cut(term: &str) -> Result<(&str, FieldOperator, &str), Fault<'_>> {
    let found = term.char_indices().find_map(|(position, _)| {
        let (key, rest) = term.split_at(position);
        OPERATORS.iter().find_map(|&(sign, operator)| Some((key, operator, rest.strip_prefix(sign)?)))
    });
    let (key, operator, value) = found.ok_or(Fault::NoOperator)?;
    check_value(value)?;
    Ok((key, operator, value))
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

/// Checks that everything which needs a backslash has one, and nothing else.
fn check_value(value: &str) -> Result<(), Fault<'_>> {
    let mut characters = value.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some((_, '\\' | ',' | '=')) => {}
                _ => return Err(Fault::Escape(&value[position..characters.offset()])),
            },
            ',' | '=' => return Err(Fault::Unescaped(character)),
            _ => {}
        }
    }
    Ok(())
}

/// A value that was [checked](check_value), without its backslashes.
fn unescape(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    Cow::Owned(plain)
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
            assert_eq!(FieldSelector::well_formed(text), None);
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
