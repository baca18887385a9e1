//! Strategic merge patch: a merge patch that knows the schema (API-120 to API-122).

mod directive;
mod list;
mod object;
mod order;
mod restore;

use evenkeel_api::decode::Value as NodeValue;
use evenkeel_api::schema::object_type;
use evenkeel_api::{Kind, Version};
use serde_json::{Map, Value};

use super::document::{duplicates, read, type_name};
use super::json::json_of;
use super::patched::PatchedDocument;
use crate::failure::Failure;
use object::{Merger, Scope};

pub(super) use restore::restore;

/// The object of that kind, written in that version, with a strategic merge patch applied to it.
pub fn strategic_merge_patch(
    kind: Kind,
    version: Version,
    document: Value,
    patch: &[u8],
) -> Result<PatchedDocument, Failure> {
    let patch = read(patch)?;
    let members = match (&patch.root.value, json_of(&patch.root)) {
        (NodeValue::Null, _) => Map::new(),
        (NodeValue::Map(_), Ok(Value::Object(members))) => members,
        (NodeValue::Map(_), _) => return Err(Failure::bad_request("invalid JSON patch")),
        (other, _) => {
            let found = type_name(other).unwrap_or_default();
            return Err(Failure::bad_request(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let shown = Value::Object(members.clone());
    let Value::Object(mut object) = document else { return Err(Failure::bad_request("invalid JSON document")) };
    Merger { version }.merge(&mut object, members, Scope::Fields(object_type(version, kind)))?;
    Ok(PatchedDocument::of_strategic(Value::Object(object), duplicates(&patch), shown))
}
