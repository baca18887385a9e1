//! `fieldsV1`: how a set of fields stands in a `managedFields` entry (API-135).

use serde_json::{Map, Value};

use super::element::Element;
use super::field_set::FieldSet;

/// How deep a set may be nested. Those of the objects of the group need less than ten levels.
const DEPTH_MAX: usize = 64;
/// How many nodes one set may have.
const NODES_MAX: usize = 1 << 17;
/// Stands for the field itself among those below it.
const ITSELF: &str = ".";

/// Something that is not a set of fields, or too large a one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoFieldSet;

/// Counts the nodes that are read.
struct FieldSetReader {
    nodes: usize,
}

// === impl FieldSet ===

impl FieldSet {
    /// Reads a set.
    pub(crate) fn from_fields_v1(value: &Value) -> Result<Self, NoFieldSet> {
        let mut set = FieldSetReader { nodes: 0 }.read(value, 0)?;
        set.itself = false;
        Ok(set)
    }

    /// Writes the set.
    pub(crate) fn to_fields_v1(&self) -> Value {
        let mut members = Map::new();
        if self.itself && self.has_children() {
            members.insert(ITSELF.to_owned(), Value::Object(Map::new()));
        }
        for (element, child) in self.children() {
            members.insert(element.to_text(), child.to_fields_v1());
        }
        Value::Object(members)
    }
}

// === impl FieldSetReader ===

impl FieldSetReader {
    fn read(&mut self, value: &Value, depth: usize) -> Result<FieldSet, NoFieldSet> {
        self.nodes += 1;
        if depth > DEPTH_MAX || self.nodes > NODES_MAX {
            return Err(NoFieldSet);
        }
        let members = match value {
            Value::Object(members) => members,
            Value::Null => return Ok(FieldSet::leaf()),
            _ => return Err(NoFieldSet),
        };
        let mut children = Vec::with_capacity(members.len());
        for (text, below) in members.iter().filter(|(text, _)| *text != ITSELF) {
            children.push((Element::parse(text).ok_or(NoFieldSet)?, self.read(below, depth + 1)?));
        }
        let mut set = FieldSet::of_children(children);
        set.itself = !set.has_children() || members.contains_key(ITSELF);
        Ok(set)
    }
}
