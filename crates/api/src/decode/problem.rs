//! The problems of a file, in words for people.

use std::fmt;

use super::Position;

/// A problem of a file: `tenants.yaml:7:5: …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{at}: {message}")]
#[non_exhaustive]
pub struct Problem {
    /// The file.
    pub file: String,
    /// Where in the file.
    pub at: Position,
    /// What is wrong.
    pub message: String,
}

/// All that is wrong with one or more files, in the order of the text; at least one problem.
///
/// Written out, each problem has its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

// === impl Problem ===

impl Problem {
    /// A problem of that file at that place.
    pub fn new(file: impl Into<String>, at: Position, message: impl Into<String>) -> Self {
        Self { file: file.into(), at, message: message.into() }
    }
}

// === impl Problems ===

impl Problems {
    /// The problems in order, or `None` if there are none.
    pub fn new(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by(|one, other| (&one.file, one.at).cmp(&(&other.file, other.at)));
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
