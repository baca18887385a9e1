//! `ApplyBody`: the object in the body of an apply patch, before anybody knows the stored one (API-124, API-125).

use evenkeel_api::decode::{Document, Duplicate, Node, SyntaxError, Value as NodeValue, parse_json, parse_yaml};
use evenkeel_api::schema::object_type;
use evenkeel_api::{GROUP, Kind, Version};
use serde_json::Value;

use super::schema_check::check;
use crate::failure::Failure;
use crate::patch::{FieldValidation, json_of};

/// A partial object that was sent to be applied. It fits the schema of its version.
#[derive(Debug, Clone)]
pub struct ApplyBody {
    pub(super) value: Value,
    pub(super) kind: Kind,
    pub(super) version: Version,
    duplicates: Vec<Duplicate>,
}

// === impl ApplyBody ===

impl ApplyBody {
    /// Reads the body of an apply patch to an object of that kind in that version.
    pub fn parse(text: &[u8], kind: Kind, version: Version) -> Result<Self, Failure> {
        let (value, duplicates) = match read(text)? {
            Some(document) => (json(&document.root)?, document.duplicates),
            None => (Value::Null, Vec::new()),
        };
        check_type(&value, kind, version)?;
        let metadata = &value["metadata"];
        if metadata["managedFields"].is_array() {
            return Err(Failure::bad_request("metadata.managedFields must be nil"));
        }
        check(&value, object_type(version, kind)).map_err(|problem| {
            let name = metadata["name"].as_str().unwrap_or_default();
            Failure::plain(format!(
                "failed to create typed patch object (/{name}; {GROUP}/{version}, Kind={kind}): {problem}"
            ))
        })?;
        Ok(Self { value, kind, version, duplicates })
    }

    /// The names that occur twice in one map: warnings or a refusal, as `fieldValidation` says. A refusal comes after
    /// everything else that can be wrong with an apply.
    pub fn duplicates(&self, validation: FieldValidation) -> Result<Vec<String>, Failure> {
        let text =
            |duplicate: &Duplicate| format!("line {}: key {:?} already set in map", duplicate.at.line, duplicate.key);
        let texts: Vec<_> = self.duplicates.iter().map(text).collect();
        match validation {
            FieldValidation::Ignore => Ok(Vec::new()),
            FieldValidation::Strict if !texts.is_empty() => Err(Failure::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                texts.join("\n  ")
            ))),
            FieldValidation::Warn | FieldValidation::Strict => Ok(texts),
        }
    }
}

/// The first document of the body, if it has one with content.
fn read(text: &[u8]) -> Result<Option<Document>, Failure> {
    let starts_like_json = text.trim_ascii_start().starts_with(b"{");
    if starts_like_json && let Ok(document) = parse_json(text) {
        return Ok(Some(document));
    }
    let refuse = |error: SyntaxError| {
        let why = if starts_like_json {
            "error decoding patch: error converting YAML to JSON"
        } else {
            "error encoding patch"
        };
        Failure::bad_request(format!("{why}: yaml: {error}"))
    };
    Ok(parse_yaml(text).map_err(refuse)?.into_iter().next())
}

fn json(root: &Node) -> Result<Value, Failure> {
    let found = match &root.value {
        NodeValue::Map(_) | NodeValue::Null => None,
        NodeValue::Bool(_) => Some("bool"),
        NodeValue::Number(_) => Some("number"),
        NodeValue::String(_) => Some("string"),
        NodeValue::List(_) => Some("array"),
    };
    let refuse = |detail: String| {
        Failure::bad_request(format!("error decoding patch: error unmarshaling JSON: while decoding JSON: {detail}"))
    };
    match found {
        Some(found) => {
            Err(refuse(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")))
        }
        None => json_of(root)
            .map_err(|number| refuse(format!("json: cannot unmarshal number {number} into Go value of type float64"))),
    }
}

/// Both `apiVersion` and `kind` must be those of the endpoint.
fn check_type(value: &Value, kind: Kind, version: Version) -> Result<(), Failure> {
    let found_kind = value["kind"].as_str().unwrap_or_default();
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    if found_kind == kind.name() && api_version == version.api_version() {
        return Ok(());
    }
    let parts: Vec<_> = api_version.split('/').collect();
    let shown = match parts.as_slice() {
        [version] => format!("/{version}, Kind={found_kind}"),
        [group, version] => format!("{group}/{version}, Kind={found_kind}"),
        _ => "/, Kind=".to_owned(),
    };
    Err(Failure::bad_request(format!("invalid object type: {shown}")))
}
