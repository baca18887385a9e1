//! `Manifest`: the objects of a file, or everything that is wrong with it.
//!
//! Nothing stops at the first problem, save text that cannot be read at all: decoding and validation go through
//! every document, and each problem says in which file, line and column it is.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fmt;

use super::document::decode_node;
use super::problem::{Problem, Problems};
use super::{Document, Node, Position, Unknown, Value, parse_text};
use crate::path::Path;
use crate::short::{ShortForm, is_short_form};
use crate::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec, Status, V1};
use crate::validate::{self, Context, ValidSpec};
use crate::{AnyObject, GROUP, HubSpec, Kind, Object, Preset, Version};

/// The objects of a file, decoded, with their defaults, valid, and in the hub version.
///
/// A file holds YAML of one or more documents, or JSON. Besides the two kinds, a document may be a `List`, a
/// `FlowSchemaList` or a `PriorityLevelConfigurationList`. For an ordinary service, it may be a [short form](crate::short), which is
/// read as the objects that it stands for.
///
/// ```
/// use evenkeel_api::decode::{Manifest, Strictness};
///
/// let text = b"
/// apiVersion: flowcontrol.apiserver.k8s.io/v1
/// kind: PriorityLevelConfiguration
/// metadata: {name: tenants}
/// spec:
///   type: Limited
///   limited: {limitResponse: {type: Reject}, lendable: 50}
/// ";
/// let problems = Manifest::read("tenants.yaml", text, Strictness::Strict).unwrap_err();
/// assert_eq!(
///     problems.to_string(),
///     "tenants.yaml:7:44: PriorityLevelConfiguration \"tenants\": spec.limited.lendable: unknown field",
/// );
/// let manifest = Manifest::read("tenants.yaml", text, Strictness::Lenient)?;
/// assert_eq!(manifest.entries[0].object.name(), "tenants");
/// assert_eq!(manifest.warnings.len(), 1);
/// # Ok::<(), evenkeel_api::decode::Problems>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Manifest {
    /// The objects, in the order of the file.
    pub entries: Vec<ManifestEntry>,
    /// The fields that were dropped, if the file was read leniently.
    pub warnings: Vec<Problem>,
}

/// An object of a file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ManifestEntry {
    /// The object.
    pub object: AnyObject,
    /// The version that it is written in.
    pub version: Version,
    /// Where it begins.
    pub at: Position,
    /// The object as it is written, without defaults: for server-side apply.
    pub tree: Node,
}

/// The treatment of unknown fields and of names that occur twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strictness {
    /// Such fields are problems.
    Strict,
    /// Such fields are dropped, with a warning.
    Lenient,
}

/// How many problems of one object are reported.
const PROBLEMS_MAX: usize = 1000;

struct ManifestReader<'a> {
    preset: Preset,
    file: &'a str,
    entries: Vec<ManifestEntry>,
    dropped: Vec<Problem>,
    problems: Vec<Problem>,
}

/// The type of a document, or of an item of a list.
enum DocumentType {
    Object(Kind, Version),
    /// A list; the items of some lists have a known type even if they do not name it.
    List(Option<(Kind, Version)>),
}

// === impl Manifest ===

impl Manifest {
    /// Reads a file. `file` is its name in problems.
    ///
    /// The objects are checked by the rules of Kubernetes: see [`read_for`](Self::read_for).
    pub fn read(file: &str, text: &[u8], strictness: Strictness) -> Result<Self, Problems> {
        Self::read_for(Preset::Kubernetes, file, text, strictness)
    }

    /// Reads a file by the rules of a preset.
    pub fn read_for(preset: Preset, file: &str, text: &[u8], strictness: Strictness) -> Result<Self, Problems> {
        let mut reader =
            ManifestReader { preset, file, entries: Vec::new(), dropped: Vec::new(), problems: Vec::new() };
        match parse_text(text) {
            Ok(documents) => documents.iter().for_each(|document| reader.document(document)),
            Err(error) => reader.problems.push(Problem::new(file, error.at, error.message)),
        }
        reader.find_repeated_objects();
        reader.finish(strictness)
    }
}

// === impl ManifestEntry ===

impl ManifestEntry {
    /// An object that something at this place stands for.
    pub(crate) fn made(object: AnyObject, at: Position) -> Self {
        let json = match &object {
            AnyObject::FlowSchema(schema) => serde_json::to_value(schema),
            AnyObject::PriorityLevelConfiguration(level) => serde_json::to_value(level),
        };
        // The types hold nothing that JSON could not. The status is the server's.
        let mut json = json.unwrap_or_default();
        if let Some(members) = json.as_object_mut() {
            members.remove("status");
        }
        let mut tree = Node::from(&json);
        tree.move_to(at);
        Self { object, version: Version::V1, at, tree }
    }
}

// === impl ManifestReader ===

impl ManifestReader<'_> {
    fn document(&mut self, document: &Document) {
        for duplicate in &document.duplicates {
            let message = format!("{}: the name {:?} occurs twice", duplicate.path, duplicate.key);
            self.dropped.push(Problem::new(self.file, duplicate.at, message));
        }
        if is_short_form(&document.root) {
            self.short_form(document);
        } else {
            self.item(&document.root, &Path::Root, None);
        }
    }

    /// Reads the objects that a short form stands for (SF-2).
    fn short_form(&mut self, document: &Document) {
        if self.preset.is_kubernetes() {
            let message =
                "`levels` and `match` are for ordinary services (preset `plain`); for a Kubernetes API, write objects";
            return self.problem(document.root.at, message);
        }
        let form = match ShortForm::from_document(self.file, document) {
            Ok(form) => form,
            Err(problems) => return self.problems.extend(problems),
        };
        self.entries.extend(form.entries(&document.root));
    }

    /// Reads a document, or an item of a list whose type may be known.
    fn item(&mut self, node: &Node, path: &Path<'_>, known: Option<(Kind, Version)>) {
        match content(node, known) {
            Ok(DocumentType::Object(kind, _)) if known.is_some_and(|(wanted, _)| wanted != kind) => {
                self.problem(node.position_of("kind"), format!("a {kind} in a list of another kind"));
            }
            Ok(DocumentType::Object(Kind::FlowSchema, version)) => self.object::<FlowSchemaSpec>(node, path, version),
            Ok(DocumentType::Object(Kind::PriorityLevelConfiguration, version)) => {
                self.object::<PriorityLevelConfigurationSpec>(node, path, version);
            }
            Ok(DocumentType::List(known)) if matches!(path, Path::Root) => self.list(node, known),
            Ok(DocumentType::List(_)) => self.problem(node.at, "a list inside a list"),
            Err((at, message)) => self.problem(at, message),
        }
    }

    fn list(&mut self, node: &Node, known: Option<(Kind, Version)>) {
        if let Value::Map(members) = &node.value {
            let is_known = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata" | "items");
            for member in members.iter().filter(|member| !is_known(&member.key)) {
                let message = format!("{}: unknown field of a list", member.key);
                self.dropped.push(Problem::new(self.file, member.key_at, message));
            }
        }
        let items = node.get("items");
        match items.map(|items| &items.value) {
            None | Some(Value::Null) => {}
            Some(Value::List(items)) => {
                let path = Path::Root.child("items");
                for (index, item) in items.iter().enumerate() {
                    self.item(item, &path.index(index), known);
                }
            }
            Some(_) => self.problem(items.map_or(node.at, |items| items.at), "items: expected a list"),
        }
    }

    fn object<S: HubSpec + ValidSpec>(&mut self, node: &Node, path: &Path<'_>, version: Version)
    where
        AnyObject: From<Object<V1, S>>,
    {
        let name = node.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::as_str);
        let subject = format!("{} {:?}", S::KIND, name.unwrap_or_default());
        let problem = |at, field: &dyn fmt::Display, message: &dyn fmt::Display| {
            Problem::new(self.file, at, format!("{subject}: {field}: {message}"))
        };
        let unknown_fields = |unknown: &[Unknown]| -> Vec<Problem> {
            unknown.iter().map(|unknown| problem(unknown.at, &unknown.path, &"unknown field")).collect()
        };
        match decode_node::<S>(node, path, version) {
            Err(mismatches) => {
                self.dropped.extend(unknown_fields(mismatches.unknown()));
                let found = mismatches.iter().map(|mismatch| problem(mismatch.at, &mismatch.path, &mismatch.message));
                self.problems.extend(found);
            }
            Ok((mut object, unknown)) => {
                self.dropped.extend(unknown_fields(&unknown));
                // As on creation, the status in a file is ignored (API-54).
                object.status = Status::default();
                if let Err(errors) =
                    validate::create(&object, Context { preset: self.preset, ..Context::from(version) })
                {
                    let found = errors.iter().take(PROBLEMS_MAX).map(|error| {
                        let at = node.position_of(error.field());
                        match path {
                            Path::Root => problem(at, &error.field(), &error.message()),
                            _ => problem(at, &format_args!("{path}.{}", error.field()), &error.message()),
                        }
                    });
                    self.problems.extend(found);
                }
                self.entries.push(ManifestEntry { object: object.into(), version, at: node.at, tree: node.clone() });
            }
        }
    }

    /// Reports two objects of one kind and name in a file.
    fn find_repeated_objects(&mut self) {
        let mut seen = HashMap::new();
        for entry in &self.entries {
            let (kind, name) = (entry.object.kind(), entry.object.name());
            match seen.entry((kind, name)) {
                Slot::Vacant(slot) => drop(slot.insert(entry.at)),
                Slot::Occupied(first) => {
                    let message = format!("{kind} {name:?}: is in this file twice, first in line {}", first.get().line);
                    self.problems.push(Problem::new(self.file, entry.at, message));
                }
            }
        }
    }

    fn problem(&mut self, at: Position, message: impl Into<String>) {
        self.problems.push(Problem::new(self.file, at, message.into()));
    }

    fn finish(mut self, strictness: Strictness) -> Result<Manifest, Problems> {
        if strictness == Strictness::Strict {
            self.problems.append(&mut self.dropped);
        }
        match Problems::new(self.problems) {
            Some(problems) => Err(problems),
            None => Ok(Manifest { entries: self.entries, warnings: self.dropped }),
        }
    }
}

/// The type of a document, or where and why it is unknown.
fn content(node: &Node, known: Option<(Kind, Version)>) -> Result<DocumentType, (Position, String)> {
    if !matches!(node.value, Value::Map(_)) {
        return Err((node.at, "expected an object with apiVersion and kind".to_owned()));
    }
    for name in ["apiVersion", "kind"] {
        if let Some(member) = node.get(name).filter(|member| !matches!(member.value, Value::String(_) | Value::Null)) {
            return Err((member.at, format!("{name}: expected a text")));
        }
    }
    let text = |name| node.get(name).and_then(Node::as_str).filter(|text| !text.is_empty());
    let (api_version, kind) = match (text("apiVersion"), text("kind"), known) {
        (Some(api_version), Some(kind), _) => (api_version, kind),
        (None, None, Some((kind, version))) => return Ok(DocumentType::Object(kind, version)),
        (None, _, _) => return Err((node.at, format!("apiVersion is missing: use {GROUP}/v1"))),
        (_, None, _) => {
            return Err((node.at, "kind is missing: use FlowSchema or PriorityLevelConfiguration".to_owned()));
        }
    };
    if (api_version, kind) == ("v1", "List") {
        return Ok(DocumentType::List(None));
    }
    let Some(version) = Version::from_api_version(api_version) else {
        let known = Version::ALL.map(Version::name).join(", ");
        let message = format!("apiVersion {api_version:?} is none of {GROUP}/v1 and its older versions ({known})");
        return Err((node.position_of("apiVersion"), message));
    };
    match (kind.parse(), kind.strip_suffix("List").map(str::parse)) {
        (Ok(kind), _) => Ok(DocumentType::Object(kind, version)),
        (_, Some(Ok(kind))) => Ok(DocumentType::List(Some((kind, version)))),
        (Err(error), _) => Err((node.position_of("kind"), error.to_string())),
    }
}
