//! A flow schema or priority level of a file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use evenkeel_api::decode::{Problem, Unknown, decode_part};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec, Status, V1};
use evenkeel_api::validate::{self, Context, FieldErrors};
use evenkeel_api::{AnyObject, HubSpec, Kind, Object, Preset, Version};

use super::document::Content;
use super::{FileDocument, SourceFile};

/// How many problems of one object are told.
const PROBLEMS_MAX: usize = 100;

/// An object, decoded, with its defaults, in the hub version.
#[derive(Debug)]
pub(crate) struct FileObject<'a> {
    /// The object.
    pub(crate) object: AnyObject,
    /// The version that it is written in.
    pub(crate) version: Version,
    /// Where it is, and how it is written.
    pub(crate) document: &'a FileDocument,
    /// The name of its file.
    pub(crate) file: &'a str,
    /// Unknown fields, and names that occur twice.
    pub(crate) dropped: Vec<Problem>,
}

// === impl FileObject ===

impl<'a> FileObject<'a> {
    /// The object of a document, if it holds one, or every value of the wrong type.
    pub(super) fn decode(document: &'a FileDocument, source: &'a SourceFile) -> Result<Option<Self>, Vec<Problem>> {
        let (kind, version) = match document.content {
            Content::Object(kind, version) => (kind, version),
            Content::ShortForm(kind) => (kind, Version::V1),
            Content::Evenkeel(_) => return Ok(None),
        };
        match kind {
            Kind::FlowSchema => Self::decode_as::<FlowSchemaSpec>(document, source, version).map(Some),
            Kind::PriorityLevelConfiguration => {
                Self::decode_as::<PriorityLevelConfigurationSpec>(document, source, version).map(Some)
            }
        }
    }

    fn decode_as<S: HubSpec>(
        document: &'a FileDocument,
        source: &'a SourceFile,
        version: Version,
    ) -> Result<Self, Vec<Problem>>
    where
        AnyObject: From<Object<V1, S>>,
    {
        let node = &document.root;
        let name = node.get("metadata").and_then(|metadata| metadata.get("name")).and_then(|name| name.as_str());
        let subject = format!("{} {:?}", S::KIND, name.unwrap_or_default());
        let unknown = |unknown: &Unknown| {
            Problem::new(&source.name, unknown.at, format!("{subject}: {}: unknown field", unknown.path))
        };
        let twice = document.duplicates.iter().map(|duplicate| {
            let message = format!("{subject}: {}: the name {:?} occurs twice", duplicate.path, duplicate.key);
            Problem::new(&source.name, duplicate.at, message)
        });
        match decode_part::<S>(node, version) {
            Err(mismatches) => {
                let wrong = mismatches.iter().map(|mismatch| {
                    let message = format!("{subject}: {}: {}", mismatch.path, mismatch.message);
                    Problem::new(&source.name, mismatch.at, message)
                });
                Err(wrong.chain(mismatches.unknown().iter().map(unknown)).chain(twice).take(PROBLEMS_MAX).collect())
            }
            Ok((mut object, unknown_fields)) => {
                let dropped = unknown_fields.iter().map(unknown).chain(twice).take(PROBLEMS_MAX).collect();
                // As on creation, the status in a file is not taken over (API-54).
                object.status = Status::default();
                Ok(Self { object: object.into(), version, document, file: &source.name, dropped })
            }
        }
    }

    /// The problems that validation finds in the object.
    pub(crate) fn invalid(&self, preset: Preset) -> Vec<Problem> {
        if preset == Preset::Kubernetes && matches!(self.document.content, Content::ShortForm(_)) {
            let message = "`levels` and `match` are for ordinary services; add --preset plain, or write objects for a Kubernetes API";
            return vec![Problem::new(self.file, self.document.root.at, message)];
        }
        let context = Context { preset, ..Context::from(self.version) };
        let errors: Result<(), FieldErrors> = match &self.object {
            AnyObject::FlowSchema(schema) => validate::create(schema, context),
            AnyObject::PriorityLevelConfiguration(level) => validate::create(level, context),
        };
        let Err(errors) = errors else { return Vec::new() };
        let (kind, name) = (self.object.kind(), self.object.name());
        let problem = |error: &validate::FieldError| {
            let message = format!("{kind} {name:?}: {}: {}", error.field(), error.message());
            Problem::new(self.file, self.document.root.position_of(error.field()), message)
        };
        errors.iter().take(PROBLEMS_MAX).map(problem).collect()
    }
}

/// Two objects of one kind and name: which of them is meant?
pub(super) fn repeated(objects: &[FileObject<'_>]) -> Vec<Problem> {
    let mut seen = HashMap::new();
    let mut problems = Vec::new();
    for object in objects {
        let (kind, name, at) = (object.object.kind(), object.object.name(), object.document.root.at);
        match seen.entry((kind, name)) {
            Entry::Vacant(slot) => drop(slot.insert((object.file, at))),
            Entry::Occupied(first) => {
                let (file, first) = first.get();
                let message = format!("{kind} {name:?}: is also defined in {file}:{first}; keep one of them");
                problems.push(Problem::new(object.file, at, message));
            }
        }
    }
    problems
}
