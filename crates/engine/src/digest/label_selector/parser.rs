//! The grammar of label selectors.

use std::mem;

use evenkeel_api::validate::{Value, label_value, qualified_name};

use super::token::{Token, Tokens};
use super::{LabelSelectorError, Requirement, RequirementError, Test};

/// Gives one requirement after the other, and stops at the first error.
#[derive(Debug, Clone)]
pub(super) struct Parser<'t> {
    tokens: Tokens<'t>,
    /// The token that is to be looked at next.
    next: Token<'t>,
    state: State,
}

/// Where in the selector the parser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Beginning,
    AfterComma,
    Done,
}

const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";
const NO_INTEGER: &str = "for 'Gt', 'Lt' operators, the value must be an integer";

// === impl Parser ===

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut tokens = Tokens::new(text);
        let next = tokens.next();
        Self { tokens, next, state: State::Beginning }
    }

    fn advance(&mut self) -> Token<'t> {
        let next = self.tokens.next();
        mem::replace(&mut self.next, next)
    }

    /// A requirement, and the comma after it.
    fn requirement(&mut self) -> Result<Requirement<&'t str>, LabelSelectorError> {
        if !matches!(self.next, Token::Word(_)) && !self.next.is_sign("!") {
            let found = self.next.text().to_owned();
            return Err(match self.state {
                State::AfterComma => LabelSelectorError::AfterComma { found },
                State::Beginning | State::Done => LabelSelectorError::Beginning { found },
            });
        }
        let key_and_test = self.key_and_test()?;
        self.state = match self.advance() {
            Token::End => State::Done,
            Token::Sign(",") => State::AfterComma,
            other => return Err(LabelSelectorError::AfterRequirement { found: other.text().to_owned() }),
        };
        Ok(key_and_test)
    }

    fn key_and_test(&mut self) -> Result<Requirement<&'t str>, RequirementError> {
        let is_negated = self.next.is_sign("!");
        if is_negated {
            self.advance();
        }
        let key = self.word()?;
        check_key(key)?;
        let test = if is_negated {
            Test::Missing
        } else if self.next.ends_requirement() {
            Test::Exists
        } else {
            self.operator_and_values(key)?
        };
        Ok(Requirement { key, test })
    }

    fn operator_and_values(&mut self, key: &'t str) -> Result<Test<&'t str>, RequirementError> {
        let operator = self.advance();
        match operator {
            Token::Sign("=" | "==") => Ok(Test::Is(self.checked_value(key)?)),
            Token::Sign("!=") => Ok(Test::IsNot(self.checked_value(key)?)),
            Token::Sign(">") => Ok(Test::Above(self.integer(key)?)),
            Token::Sign("<") => Ok(Test::Below(self.integer(key)?)),
            Token::Word("in") => Ok(Test::In(self.checked_values(key)?)),
            Token::Word("notin") => Ok(Test::NotIn(self.checked_values(key)?)),
            other => Err(expected(other, BINARY_OPERATORS)),
        }
    }

    /// A value; nothing stands for the empty one.
    fn value(&mut self) -> Result<&'t str, RequirementError> {
        if self.next.ends_requirement() { Ok("") } else { self.word() }
    }

    fn checked_value(&mut self, key: &str) -> Result<&'t str, RequirementError> {
        let value = self.value()?;
        let mut faults = value_faults(key, 0, value).peekable();
        if faults.peek().is_some() { Err(all(faults)) } else { Ok(value) }
    }

    fn integer(&mut self, key: &str) -> Result<i64, RequirementError> {
        let value = self.value()?;
        let integer = value.parse::<i64>();
        let no_integer =
            integer.is_err().then(|| format!("values[0]: Invalid value: {}: {NO_INTEGER}", Value::text(value)));
        let mut faults = no_integer.into_iter().chain(value_faults(key, 0, value)).peekable();
        match integer {
            Ok(integer) if faults.peek().is_none() => Ok(integer),
            _ => Err(all(faults)),
        }
    }

    /// Values in parentheses, sorted and without repetition.
    fn checked_values(&mut self, key: &str) -> Result<Vec<&'t str>, RequirementError> {
        let opening = self.advance();
        if !opening.is_sign("(") {
            return Err(RequirementError::NoList { found: opening.text().to_owned() });
        }
        let mut values = self.values()?;
        values.sort_unstable();
        values.dedup();
        let mut faults =
            values.iter().enumerate().flat_map(|(index, value)| value_faults(key, index, value)).peekable();
        if faults.peek().is_some() {
            return Err(all(faults));
        }
        drop(faults);
        Ok(values)
    }

    /// The values after an opening parenthesis. Where one is missing it is the empty one.
    fn values(&mut self) -> Result<Vec<&'t str>, RequirementError> {
        if self.next.is_sign(")") {
            self.advance();
            return Ok(vec![""]);
        }
        if !matches!(self.next, Token::Word(_) | Token::Sign(",")) {
            return Err(expected(self.next, "',', ')' or identifier"));
        }
        let mut values = Vec::new();
        loop {
            match self.advance() {
                Token::Word(value) => {
                    values.push(value);
                    match self.next {
                        Token::Sign(",") => {}
                        Token::Sign(")") => break,
                        other => return Err(expected(other, "',' or ')'")),
                    }
                }
                Token::Sign(",") => {
                    if values.is_empty() {
                        values.push("");
                    }
                    if self.next.is_sign(")") {
                        values.push("");
                        break;
                    }
                    // The second of two commas is used up here, so that a third one is not taken for its pair.
                    if self.next.is_sign(",") {
                        self.advance();
                        values.push("");
                    }
                }
                other => return Err(expected(other, "',', or identifier")),
            }
        }
        self.advance();
        Ok(values)
    }

    fn word(&mut self) -> Result<&'t str, RequirementError> {
        match self.advance() {
            Token::Word(word) => Ok(word),
            other => Err(expected(other, "identifier")),
        }
    }
}

impl<'t> Iterator for Parser<'t> {
    type Item = Result<Requirement<&'t str>, LabelSelectorError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done || (self.state == State::Beginning && self.next == Token::End) {
            return None;
        }
        let requirement = self.requirement();
        if requirement.is_err() {
            self.state = State::Done;
        }
        Some(requirement)
    }
}

fn expected(found: Token<'_>, expected: &'static str) -> RequirementError {
    RequirementError::Expected { found: found.text().to_owned(), expected }
}

fn check_key(key: &str) -> Result<(), RequirementError> {
    let mut faults = qualified_name(key).peekable();
    if faults.peek().is_none() {
        return Ok(());
    }
    let fault = faults.collect::<Vec<_>>().join("; ");
    Err(RequirementError::Key { key: Value::text(key).to_string(), fault })
}

/// The message on a value that is no label value, if it is none.
fn value_faults(key: &str, index: usize, value: &str) -> impl Iterator<Item = String> {
    let mut faults = label_value(value).peekable();
    let message = faults.peek().is_some().then(|| {
        let fault = faults.collect::<Vec<_>>().join("; ");
        format!("values[{index}][{key}]: Invalid value: {}: {fault}", Value::text(value))
    });
    message.into_iter()
}

/// One message as it is, several of them in brackets.
fn all(faults: impl Iterator<Item = String>) -> RequirementError {
    let faults: Vec<String> = faults.collect();
    RequirementError::Values(match faults.as_slice() {
        [fault] => fault.clone(),
        several => format!("[{}]", several.join(", ")),
    })
}
