//! A fault in the tree, and its place.

use std::fmt;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    path: String,
    line: usize,
    fault: String,
}

// === impl Offence ===

impl Offence {
    pub(crate) fn new(path: &str, line: usize, fault: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, fault: fault.into() }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.fault)
    }
}

/// The lines of a text with their numbers, line ends other than `\n` left in.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.split_terminator('\n'))
}

/// Whether the path ends in this extension, given without its dot.
pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, found)| found == extension)
}

/// The offences as lines of text, the way the tests compare them.
#[track_caller]
pub(crate) fn assert_offences(found: &[Offence], expected: &[&str]) {
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}
