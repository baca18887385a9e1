//! Every source file opens with a line that says what the file is for.

use crate::offence::{Offence, has_extension};

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    let first = text.lines().next().unwrap_or_default();
    // One word alone repeats the file's name at best.
    let says_something = first.strip_prefix("//!").is_some_and(|prose| prose.split_whitespace().count() >= 2);
    if !has_extension(path, "rs") || says_something {
        Vec::new()
    } else {
        vec![Offence::new(path, 1, "does not start with a `//!` line that says what the file is for")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn missing_or_empty_opening() {
        let expected = ["a.rs:1: does not start with a `//!` line that says what the file is for"];
        for text in ["", "use std::fmt;\n", "//!\n//! Too late.\n", "//! Queues.\n", "\n//! One line down.\n"] {
            assert_offences(&check("a.rs", text), &expected);
        }
    }

    #[test]
    fn good_opening() {
        assert_offences(&check("a.rs", "//! Deals a hand of queues.\n"), &[]);
        assert_offences(&check("a.toml", "[workspace]\n"), &[]);
    }
}
