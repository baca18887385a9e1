//! Writes the objects of a text in another version, by changing only what must change.
//!
//! The versions differ in how the shares of a limited level are written (API-62, API-63). The result is read again and
//! compared with the original, object by object: it is either the same, or there is no result.

use evenkeel_api::decode::{Document, Format, Member, Node, Position, Problem, Problems, Value, parse_text};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::v1beta3::PRESERVE_ZERO_ANNOTATION;
use evenkeel_api::{AnyObject, GROUP, HubSpec, Kind, Version};

use super::edits::{CannotEdit, Edits, NewValue};
use crate::object_files::{BYTE_ORDER_MARK, template_problem};

/// A text in which the objects are written in another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    /// How many objects have changed their version.
    pub(crate) converted: usize,
}

/// An object of one of the two kinds, and where it is.
struct Found<'d> {
    node: &'d Node,
    version: Version,
    object: AnyObject,
}

/// The objects of a text, and the places that name their version.
#[derive(Default)]
struct Contents<'d> {
    objects: Vec<Found<'d>>,
    versions: Vec<(Position, Version)>,
    /// The lines in which documents with objects begin.
    documents: Vec<(u32, bool)>,
}

/// Writes all objects of a text in that version. `file` is what problems call the text.
pub(crate) fn rewrite(file: &str, text: &str, to: Version) -> Result<Rewritten, Problems> {
    let (mark, body) = text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 });
    let documents = parse_text(body.as_bytes()).map_err(|error| {
        let template = template_problem(file, body, |_| true);
        Problems::from(template.unwrap_or_else(|| Problem::new(file, error.at, error.message)))
    })?;
    let contents = Contents::read(file, &documents)?;
    if let Some(template) = template_problem(file, body, |line| contents.is_converted(line)) {
        return Err(template.into());
    }
    let format = format_of(&documents);
    let mut edits = Edits::new(body, format);
    let mut problems = Vec::new();
    for (at, version) in contents.versions.iter().filter(|(_, version)| *version != to) {
        let edited = edits.replace(*at, version.api_version(), to.api_version());
        problems.extend(edited.err().map(|error| cannot(file, error)));
    }
    let changed: Vec<&Found<'_>> = contents.objects.iter().filter(|object| object.version != to).collect();
    for object in &changed {
        problems.extend(change(&mut edits, file, object, to).err());
    }
    if let Some(problems) = Problems::new(problems) {
        return Err(problems);
    }
    let new = edits.apply().map_err(|error| cannot(file, error))?;
    verify(file, &contents, format, &new, to)?;
    Ok(Rewritten { text: format!("{mark}{new}"), converted: changed.len() })
}

fn cannot(file: &str, error: CannotEdit) -> Problem {
    let CannotEdit { at, what } = error;
    Problem::new(
        file,
        at,
        format!("{what}, so the object cannot be edited in place; write it without anchors and aliases"),
    )
}

/// Changes how one object is written, save for its version.
fn change(edits: &mut Edits<'_>, file: &str, found: &Found<'_>, to: Version) -> Result<(), Problem> {
    let AnyObject::PriorityLevelConfiguration(level) = &found.object else { return Ok(()) };
    let node = found.node;
    let told = |error| cannot(file, error);
    let metadata = node.get("metadata");
    let annotations = metadata.and_then(|metadata| member(metadata, "annotations"));
    let shares = level.spec.limited.as_ref().and_then(|limited| limited.nominal_concurrency_shares);
    // Only v1beta3 reads the annotation. In other versions it has no meaning, and must not get one.
    if let Some(annotations) = annotations
        && (found.version == Version::V1beta3 || (to == Version::V1beta3 && shares != Some(0)))
    {
        edits.remove(annotations, PRESERVE_ZERO_ANNOTATION).map_err(told)?;
    }
    let Some(shares) = shares else { return Ok(()) };
    let Some(limited) = node.get("spec").and_then(|spec| spec.get("limited")) else { return Ok(()) };
    let (old_name, new_name) = (shares_name(found.version), shares_name(to));
    if shares == 0 && matches!(to, Version::V1beta2 | Version::V1beta1) {
        let message = format!(
            "{} {:?}: spec.limited.{old_name}: {to} cannot express zero shares: it reads 0 as 30; convert to v1beta3 or v1",
            Kind::PriorityLevelConfiguration,
            level.metadata.name,
            to = to.name(),
        );
        return Err(Problem::new(file, node.position_of(&format!("spec.limited.{old_name}")), message));
    }
    match member(limited, old_name) {
        Some(written) => {
            if old_name != new_name {
                edits.replace(written.key_at, old_name, new_name).map_err(told)?;
            }
            let is_same = match &written.value.value {
                Value::Number(number) => number.parse() == Ok(shares),
                _ => true,
            };
            if !is_same {
                edits.replace_number(written.value.at, &shares.to_string()).map_err(told)?;
            }
        }
        // Absent stands for 30, unless the annotation says that it stands for 0.
        None if shares == 0 => edits.insert(limited, new_name, &NewValue::Number("0")).map_err(told)?,
        None => {}
    }
    if shares == 0 && to == Version::V1beta3 {
        match (annotations, metadata) {
            (Some(annotations), _) if annotations.value.get(PRESERVE_ZERO_ANNOTATION).is_some() => {}
            (Some(annotations), _) => {
                edits.insert(&annotations.value, PRESERVE_ZERO_ANNOTATION, &NewValue::Empty).map_err(told)?;
            }
            (None, Some(metadata)) => {
                edits.insert(metadata, "annotations", &NewValue::MapOfEmpty(PRESERVE_ZERO_ANNOTATION)).map_err(told)?;
            }
            (None, None) => {
                let message = "metadata is missing, and the annotation that keeps zero shares needs it".to_owned();
                return Err(Problem::new(file, node.at, message));
            }
        }
    }
    Ok(())
}

fn shares_name(version: Version) -> &'static str {
    match version {
        Version::V1 | Version::V1beta3 => "nominalConcurrencyShares",
        Version::V1beta2 | Version::V1beta1 => "assuredConcurrencyShares",
    }
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Member> {
    let Value::Map(members) = &node.value else { return None };
    members.iter().find(|member| member.key == name)
}

fn format_of(documents: &[Document]) -> Format {
    documents.first().map_or(Format::Yaml, |document| document.format)
}

/// Reads the result, and compares it with the original.
fn verify(file: &str, before: &Contents<'_>, format: Format, text: &str, to: Version) -> Result<(), Problems> {
    let documents = parse_text(text.as_bytes()).unwrap_or_default();
    let after = Contents::read(file, &documents)?;
    let mut problems = Vec::new();
    // A text that is no longer JSON may still be YAML.
    if format_of(&documents) != format {
        let message = "the converted text would not have the same format; nothing was changed".to_owned();
        problems.push(Problem::new(file, Position { line: 1, column: 1 }, message));
    }
    if after.objects.len() != before.objects.len() {
        let message = "the converted text does not have the same objects; nothing was changed".to_owned();
        problems.push(Problem::new(file, Position { line: 1, column: 1 }, message));
    }
    for (old, new) in before.objects.iter().zip(&after.objects) {
        if meaning(&old.object) != meaning(&new.object) || new.version != to {
            let (kind, name) = (old.object.kind(), old.object.name());
            let message = format!(
                "{kind} {name:?}: it would not mean the same in {}; does it have fields of another version? \
                 Nothing was changed",
                to.name()
            );
            problems.push(Problem::new(file, old.node.at, message));
        }
    }
    Problems::new(problems).map_or(Ok(()), Err)
}

/// An object without the annotation that says how v1beta3 reads it.
fn meaning(object: &AnyObject) -> AnyObject {
    let mut object = object.clone();
    if let AnyObject::PriorityLevelConfiguration(level) = &mut object {
        level.metadata.annotations.remove(PRESERVE_ZERO_ANNOTATION);
    }
    object
}

// === impl Contents ===

impl<'d> Contents<'d> {
    fn read(file: &str, documents: &'d [Document]) -> Result<Self, Problems> {
        let (mut contents, mut problems) = (Self::default(), Vec::new());
        for document in documents {
            let before = contents.objects.len();
            contents.item(file, &document.root, None, document.format, &mut problems);
            contents.documents.push((document.root.at.line, contents.objects.len() > before));
        }
        Problems::new(problems).map_or(Ok(contents), Err)
    }

    /// Whether a line belongs to a document with objects, or to none.
    fn is_converted(&self, line: u32) -> bool {
        let before = self.documents.partition_point(|(start, _)| *start <= line);
        before.checked_sub(1).is_none_or(|index| self.documents[index].1)
    }

    /// Reads a document, or an item of a list, whose kind and version may be known from the list.
    fn item(
        &mut self,
        file: &str,
        node: &'d Node,
        known: Option<(Kind, Version)>,
        format: Format,
        problems: &mut Vec<Problem>,
    ) {
        let text = |name| node.get(name).and_then(Node::as_str).filter(|text| !text.is_empty());
        let (kind, version) = match (text("apiVersion"), text("kind"), known) {
            (None, None, Some((kind, version))) => (kind, version),
            (Some("v1"), Some("List"), None) => return self.items(file, node, None, format, problems),
            (Some(api_version), Some(kind), _) => {
                let (of_list, item) = match kind.strip_suffix("List").map(str::parse) {
                    Some(Ok(kind)) => (true, Ok(kind)),
                    _ => (false, kind.parse()),
                };
                let is_group = api_version.strip_prefix(GROUP).is_some_and(|rest| rest.starts_with('/'));
                let (Ok(kind), true) = (item, is_group) else { return };
                let Some(version) = Version::from_api_version(api_version) else {
                    let known = Version::ALL.map(Version::name).join(", ");
                    let message = format!("apiVersion {api_version:?} is not known; known versions are {known}");
                    return problems.push(Problem::new(file, node.position_of("apiVersion"), message));
                };
                let at = node.get("apiVersion").map_or(node.at, |node| node.at);
                self.versions.push((at, version));
                if of_list {
                    return self.items(file, node, Some((kind, version)), format, problems);
                }
                (kind, version)
            }
            _ => return,
        };
        match kind {
            Kind::FlowSchema => self.object::<FlowSchemaSpec>(file, node, version, format, problems),
            Kind::PriorityLevelConfiguration => {
                self.object::<PriorityLevelConfigurationSpec>(file, node, version, format, problems);
            }
        }
    }

    fn items(
        &mut self,
        file: &str,
        node: &'d Node,
        known: Option<(Kind, Version)>,
        format: Format,
        problems: &mut Vec<Problem>,
    ) {
        let Some(Value::List(items)) = node.get("items").map(|items| &items.value) else { return };
        for item in items {
            self.item(file, item, known, format, problems);
        }
    }

    fn object<S: HubSpec>(
        &mut self,
        file: &str,
        node: &'d Node,
        version: Version,
        format: Format,
        problems: &mut Vec<Problem>,
    ) where
        AnyObject: From<evenkeel_api::Object<evenkeel_api::v1::V1, S>>,
    {
        let document = Document { root: node.clone(), duplicates: Vec::new(), format };
        match document.decode::<S>(version) {
            Ok(decoded) => self.objects.push(Found { node, version, object: decoded.object.into() }),
            Err(mismatches) => {
                let name = node.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::as_str);
                let subject = format!("{} {:?}", S::KIND, name.unwrap_or_default());
                let found = mismatches.iter().map(|mismatch| {
                    Problem::new(file, mismatch.at, format!("{subject}: {}: {}", mismatch.path, mismatch.message))
                });
                problems.extend(found);
            }
        }
    }
}
