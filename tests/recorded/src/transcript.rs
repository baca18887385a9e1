//! Recorded conversations with a kube-apiserver: their form, and how to read them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{conformance, document, has_other_conversations};

/// One recorded conversation.
#[derive(Debug, Deserialize)]
pub struct Transcript {
    /// The name, which is the file's.
    pub name: String,
    /// The rules of the specification that it shows at work.
    pub rules: Vec<String>,
    /// What was said, in order.
    pub steps: Vec<Step>,
}

/// One exchange. Steps that only wait or read from a watch have no request.
#[derive(Debug, Deserialize)]
pub struct Step {
    /// What was asked.
    pub request: Option<Request>,
    /// What was answered.
    pub response: Option<Response>,
    /// What a watch that was opened before had sent by then.
    #[serde(default)]
    pub events: Vec<Value>,
}

/// A recorded request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query: an object, or a list of pairs.
    #[serde(default)]
    pub query: Value,
    /// Header fields; `null` takes a default one away.
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    body: Option<Value>,
    raw_body: Option<String>,
}

/// A recorded answer.
#[derive(Debug, Deserialize)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The header fields that count; `Warning` is a list.
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// The body, if it is JSON.
    pub body: Option<Value>,
    /// The body, if it is YAML.
    pub yaml: Option<Value>,
    /// How JSON was laid out, where that counts: `pretty` or `compact`.
    #[serde(default)]
    pub format: String,
    /// `subset` when the body may have further members.
    #[serde(default)]
    pub mode: String,
}

/// The body of a recorded request.
#[derive(Debug, Clone)]
pub enum Body {
    /// A JSON value, its placeholders filled in.
    Json(Value),
    /// The text as it was sent.
    Raw(String),
}

/// All conversations whose name starts with one of the prefixes. `None` if `EVENKEEL_CONFORMANCE` names a folder with none
/// of these: it may hold another selection than the repository.
///
/// # Panics
/// If a file cannot be read, if the folder holds no conversation at all, or if the repository's own conversations have
/// none for a prefix: a test would pass without testing.
pub fn transcripts(prefixes: &[&str]) -> Option<Vec<Transcript>> {
    let files = conversations();
    let mut found = Vec::new();
    for prefix in prefixes {
        let before = found.len();
        found.extend(files.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, file)| document(file)));
        if found.len() == before {
            let absent = format!("no transcript in {} starts with {prefix:?}", conformance().display());
            assert!(has_other_conversations(), "{absent}");
            eprintln!("skipped: {absent}");
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The names and files of all conversations, in the order of their names.
fn conversations() -> Vec<(String, PathBuf)> {
    let folder = conformance().join("transcripts");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder entry").path())
        .filter_map(|path| Some((conversation_name(&path)?.to_owned(), path)))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no transcripts in {}", folder.display());
    files
}

/// A conversation's name by the name of its file, which is packed or not.
fn conversation_name(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    name.strip_suffix(".gz").unwrap_or(name).strip_suffix(".json")
}

// === impl Request ===

impl Request {
    /// The body, if there is one.
    pub fn body(&self) -> Option<Body> {
        match (&self.body, &self.raw_body) {
            (Some(json), _) => Some(Body::Json(fill_in(json))),
            (None, Some(text)) => Some(Body::Raw(text.clone())),
            (None, None) => None,
        }
    }

    /// The value of a query parameter.
    pub fn query(&self, name: &str) -> Option<&str> {
        match &self.query {
            Value::Object(members) => members.get(name)?.as_str(),
            Value::Array(pairs) => pairs.iter().find(|pair| pair[0] == name)?[1].as_str(),
            _ => None,
        }
    }
}

/// Stands in for the times that a server had given before.
const SOME_TIME: &str = "2024-01-02T03:04:05Z";

/// Writes out `{{pad:a:100}}` and `{"$repeat": …}`, and some time for `{{time:1}}`; other placeholders stay as they are.
fn fill_in(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("{{time") => Value::String(SOME_TIME.to_owned()),
        Value::String(text) => Value::String(fill_in_pads(text)),
        Value::Array(items) => items.iter().map(fill_in).collect(),
        Value::Object(members) => match members.get("$repeat") {
            Some(repeat) => {
                let count = repeat["count"].as_u64().and_then(|count| usize::try_from(count).ok());
                vec![fill_in(&repeat["item"]); count.expect("a count")].into()
            }
            None => members.iter().map(|(name, value)| (fill_in_pads(name), fill_in(value))).collect(),
        },
        plain => plain.clone(),
    }
}

fn fill_in_pads(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{pad:") {
        let (pad, after) = after.split_once("}}").expect("the end of a pad");
        let (what, count) = pad.rsplit_once(':').expect("a pad of a text and a count");
        written.push_str(before);
        written.push_str(&what.repeat(count.parse().expect("a count")));
        rest = after;
    }
    written + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_folder;

    #[test]
    fn conversations_are_packed_or_not() {
        let names = ["a/crud-x.json", "a/crud-x.json.gz", "a/crud-x.jsonl", "a/notes.md", "a/crud-x.gz"];
        assert_eq!(
            names.map(|file| conversation_name(Path::new(file))),
            [Some("crud-x"), Some("crud-x"), None, None, None]
        );
    }

    #[test]
    fn conversations_are_called_like_their_files_and_name_rules_that_exist() {
        let specification = fs::read_to_string(own_folder().join("../../docs/spec/api.md")).unwrap();
        let mut rules = 0;
        for (name, conversation) in conversations() {
            let conversation: Transcript = document(&conversation);
            assert_eq!(conversation.name, name);
            for rule in &conversation.rules {
                assert!(specification.contains(&format!("\n**{rule}** ")), "{name}: {rule} is not a rule");
                rules += 1;
            }
        }
        assert!(rules > 0, "no conversation names a rule");
    }
}
