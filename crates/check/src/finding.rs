//! `Finding`: something that a check has found, and where.

use evenkeel_api::decode::{Node, Position, Value};
use evenkeel_api::{AnyObject, Version};
use serde::{Serialize, Serializer};

use crate::request::Request;
use crate::rule::{Rule, Severity};

/// An object to check, and where it comes from.
///
/// Not `#[non_exhaustive]`: code that reads objects from a file makes them.
#[derive(Debug, Clone)]
pub struct Located<'a> {
    /// The object, with its defaults.
    pub object: AnyObject,
    /// The version that it is written in.
    pub version: Version,
    /// The file that it is in; empty if it is in none.
    pub file: &'a str,
    /// The object as it is written, with the places of its fields.
    pub tree: Option<&'a Node>,
    /// Faults in how the object is written, such as unknown fields.
    pub faults: Vec<(Position, String)>,
}

/// Something that is worth knowing about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that it belongs to.
    pub rule: Rule,
    /// How serious it is.
    pub severity: Severity,
    /// The object that has to change.
    pub object: ObjectName,
    /// The place of that object, or of a field in it.
    #[serde(flatten)]
    pub place: SourceLocation,
    /// One sentence.
    pub message: String,
    /// What to do.
    pub help: String,
    /// A request that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    /// The schemas that take what another one matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
}

/// Kind and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct ObjectName {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// A place in a file.
///
/// Not `#[non_exhaustive]`: code that reads objects from a file makes them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct SourceLocation {
    /// The file; empty if the object is in none.
    pub file: String,
    /// The line, from 1; 0 if the object is in no file.
    #[serde(rename = "line", serialize_with = "line")]
    pub at: Option<Position>,
    /// The column, from 1.
    pub column: u32,
}

/// A request that shows a finding, and the schema that the classifier chooses for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Witness {
    /// The request.
    #[serde(flatten)]
    pub request: Request,
    /// The flow schema that it is classified to.
    #[serde(rename = "flowSchema")]
    pub flow_schema: String,
}

/// A question that took too much work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Undecided {
    /// The rule that it belongs to.
    pub rule: Rule,
    /// The object.
    pub object: ObjectName,
    /// Why it is undecided.
    pub message: String,
}

/// Everything that was found, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
    /// The questions that could not be decided.
    pub undecided: Vec<Undecided>,
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn line<S: Serializer>(at: &Option<Position>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(at.map_or(0, |at| at.line))
}

// === impl Finding ===

impl Finding {
    /// A file, or an object in one, that cannot be decoded: so nothing else is found in it.
    pub fn undecodable(
        kind: impl Into<String>,
        name: impl Into<String>,
        place: SourceLocation,
        message: impl Into<String>,
    ) -> Self {
        let rule = Rule::InvalidObject;
        Self {
            rule,
            severity: rule.severity(),
            object: ObjectName { kind: kind.into(), name: name.into() },
            place,
            message: message.into(),
            help: "correct this: the rest of the files is checked without it".to_owned(),
            witness: None,
            blockers: Vec::new(),
        }
    }

    pub(crate) fn new(
        rule: Rule,
        of: &Located<'_>,
        field: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            object: of.name(),
            place: of.place(field),
            message: message.into(),
            help: help.into(),
            witness: None,
            blockers: Vec::new(),
        }
    }

    pub(crate) fn at(self, place: SourceLocation) -> Self {
        Self { place, ..self }
    }

    pub(crate) fn witness(self, witness: Option<Witness>) -> Self {
        Self { witness, ..self }
    }
}

// === impl SourceLocation ===

impl SourceLocation {
    /// A place in a file.
    pub fn new(file: &str, at: Position) -> Self {
        Self { file: file.to_owned(), at: Some(at), column: at.column }
    }
}

// === impl Located ===

impl Located<'_> {
    /// An object that is in no file.
    pub fn without_place(object: impl Into<AnyObject>) -> Self {
        Self { object: object.into(), version: Version::V1, file: "", tree: None, faults: Vec::new() }
    }

    pub(crate) fn name(&self) -> ObjectName {
        ObjectName { kind: self.object.kind().name().to_owned(), name: self.object.name().to_owned() }
    }

    /// Where a field is, such as `spec.rules[0]`, or the nearest one around it.
    pub(crate) fn place(&self, field: &str) -> SourceLocation {
        match self.tree {
            None => SourceLocation { file: self.file.to_owned(), ..SourceLocation::default() },
            Some(tree) => SourceLocation::new(self.file, tree.position_of(field)),
        }
    }

    /// Where an annotation is.
    pub(crate) fn annotation_place(&self, name: &str) -> SourceLocation {
        let annotations = self.tree.and_then(|tree| tree.get("metadata")?.get("annotations"));
        match annotations.map(|node| &node.value) {
            Some(Value::Map(members)) => match members.iter().find(|member| member.key == name) {
                Some(member) => SourceLocation::new(self.file, member.key_at),
                None => self.place("metadata.annotations"),
            },
            _ => self.place("metadata"),
        }
    }
}
