//! The members of a strategic merge patch that say how to merge, rather than what (API-121).

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::patch::printed::printed;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// The treatment of a whole object or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// The patch takes its place.
    Replace,
    /// The value is deleted.
    Delete,
}

/// Takes `$patch` out of an object of a patch. Another value than the known ones is refused.
pub(super) fn take_strategy(patch: &mut Map<String, Value>) -> Result<Option<Strategy>, Failure> {
    match patch.remove(PATCH) {
        None => Ok(None),
        Some(Value::String(text)) if text == "replace" => Ok(Some(Strategy::Replace)),
        Some(Value::String(text)) if text == "delete" => Ok(Some(Strategy::Delete)),
        Some(other) => {
            let (found, map) = (printed(&other), printed(&Value::Object(std::mem::take(patch))));
            Err(Failure::bad_request(format!(
                "unknown patch type {found:?} in map {map}: use \"replace\" or \"delete\""
            )))
        }
    }
}

/// Takes `$retainKeys` out of an object of a patch: the members that the object keeps. All that the patch sets must be
/// among them.
pub(super) fn take_retained(patch: &mut Map<String, Value>) -> Result<Option<HashSet<String>>, Failure> {
    let Some(value) = patch.remove(RETAIN_KEYS) else { return Ok(None) };
    let names: Option<HashSet<String>> =
        value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
    let is_retained = |names: &HashSet<String>| {
        patch.iter().all(|(name, value)| value.is_null() || is_directive(name) || names.contains(name))
    };
    let names = names.filter(is_retained);
    names.map(Some).ok_or_else(|| Failure::bad_request("invalid patch format of retainKeys"))
}

/// The list that a member fixes the order of.
pub(super) fn ordered(name: &str) -> Option<&str> {
    name.strip_prefix(ORDER)
}

/// The list that a member takes elements away from.
pub(super) fn deleted_from(name: &str) -> Option<&str> {
    name.strip_prefix(DELETE)
}

/// Whether an element of a list is there for what it says of the list or of another element.
pub(super) fn is_special(item: &Value) -> bool {
    item.get(PATCH).is_some()
}

/// Whether a member says how to merge.
pub(super) fn is_directive(name: &str) -> bool {
    name == PATCH || name == RETAIN_KEYS || ordered(name).is_some() || deleted_from(name).is_some()
}
