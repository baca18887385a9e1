//! The grammar of label selectors.

use std::mem;

use evenkeel_api::validate::{label_value, qualified_name};

use super::fault::Fault;
use super::token::{Token, Tokens};
use super::{Requirement, Test};

/// Gives one requirement after the other, and stops at the first fault.
#[derive(Debug, Clone)]
pub(super) struct Parser<'t> {
    tokens: Tokens<'t>,
    /// The token that is to be looked at next.
    next: Token<'t>,
    state: ParserState,
}

/// Where in the selector the parser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    Beginning,
    AfterComma,
    Done,
}

const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

// === impl Parser ===

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut tokens = Tokens::new(text);
        let next = tokens.next();
        Self { tokens, next, state: ParserState::Beginning }
    }

    fn advance(&mut self) -> Token<'t> {
        let next = self.tokens.next();
        mem::replace(&mut self.next, next)
    }

    /// A requirement, and the comma after it.
    fn requirement(&mut self) -> Result<Requirement<&'t str>, Fault<'t>> {
        if !matches!(self.next, Token::Word(_)) && !self.next.is_sign("!") {
            return Err(match self.state {
                ParserState::AfterComma => Fault::AfterComma(self.next),
                ParserState::Beginning | ParserState::Done => Fault::Beginning(self.next),
            });
        }
        let key_and_test = self.key_and_test()?;
        self.state = match self.advance() {
            Token::End => ParserState::Done,
            Token::Sign(",") => ParserState::AfterComma,
            other => return Err(Fault::AfterRequirement(other)),
        };
        Ok(key_and_test)
    }

    fn key_and_test(&mut self) -> Result<Requirement<&'t str>, Fault<'t>> {
        let is_negated = self.next.is_sign("!");
        if is_negated {
            self.advance();
        }
        let key = self.word()?;
        if qualified_name(key).next().is_some() {
            return Err(Fault::Key(key));
        }
        let test = if is_negated {
            Test::Missing
        } else if self.next.ends_requirement() {
            Test::Exists
        } else {
            self.operator_and_values(key)?
        };
        Ok(Requirement { key, test })
    }

    fn operator_and_values(&mut self, key: &'t str) -> Result<Test<&'t str>, Fault<'t>> {
        let operator = self.advance();
        match operator {
            Token::Sign("=" | "==") => Ok(Test::Is(self.checked_value(key)?)),
            Token::Sign("!=") => Ok(Test::IsNot(self.checked_value(key)?)),
            Token::Sign(">") => Ok(Test::Above(self.integer(key)?)),
            Token::Sign("<") => Ok(Test::Below(self.integer(key)?)),
            Token::Word("in") => Ok(Test::In(self.checked_values(key)?)),
            Token::Word("notin") => Ok(Test::NotIn(self.checked_values(key)?)),
            other => Err(Fault::Expected(other, BINARY_OPERATORS)),
        }
    }

    /// A value; nothing stands for the empty one.
    fn value(&mut self) -> Result<&'t str, Fault<'t>> {
        if self.next.ends_requirement() { Ok("") } else { self.word() }
    }

    fn checked_value(&mut self, key: &'t str) -> Result<&'t str, Fault<'t>> {
        let value = self.value()?;
        if is_label_value(value) { Ok(value) } else { Err(Fault::Value(key, value)) }
    }

    fn integer(&mut self, key: &'t str) -> Result<i64, Fault<'t>> {
        let value = self.value()?;
        match value.parse() {
            Ok(integer) if is_label_value(value) => Ok(integer),
            _ => Err(Fault::Integer(key, value)),
        }
    }

    /// Values in parentheses, as they were written.
    fn checked_values(&mut self, key: &'t str) -> Result<Vec<&'t str>, Fault<'t>> {
        let opening = self.advance();
        if !opening.is_sign("(") {
            return Err(Fault::NoList(opening));
        }
        let values = self.values()?;
        if values.iter().all(|value| is_label_value(value)) { Ok(values) } else { Err(Fault::Values(key, values)) }
    }

    /// The values after an opening parenthesis. Where one is missing it is the empty one.
    fn values(&mut self) -> Result<Vec<&'t str>, Fault<'t>> {
        if self.next.is_sign(")") {
            self.advance();
            return Ok(vec![""]);
        }
        if !matches!(self.next, Token::Word(_) | Token::Sign(",")) {
            return Err(Fault::Expected(self.next, "',', ')' or identifier"));
        }
        let mut values = Vec::new();
        loop {
            match self.advance() {
                Token::Word(value) => {
                    values.push(value);
                    match self.next {
                        Token::Sign(",") => {}
                        Token::Sign(")") => break,
                        other => return Err(Fault::Expected(other, "',' or ')'")),
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
                other => return Err(Fault::Expected(other, "',', or identifier")),
            }
        }
        self.advance();
        Ok(values)
    }

    fn word(&mut self) -> Result<&'t str, Fault<'t>> {
        match self.advance() {
            Token::Word(word) => Ok(word),
            other => Err(Fault::Expected(other, "identifier")),
        }
    }
}

impl<'t> Iterator for Parser<'t> {
    type Item = Result<Requirement<&'t str>, Fault<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == ParserState::Done || (self.state == ParserState::Beginning && self.next == Token::End) {
            return None;
        }
        let requirement = self.requirement();
        if requirement.is_err() {
            self.state = ParserState::Done;
        }
        Some(requirement)
    }
}

fn is_label_value(value: &str) -> bool {
    label_value(value).next().is_none()
}
