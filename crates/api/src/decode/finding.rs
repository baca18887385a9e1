//! The faults of a text or a tree, in the words of the API and in words for people.

use std::collections::HashSet;
use std::fmt;

use super::{Duplicate, Format, Position};

/// A text that is not JSON, or not YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {message}", at.line, at.column)]
#[non_exhaustive]
pub struct SyntaxError {
    /// Where reading stopped.
    pub at: Position,
    /// The fault at that place.
    pub message: String,
}

/// A field that the type does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unknown {
    /// Its path, with list indexes.
    pub path: String,
    /// Where its name stands.
    pub at: Position,
}

/// A value of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The path of the value, with list indexes.
    pub path: String,
    /// Where the value stands.
    pub at: Position,
    /// The text of the API's response (API-20), without what it says of kind and version.
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

/// The fields that were dropped from an object: fields that it does not have, and the earlier values of repeated names.
///
/// `fieldValidation` decides whether this is ignored, told or refused (API-81).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    pub(super) format: Format,
    pub(super) duplicates: Vec<Duplicate>,
    pub(super) unknown: Vec<Unknown>,
}

// === impl SyntaxError ===

impl SyntaxError {
    /// The message for YAML that is indented with tabs.
    pub const TABS: &str = "YAML does not allow tabs; indent with spaces";
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
        match self.format {
            Format::Yaml => {
                let mut warnings = self.yaml_duplicates();
                warnings.extend(self.unknown.iter().map(unknown_warning));
                warnings
            }
            Format::Json | Format::Protobuf => self.in_document_order(),
        }
    }

    /// The refusal of `fieldValidation=Strict` (API-82), or `None` when nothing was dropped.
    pub fn strict_error(&self) -> Option<String> {
        let errors = match self.format {
            Format::Yaml => {
                // The YAML reader has one message for all the names it met twice.
                let duplicates = self.yaml_duplicates();
                let first =
                    (!duplicates.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  ")));
                first.into_iter().chain(self.unknown.iter().map(unknown_warning)).collect()
            }
            Format::Json | Format::Protobuf => self.in_document_order(),
        };
        (!errors.is_empty()).then(|| format!("strict decoding error: {}", errors.join(", ")))
    }

    /// Unknown fields and repeated names as they occur in the text, each once. An unknown field is skipped with all that is
    /// in it, so that it does not count as repeated (API-82).
    fn in_document_order(&self) -> Vec<String> {
        let duplicates = self.duplicates.iter().filter(|duplicate| !self.is_in_unknown(&duplicate.path));
        let duplicates = duplicates.map(|duplicate| (duplicate.at, format!("duplicate field {:?}", duplicate.path)));
        let mut all: Vec<_> = duplicates.collect();
        all.extend(self.unknown.iter().map(|unknown| (unknown.at, unknown_warning(unknown))));
        // The sort is stable: what was not read from a text has no places, and stays as it is.
        all.sort_by_key(|(at, _)| *at);
        let mut seen = HashSet::new();
        all.into_iter().map(|(_, text)| text).filter(|text| seen.insert(text.clone())).collect()
    }

    fn is_in_unknown(&self, path: &str) -> bool {
        // The cheap check first: there may be many unknown fields.
        let may_end_at = |length| length == path.len() || matches!(path.as_bytes().get(length), Some(b'.' | b'['));
        self.unknown.iter().any(|unknown| may_end_at(unknown.path.len()) && path.starts_with(&unknown.path))
    }

    /// One for each name that occurred twice, however often it did.
    fn yaml_duplicates(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        self.duplicates.iter().map(yaml_duplicate).filter(|text| seen.insert(text.clone())).collect()
    }
}

fn unknown_warning(unknown: &Unknown) -> String {
    format!("unknown field {:?}", unknown.path)
}

fn yaml_duplicate(duplicate: &Duplicate) -> String {
    format!("line {}: key {:?} already set in map", duplicate.at.line, duplicate.key)
}

impl From<Mismatch> for Mismatches {
    fn from(first: Mismatch) -> Self {
        Self { first: Box::new(first), others: Vec::new(), unknown: Vec::new() }
    }
}
