//! Merge patch: RFC 7396 (API-119).

use evenkeel_api::decode::Value as NodeValue;
use serde_json::{Map, Value};

use super::document::{duplicates, read, type_name};
use super::json::json_of;
use super::patched::PatchedDocument;
use crate::failure::Failure;

/// The object with a merge patch applied to it.
pub fn merge_patch(document: Value, patch: &[u8]) -> Result<PatchedDocument, Failure> {
    let patch = read(patch)?;
    match &patch.root.value {
        NodeValue::Map(_) => {}
        NodeValue::Null => return Err(Failure::bad_request("Invalid JSON Patch")),
        other => {
            let found = type_name(other).unwrap_or_default();
            return Err(Failure::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
    }
    let members = json_of(&patch.root).map_err(|_| Failure::bad_request("invalid JSON patch"))?;
    let mut merged = document;
    merge(&mut merged, members);
    Ok(PatchedDocument::new(merged, duplicates(&patch)))
}

fn merge(target: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, value) in members {
        if value.is_null() {
            target.remove(&name);
        } else {
            merge(target.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn api_119_the_examples_of_the_rfc() {
        for (mut target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            merge(&mut target, patch);
            assert_eq!(target, expected);
        }
    }
}
