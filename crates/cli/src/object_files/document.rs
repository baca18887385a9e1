//! The documents of a file, with the items of lists as documents of their own.

use evenkeel_api::decode::{Document, Duplicate, Node, Position, Problem, Value, parse_text};
use evenkeel_api::short::{self, ShortForm, is_short_form};
use evenkeel_api::{GROUP, Kind, Version};
use evenkeel_gateway::config::is_settings;

use super::SourceFile;

/// The group of Evenkeel's own documents, and its version.
const EVENKEEL_GROUP: &str = "evenkeel.dev";
const EVENKEEL_VERSION: &str = "evenkeel.dev/v1";

/// Texts of which a file in a folder must have one to be of use here. Other files, such as the templates of a chart, are not even
/// parsed.
const MENTIONED: [&str; 2] = [GROUP, "evenkeel.dev/"];

/// A document of a file, or an item of a list.
#[derive(Debug)]
pub(crate) struct FileDocument {
    /// The index of the file.
    pub(crate) source: usize,
    /// The content, with its places in the file.
    pub(crate) root: Node,
    /// The names that occur twice in it.
    pub(super) duplicates: Vec<Duplicate>,
    pub(super) content: Content,
}

/// The content of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// An object of the group.
    Object(Kind, Version),
    /// An object that a level or a match stands for.
    ShortForm(Kind),
    /// A document of Evenkeel's own.
    Evenkeel(EvenkeelKind),
}

/// The kinds of Evenkeel's own documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EvenkeelKind {
    /// A request, and how it is to be classified.
    ClassificationTest,
    /// A workload for `simulate`.
    Workload,
}

/// The result of looking at a document or an item of a list.
enum Found {
    Content(Content),
    /// A list, and what its items are if they do not say so.
    List(Option<(Kind, Version)>),
    /// Something that is not for these tools.
    Other,
}

/// Adds the documents of a file that these tools know.
pub(super) fn documents_of(
    source: &SourceFile,
    index: usize,
    documents: &mut Vec<FileDocument>,
    problems: &mut Vec<Problem>,
) {
    if !source.is_named && !mentions(&source.text) {
        return;
    }
    let parsed = match parse_text(&source.text) {
        Ok(parsed) => parsed,
        Err(error) => return problems.push(Problem::new(&source.name, error.at, error.message)),
    };
    let mut reader = Reader { source, index, documents, problems };
    for document in parsed {
        reader.document(document);
    }
}

fn mentions(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    MENTIONED.iter().any(|word| text.contains(word)) || short::KEYS.iter().all(|key| text.contains(&format!("{key}:")))
}

struct Reader<'a> {
    source: &'a SourceFile,
    index: usize,
    documents: &'a mut Vec<FileDocument>,
    problems: &'a mut Vec<Problem>,
}

// === impl Reader ===

impl Reader<'_> {
    fn document(&mut self, document: Document) {
        if is_short_form(&document.root) {
            return self.short_form(&document);
        }
        let Document { root, duplicates, .. } = document;
        match self.found(&root, None) {
            Ok(Found::Content(content)) => self.add(root, duplicates, content),
            Ok(Found::List(known)) => self.list(root, &duplicates, known),
            Ok(Found::Other) => {}
            Err((at, message)) => self.problem(at, message),
        }
    }

    /// Adds the objects that `levels` and `match` stand for, each at the place of its line.
    fn short_form(&mut self, document: &Document) {
        match ShortForm::from_settings(&self.source.name, document) {
            Ok(form) => {
                for entry in form.entries(&document.root) {
                    let content = Content::ShortForm(entry.object.kind());
                    self.add(entry.tree, Vec::new(), content);
                }
            }
            Err(problems) => self.problems.extend(problems),
        }
    }

    fn list(&mut self, root: Node, duplicates: &[Duplicate], known: Option<(Kind, Version)>) {
        let Value::Map(members) = root.value else { return };
        let Some(items) = members.into_iter().find(|member| member.key == "items") else { return };
        let items = match items.value.value {
            Value::List(items) => items,
            Value::Null => return,
            _ => return self.problem(items.value.at, "items: expected a list"),
        };
        for (number, item) in items.into_iter().enumerate() {
            match self.found(&item, known) {
                Ok(Found::Content(content)) => {
                    // The paths of the names that occur twice begin at the list.
                    let inside = format!("items[{number}].");
                    let of_item = duplicates.iter().filter(|duplicate| duplicate.path.starts_with(&inside));
                    let of_item = of_item.cloned().map(|mut duplicate: Duplicate| {
                        duplicate.path.drain(..inside.len());
                        duplicate
                    });
                    self.add(item, of_item.collect(), content);
                }
                Ok(Found::List(_)) => self.problem(item.at, "a list inside a list"),
                Ok(Found::Other) => {}
                Err((at, message)) => self.problem(at, message),
            }
        }
    }

    fn add(&mut self, root: Node, duplicates: Vec<Duplicate>, content: Content) {
        self.documents.push(FileDocument { source: self.index, root, duplicates, content });
    }

    fn problem(&mut self, at: Position, message: impl Into<String>) {
        self.problems.push(Problem::new(&self.source.name, at, message));
    }

    fn found(&self, node: &Node, known: Option<(Kind, Version)>) -> Result<Found, (Position, String)> {
        let text = |name| node.get(name).and_then(Node::as_str).filter(|text| !text.is_empty());
        let (api_version, kind) = match (text("apiVersion"), text("kind"), known) {
            (Some(api_version), Some(kind), _) => (api_version, kind),
            (None, None, Some((kind, version))) => return Ok(Found::Content(Content::Object(kind, version))),
            // Settings and other YAML files lie beside objects; an object is recognised by its `spec`.
            _ if !self.source.is_named && node.get("spec").is_none() => return Ok(Found::Other),
            _ if is_settings(node) => {
                let message = "this looks like a settings file, not objects; pass it with --config";
                return Err((node.at, message.to_owned()));
            }
            (None, _, _) => return Err((node.at, format!("apiVersion is missing: use {GROUP}/v1"))),
            (_, None, _) => {
                return Err((node.at, "kind is missing: use FlowSchema or PriorityLevelConfiguration".to_owned()));
            }
        };
        match (api_version, kind) {
            ("v1", "List") => return Ok(Found::List(None)),
            _ if api_version.split('/').next() == Some(EVENKEEL_GROUP) => {
                return own_kind(node, api_version, kind).map(|kind| Found::Content(Content::Evenkeel(kind)));
            }
            _ if !is_of_group(api_version) => return Ok(Found::Other),
            _ => {}
        }
        let Some(version) = Version::from_api_version(api_version) else {
            let known = Version::ALL.map(Version::name).join(", ");
            let message = format!("apiVersion {api_version:?}: {GROUP} has the versions {known}");
            return Err((node.position_of("apiVersion"), message));
        };
        match (kind.parse(), kind.strip_suffix("List").map(str::parse)) {
            (Ok(kind), _) => Ok(Found::Content(Content::Object(kind, version))),
            (_, Some(Ok(kind))) => Ok(Found::List(Some((kind, version)))),
            (Err(error), _) => Err((node.position_of("kind"), error.to_string())),
        }
    }
}

/// The kind of one of Evenkeel's own documents. A misspelt one must not be skipped: its tests would not run.
fn own_kind(node: &Node, api_version: &str, kind: &str) -> Result<EvenkeelKind, (Position, String)> {
    if api_version != EVENKEEL_VERSION {
        let message = format!("unknown apiVersion {api_version:?}: use {EVENKEEL_VERSION}");
        return Err((node.position_of("apiVersion"), message));
    }
    match kind {
        "ClassificationTest" => Ok(EvenkeelKind::ClassificationTest),
        "Workload" => Ok(EvenkeelKind::Workload),
        _ => {
            let message = format!("unknown kind {kind:?} of {EVENKEEL_GROUP}: use ClassificationTest or Workload");
            Err((node.position_of("kind"), message))
        }
    }
}

fn is_of_group(api_version: &str) -> bool {
    api_version.split_once('/').is_some_and(|(group, _)| group == GROUP)
}

// === impl FileDocument ===

impl FileDocument {
    /// Whether the document is one of Evenkeel's own, of that kind.
    pub(super) fn is_of(&self, kind: EvenkeelKind) -> bool {
        self.content == Content::Evenkeel(kind)
    }
}
