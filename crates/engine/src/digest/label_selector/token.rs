//! The tokens of a label selector.

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    End,
    /// A key, a value, or an operator that is a word.
    Word(&'t str),
    /// An operator or a bracket.
    Sign(&'t str),
}

/// Cuts a text into tokens.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'t> {
    rest: &'t str,
}

const SIGNS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
/// Ends a token like a space, but where a token has to begin it ends the text.
const NUL: char = '\0';

// === impl Token ===

impl<'t> Token<'t> {
    /// The token as messages show it.
    pub(super) fn text(self) -> &'t str {
        match self {
            Self::End => "",
            Self::Word(text) | Self::Sign(text) => text,
        }
    }

    pub(super) fn is_sign(self, sign: &str) -> bool {
        self == Token::Sign(sign)
    }

    /// Whether a requirement ends before this token.
    pub(super) fn ends_requirement(self) -> bool {
        self == Self::End || self.is_sign(",")
    }
}

// === impl Tokens ===

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    /// The next token; `End` for ever after the last.
    pub(super) fn next(&mut self) -> Token<'t> {
        let text = self.rest.trim_start_matches(SPACES);
        let Some(first) = text.chars().next().filter(|&first| first != NUL) else {
            self.rest = "";
            return Token::End;
        };
        let is_sign = SIGNS.contains(&first);
        let length = if is_sign {
            if text.starts_with("==") || text.starts_with("!=") { 2 } else { 1 }
        } else {
            text.find(|c| SIGNS.contains(&c) || SPACES.contains(&c) || c == NUL).unwrap_or(text.len())
        };
        let (token, rest) = text.split_at(length);
        self.rest = rest.strip_prefix(NUL).unwrap_or(rest);
        if is_sign { Token::Sign(token) } else { Token::Word(token) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_as_long_as_possible_and_words_end_at_them() {
        let texts = |text| {
            let mut tokens = Tokens::new(text);
            std::iter::from_fn(|| Some(tokens.next()).filter(|token| *token != Token::End).map(Token::text))
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(" a===b!=!c"), ["a", "==", "=", "b", "!=", "!", "c"]);
        assert_eq!(texts("é in(x,)"), ["é", "in", "(", "x", ",", ")"]);
        assert_eq!(texts("a\0b\0"), ["a", "b"]);
        assert_eq!(texts("a \0b"), ["a"]);
    }
}
