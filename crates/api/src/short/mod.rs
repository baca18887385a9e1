//! The short form (SF): levels and matches in a few lines, which stand for priority levels and flow schemas.
//!
//! ```
//! use evenkeel_api::short::ShortForm;
//!
//! let form = ShortForm::parse("evenkeel.yaml", b"
//! levels:
//!   interactive: {share: 70, lend: 50%}
//!   batch:       {share: 30, queue: 500}
//! match:
//! - {path: /healthz, exempt: true}
//! - {group: paying, level: interactive, weight: 4}
//! - {level: batch}
//! ")?;
//! let objects = form.to_objects()?;
//! assert_eq!(objects.priority_levels.len(), 2);
//! assert_eq!(objects.flow_schemas[1].name(), "interactive-1");
//! assert_eq!(ShortForm::from_objects(&objects.priority_levels, &objects.flow_schemas), Ok(form));
//!
//! let problems = ShortForm::parse("evenkeel.yaml", b"levels: {batch: {share: 30}}\nmatch: [{level: bach}]").unwrap_err();
//! assert_eq!(problems.to_string(), "evenkeel.yaml:2:10: match[0].level: unknown level `bach`; did you mean `batch`?");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same words are methods of [`ShortLevel`] and [`ShortRule`], for programs. However a form was made, [`ShortForm::problems`]
//! says everything that is wrong with it.

mod check;
mod from_objects;
mod level;
mod read;
mod rule;
mod serde_form;
mod text;
mod to_objects;

pub use from_objects::NotShort;
pub use level::{Part, ShortLevel};
pub use read::is_short_form;
pub use rule::{Per, ShortRule};

use crate::bootstrap::BootstrapObjects;

/// Levels and matches: the first match that fits a request says where it goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ShortForm {
    /// The levels by name, in the order of the text.
    pub levels: ShortLevels,
    /// The matches, tried from the first to the last.
    pub rules: Vec<ShortRule>,
}

/// Levels by name, in order.
///
/// Not `#[non_exhaustive]`: it is a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShortLevels(pub Vec<(String, ShortLevel)>);

/// Something that is wrong with a short form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
#[non_exhaustive]
pub struct ShortProblem {
    /// Where: `levels.batch.lend`, `match[2].level`.
    pub field: String,
    /// What is wrong there, and what to do.
    pub message: String,
}

/// Everything that is wrong with a short form; at least one problem.
///
/// Not `#[non_exhaustive]`: it is a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortProblems(pub Vec<ShortProblem>);

/// How many requests wait in a level that does not say.
pub const QUEUE_DEFAULT: i64 = 200;
/// The keys of a short form.
pub const KEYS: [&str; 2] = ["levels", "match"];

// === impl ShortForm ===

impl ShortForm {
    /// A form of these levels and matches. It may have [problems](Self::problems).
    pub fn new(levels: ShortLevels, rules: Vec<ShortRule>) -> Self {
        Self { levels, rules }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.levels.0.is_empty() && self.rules.is_empty()
    }

    /// The objects that it stands for, or everything that is wrong with it.
    pub fn to_objects(&self) -> Result<BootstrapObjects, ShortProblems> {
        let problems = self.problems();
        if problems.is_empty() { Ok(to_objects::objects(self)) } else { Err(ShortProblems(problems)) }
    }
}

// === impl ShortLevels ===

impl ShortLevels {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

// === impl ShortProblem ===

impl ShortProblem {
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

// === impl ShortProblems ===

impl std::fmt::Display for ShortProblems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ShortProblems {}
