//! What can be wrong with a text or a tree, in the words of the API and in words for people.

use std::collections::HashSet;
use std::fmt;

use super::{Duplicate, Format, Position};

/// A text that is not JSON, or not YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {message}", at.line, at.column)]
pub struct SyntaxError {
    /// Where reading stopped.
    pub at: Position,
    /// What was wrong there.
    pub message: String,
}

/// A field that the type does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its path, with list indexes.
    pub path: String,
    /// Where its name stands.
    pub at: Position,
}

/// A value of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path of the value, with list indexes.
    pub path: String,
    /// Where the value stands.
    pub at: Position,
    /// The text by which the API answers (API-20), without what it says of kind and version.
    pub wire_message: String,
    /// The same for people: what was expected and what was found.
    pub message: String,
}

/// All values of the wrong type in one object, in the order of the text; at least one. What else was found in the
/// object comes along, so that everything can be told at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatches {
    first: Box<Mismatch>,
    others: Vec<Mismatch>,
    unknown: Vec<Unknown>,
}

/// What was dropped from an object: fields that it does not have, and the earlier values of repeated names.
///
/// `fieldValidation` decides whether this is ignored, told or refused (API-81).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    pub(super) format: Format,
    pub(super) duplicates: Vec<Duplicate>,
    pub(super) unknown: Vec<Unknown>,
}

// === impl Mismatches ===

impl Mismatches {
    /// Refuses an object with values of the wrong type; one without them leaves its unknown fields.
    pub(super) fn refuse(all: Vec<Mismatch>, unknown: Vec<Unknown>) -> Result<Vec<Unknown>, Self> {
        let mut all = all.into_iter();
        match all.next() {
            Some(first) => Err(Self { first: Box::new(first), others: all.collect(), unknown }),
            None => Ok(unknown),
        }
    }

    /// The first one, which is all that the API tells (API-20).
    pub fn first(&self) -> &Mismatch {
        &self.first
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Mismatch> {
        std::iter::once(&*self.first).chain(&self.others)
    }

    /// The fields that the type does not have.
    pub fn unknown(&self) -> &[Unknown] {
        &self.unknown
    }
}

impl fmt::Display for Mismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.wire_message)
    }
}

impl std::error::Error for Mismatches {}

// === impl Dropped ===

impl Dropped {
    /// Whether nothing was dropped.
    pub fn is_empty(&self) -> bool {
        self.duplicates.is_empty() && self.unknown.is_empty()
    }

    /// The names that occurred twice.
    pub fn duplicates(&self) -> &[Duplicate] {
        &self.duplicates
    }

    /// The fields that the type does not have.
    pub fn unknown(&self) -> &[Unknown] {
        &self.unknown
    }

    /// The warnings of `fieldValidation=Warn`, one for each (API-97).
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.duplicate_warnings();
        warnings.extend(self.unknown_warnings());
        warnings
    }

    /// The refusal of `fieldValidation=Strict` (API-82), or `None` when nothing was dropped.
    pub fn strict_error(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut errors = self.duplicate_warnings();
        if self.format == Format::Yaml && !errors.is_empty() {
            // The YAML reader has one message for all the names it met twice.
            errors = vec![format!("yaml: unmarshal errors:\n  {}", errors.join("\n  "))];
        }
        errors.extend(self.unknown_warnings());
        Some(format!("strict decoding error: {}", errors.join(", ")))
    }

    /// One for each name that occurred twice, however often it did.
    fn duplicate_warnings(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let texts = self.duplicates.iter().map(|duplicate| match self.format {
            Format::Json | Format::Protobuf => format!("duplicate field {:?}", duplicate.path),
            Format::Yaml => yaml_duplicate(duplicate),
        });
        texts.filter(|text| seen.insert(text.clone())).collect()
    }

    fn unknown_warnings(&self) -> impl Iterator<Item = String> {
        self.unknown.iter().map(|unknown| format!("unknown field {:?}", unknown.path))
    }
}

fn yaml_duplicate(duplicate: &Duplicate) -> String {
    format!("line {}: key {:?} already set in map", duplicate.at.line, duplicate.key)
}

impl From<Mismatch> for Mismatches {
    fn from(first: Mismatch) -> Self {
        Self { first: Box::new(first), others: Vec::new(), unknown: Vec::new() }
    }
}
