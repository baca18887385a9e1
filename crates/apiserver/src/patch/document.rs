//! Reads the text of a patch.

use evenkeel_api::decode::{Document, Value as NodeValue, parse_json};

use crate::failure::Failure;

/// The patch as a tree, or the refusal of what is not JSON.
pub(super) fn read(patch: &[u8]) -> Result<Document, Failure> {
    parse_json(patch).map_err(|_| Failure::bad_request("invalid JSON patch"))
}

/// The name of a value's type in messages; `None` for `null`.
pub(super) fn type_name(value: &NodeValue) -> Option<&'static str> {
    match value {
        NodeValue::Null => None,
        NodeValue::Bool(_) => Some("bool"),
        NodeValue::Number(_) => Some("number"),
        NodeValue::String(_) => Some("string"),
        NodeValue::List(_) => Some("array"),
        NodeValue::Map(_) => Some("object"),
    }
}

/// The warnings for names that occur twice in the patch itself, each once.
pub(super) fn duplicates(document: &Document) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for duplicate in &document.duplicates {
        let text = format!("duplicate field {:?}", duplicate.path);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}
