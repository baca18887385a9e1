//! Faults in label selectors, as the parser finds them, before they are put into words.
//!
//! Whether a selector is malformed is asked for every list and watch, and what is wrong with it hardly ever: so the
//! parser only points at it, and the words, which may be many times as long as the selector, are made on demand.

use evenkeel_api::validate::{Value, label_value, qualified_name};

use super::token::Token;
use super::{LabelSelectorError, RequirementError, sorted};

/// A fault in a selector.
#[derive(Debug)]
pub(super) enum Fault<'t> {
    /// See [`LabelSelectorError::Beginning`].
    Beginning(Token<'t>),
    /// See [`LabelSelectorError::AfterComma`].
    AfterComma(Token<'t>),
    /// See [`LabelSelectorError::AfterRequirement`].
    AfterRequirement(Token<'t>),
    /// See [`RequirementError::Expected`].
    Expected(Token<'t>, &'static str),
    /// See [`RequirementError::NoList`].
    NoList(Token<'t>),
    /// The key is no qualified name.
    Key(&'t str),
    /// The value for a key is no label value.
    Value(&'t str, &'t str),
    /// The value for a key is no integer or no label value.
    Integer(&'t str, &'t str),
    /// Some of the values for a key are no label values.
    Values(&'t str, Vec<&'t str>),
}

const NO_INTEGER: &str = "for 'Gt', 'Lt' operators, the value must be an integer";

// === impl Fault ===

impl From<Fault<'_>> for LabelSelectorError {
    fn from(fault: Fault<'_>) -> Self {
        let text = |token: Token<'_>| token.text().to_owned();
        Self::Requirement(match fault {
            Fault::Beginning(found) => return Self::Beginning { found: text(found) },
            Fault::AfterComma(found) => return Self::AfterComma { found: text(found) },
            Fault::AfterRequirement(found) => return Self::AfterRequirement { found: text(found) },
            Fault::Expected(found, expected) => RequirementError::Expected { found: text(found), expected },
            Fault::NoList(found) => RequirementError::NoList { found: text(found) },
            Fault::Key(key) => {
                RequirementError::Key { key: Value::text(key).to_string(), fault: joined(qualified_name(key)) }
            }
            Fault::Value(key, value) => all(on_value(key, 0, value)),
            Fault::Integer(key, value) => {
                let no_integer = value.parse::<i64>().is_err();
                let on_integer =
                    no_integer.then(|| format!("values[0]: Invalid value: {}: {NO_INTEGER}", Value::text(value)));
                all(on_integer.into_iter().chain(on_value(key, 0, value)))
            }
            Fault::Values(key, values) => {
                all(sorted(values).iter().enumerate().flat_map(|(index, value)| on_value(key, index, value)))
            }
        })
    }
}

/// The message on a value that is no label value, if it is none.
fn on_value(key: &str, index: usize, value: &str) -> impl Iterator<Item = String> {
    let fault = joined(label_value(value));
    let message = || format!("values[{index}][{key}]: Invalid value: {}: {fault}", Value::text(value));
    (!fault.is_empty()).then(message).into_iter()
}

fn joined<'m>(messages: impl Iterator<Item = &'m str>) -> String {
    messages.collect::<Vec<_>>().join("; ")
}

/// One message as it is, several of them in brackets.
fn all(messages: impl Iterator<Item = String>) -> RequirementError {
    let messages: Vec<String> = messages.collect();
    RequirementError::Values(match messages.as_slice() {
        [message] => message.clone(),
        several => format!("[{}]", several.join(", ")),
    })
}
