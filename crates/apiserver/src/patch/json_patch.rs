//! JSON patch: RFC 6902 (API-117, API-118).

use evenkeel_api::decode::{Document, Node, Value as NodeValue};
use serde_json::Value;

use super::document::{duplicates, read, type_name};
use super::json::json_of;
use super::patched::PatchedDocument;
use super::pointer::{PointerTarget, get, index, is_absent_member, place};
use crate::failure::Failure;

/// How many operations a patch may have (API-108).
const OPERATIONS_MAX: usize = 10_000;
/// How many values the operations of one patch may copy, move and look at, all together. A patch can ask for the same
/// large value again and again.
const WORK_MAX: usize = 1 << 22;
/// How many bytes of JSON the operations of one patch may copy: as many as a request may have (API-93).
const COPIED_BYTES_MAX: usize = 3 << 20;
/// A value takes at least so many bytes of that. In memory even an empty object takes as many, and the values that a patch
/// makes are held several times: in the document, and while it is decoded and compared.
const VALUE_BYTES_MIN: usize = 64;
/// How deep the patched document may be nested; what can be read is nested no deeper.
const DEPTH_MAX: usize = 128;
/// The members that an operation may have.
const MEMBERS: [&str; 4] = ["op", "from", "path", "value"];

/// One operation.
struct Operation {
    op: String,
    path: String,
    from: String,
    value: Value,
}

/// The document while it is being patched, and what may still be done to it.
struct Patcher {
    document: Value,
    work_left: usize,
    bytes_left: usize,
}

/// Why an operation failed.
enum Failed {
    /// The patch does not fit the document.
    Rejected,
    /// The patch asks for too much.
    TooLarge,
}

/// The object with a JSON patch applied to it.
pub fn json_patch(document: Value, patch: &[u8]) -> Result<PatchedDocument, Failure> {
    let patch = read(patch)?;
    let operations = operations(&patch)?;
    if operations.len() > OPERATIONS_MAX {
        return Err(Failure::too_large(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    let mut dropped = duplicates(&patch);
    dropped.extend(unknown_members(&patch));
    let dropped = dropped.into_iter().map(|text| format!("json patch {text}")).collect();
    let mut patcher = Patcher { document, work_left: WORK_MAX, bytes_left: COPIED_BYTES_MAX };
    for operation in operations {
        patcher.apply(operation).map_err(|failed| match failed {
            Failed::Rejected => Failure::rejected_patch(),
            Failed::TooLarge => {
                Failure::too_large(format!("limit of what a JSON patch may copy is {COPIED_BYTES_MAX}"))
            }
        })?;
    }
    Ok(PatchedDocument::new(patcher.document, dropped))
}

fn operations(patch: &Document) -> Result<Vec<Operation>, Failure> {
    match &patch.root.value {
        NodeValue::List(items) => items.iter().map(Operation::read).collect(),
        NodeValue::Null => Ok(Vec::new()),
        other => Err(cannot_unmarshal(other, "value of type []handlers.jsonPatchOp")),
    }
}

fn cannot_unmarshal(value: &NodeValue, into: &str) -> Failure {
    let found = type_name(value).unwrap_or("null");
    Failure::bad_request(format!("error decoding patch: json: cannot unmarshal {found} into Go {into}"))
}

fn unknown_members(patch: &Document) -> Vec<String> {
    let NodeValue::List(items) = &patch.root.value else { return Vec::new() };
    let mut unknown = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let NodeValue::Map(members) = &item.value else { continue };
        let names = members.iter().map(|member| member.key.as_str()).filter(|name| !MEMBERS.contains(name));
        unknown.extend(names.map(|name| format!("unknown field {:?}", format!("[{index}].{name}"))));
    }
    unknown
}

// === impl Operation ===

impl Operation {
    fn read(node: &Node) -> Result<Self, Failure> {
        match &node.value {
            NodeValue::Map(_) | NodeValue::Null => {}
            other => return Err(cannot_unmarshal(other, "value of type handlers.jsonPatchOp")),
        }
        let text = |name: &str| match node.get(name).map(|node| &node.value) {
            None | Some(NodeValue::Null) => Ok(String::new()),
            Some(NodeValue::String(text)) => Ok(text.clone()),
            Some(other) => Err(cannot_unmarshal(other, &format!("struct field jsonPatchOp.{name} of type string"))),
        };
        let value = node.get("value").map_or(Ok(Value::Null), json_of);
        Ok(Self {
            op: text("op")?,
            path: text("path")?,
            from: text("from")?,
            value: value.map_err(|_| Failure::bad_request("invalid JSON patch"))?,
        })
    }
}

// === impl Patcher ===

impl Patcher {
    fn apply(&mut self, operation: Operation) -> Result<(), Failed> {
        let Operation { op, path, from, value } = operation;
        match op.as_str() {
            "add" => self.add(&path, value),
            "remove" => self.remove(&path).map(drop),
            "replace" => self.replace(&path, value),
            "move" => {
                let value = self.remove(&from)?;
                self.add(&path, value)
            }
            "copy" => {
                let value = self.copy(&from)?;
                self.add(&path, value)
            }
            "test" => match get(&self.document, &path) {
                Some(found) if *found == value => Ok(()),
                // A member that is not there reads as null.
                None if value.is_null() && is_absent_member(&self.document, &path) => Ok(()),
                _ => Err(Failed::Rejected),
            },
            _ => Err(Failed::Rejected),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), Failed> {
        self.check_depth(path, &value)?;
        let PointerTarget { parent, last } = place(&mut self.document, path).ok_or(Failed::Rejected)?;
        match parent {
            Value::Object(members) => {
                members.insert(last, value);
                Ok(())
            }
            Value::Array(items) => {
                // There is one more place than there are elements: that behind the last.
                let place = if last == "-" { Some(items.len()) } else { index(&last, items.len() + 1) };
                let place = place.ok_or(Failed::Rejected)?;
                // Everything behind the place has to move.
                spend(&mut self.work_left, items.len() - place)?;
                items.insert(place, value);
                Ok(())
            }
            _ => Err(Failed::Rejected),
        }
    }

    fn remove(&mut self, path: &str) -> Result<Value, Failed> {
        let PointerTarget { parent, last } = place(&mut self.document, path).ok_or(Failed::Rejected)?;
        match parent {
            Value::Object(members) => members.remove(&last).ok_or(Failed::Rejected),
            Value::Array(items) => {
                let place = index(&last, items.len()).ok_or(Failed::Rejected)?;
                spend(&mut self.work_left, items.len() - place)?;
                Ok(items.remove(place))
            }
            _ => Err(Failed::Rejected),
        }
    }

    /// A member that is not there yet is added.
    fn replace(&mut self, path: &str, value: Value) -> Result<(), Failed> {
        self.check_depth(path, &value)?;
        // The whole document may be replaced too, by another one.
        if path.is_empty() && (value.is_object() || value.is_array()) {
            self.document = value;
            return Ok(());
        }
        let PointerTarget { parent, last } = place(&mut self.document, path).ok_or(Failed::Rejected)?;
        match parent {
            Value::Object(members) => {
                members.insert(last, value);
                Ok(())
            }
            Value::Array(items) => {
                let place = index(&last, items.len()).ok_or(Failed::Rejected)?;
                items[place] = value;
                Ok(())
            }
            _ => Err(Failed::Rejected),
        }
    }

    fn copy(&mut self, from: &str) -> Result<Value, Failed> {
        let value = get(&self.document, from).ok_or(Failed::Rejected)?;
        let Size { values, bytes, .. } = Size::of(value);
        spend(&mut self.work_left, values)?;
        spend(&mut self.bytes_left, bytes.max(values * VALUE_BYTES_MIN))?;
        Ok(value.clone())
    }

    /// Values are put into each other, so that each operation could make the document deeper.
    fn check_depth(&mut self, path: &str, value: &Value) -> Result<(), Failed> {
        let Size { values, depth, .. } = Size::of(value);
        spend(&mut self.work_left, values)?;
        let steps = path.bytes().filter(|byte| *byte == b'/').count();
        if steps + depth > DEPTH_MAX { Err(Failed::TooLarge) } else { Ok(()) }
    }
}

fn spend(left: &mut usize, amount: usize) -> Result<(), Failed> {
    *left = left.checked_sub(amount).ok_or(Failed::TooLarge)?;
    Ok(())
}

/// How large a value is.
#[derive(Default, Clone, Copy)]
struct Size {
    values: usize,
    bytes: usize,
    depth: usize,
}

// === impl Size ===

impl Size {
    fn of(value: &Value) -> Self {
        let own = |bytes| Self { values: 1, bytes, depth: 0 };
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => own(0),
            Value::String(text) => own(text.len()),
            Value::Array(items) => items.iter().map(Self::of).fold(own(0), Self::around),
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    let size = Self::of(value);
                    Self { bytes: size.bytes + name.len(), ..size }
                };
                members.iter().map(member).fold(own(0), Self::around)
            }
        }
    }

    /// The size of a value with one more value in it.
    fn around(self, inner: Self) -> Self {
        Self {
            values: self.values + inner.values,
            bytes: self.bytes + inner.bytes,
            depth: self.depth.max(inner.depth + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn api_117_a_member_that_is_not_there_reads_as_null() {
        let holds = |path: &str, value: Value| {
            let patch = json!([{"op": "test", "path": path, "value": value}]).to_string();
            json_patch(json!({"a": {"b": 1}, "list": [1], "n": null}), patch.as_bytes()).is_ok()
        };
        assert!(holds("/x", Value::Null) && holds("/a/x", Value::Null) && holds("/n", Value::Null));
        assert!(!holds("/x", json!(1)) && !holds("/a/b", Value::Null));
        assert!(!holds("/x/y", Value::Null) && !holds("/list/1", Value::Null) && !holds("", Value::Null));
    }

    #[test]
    fn api_118_negative_indexes_count_from_the_end() {
        let patched = |operation: Value| {
            let patched = json_patch(json!({"l": [1, 2, {"a": 3}]}), json!([operation]).to_string().as_bytes());
            patched.ok().map(|patched| patched.value["l"].clone())
        };
        for (operation, list) in [
            (json!({"op": "remove", "path": "/l/-1"}), Some(json!([1, 2]))),
            (json!({"op": "remove", "path": "/l/-3"}), Some(json!([2, {"a": 3}]))),
            (json!({"op": "remove", "path": "/l/-4"}), None),
            (json!({"op": "replace", "path": "/l/-2", "value": 9}), Some(json!([1, 9, {"a": 3}]))),
            (json!({"op": "replace", "path": "/l/-1/a", "value": 9}), Some(json!([1, 2, {"a": 9}]))),
            (json!({"op": "replace", "path": "/l/3", "value": 9}), None),
            // One more place than elements: behind the last.
            (json!({"op": "add", "path": "/l/-1", "value": 9}), Some(json!([1, 2, {"a": 3}, 9]))),
            (json!({"op": "add", "path": "/l/-4", "value": 9}), Some(json!([9, 1, 2, {"a": 3}]))),
            (json!({"op": "add", "path": "/l/-5", "value": 9}), None),
            (json!({"op": "add", "path": "/l/4", "value": 9}), None),
            (json!({"op": "test", "path": "/l/-2", "value": 2}), Some(json!([1, 2, {"a": 3}]))),
            (json!({"op": "move", "from": "/l/-1", "path": "/l/0"}), Some(json!([{"a": 3}, 1, 2]))),
        ] {
            assert_eq!(patched(operation.clone()), list, "{operation}");
        }
    }

    #[test]
    fn api_118_the_whole_document_can_be_replaced() {
        let patched = |value: Value| {
            let patch = json!([{"op": "replace", "path": "", "value": value}]).to_string();
            json_patch(json!({"a": 1}), patch.as_bytes()).ok().map(|patched| patched.value)
        };
        assert_eq!(patched(json!({})), Some(json!({})));
        assert_eq!(patched(json!({"b": 2})), Some(json!({"b": 2})));
        assert_eq!(patched(json!(5)), None);
        assert_eq!(patched(Value::Null), None);
    }
}
