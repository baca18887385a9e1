//! `ManagedFieldsEntry`: which fields a manager owns, for server-side apply.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Time;
use crate::schema::{Described, Shape, TypeName, declare_type};

declare_type! {
    /// The fields that one manager owns by one kind of operation in one version.
    pub struct ManagedFieldsEntry(TypeName::Fixed("ManagedFieldsEntry"), Meta) {
        /// The name of the manager.
        manager "manager" = 1: String [],
        /// The operation by which the manager owns the fields: `Apply` or `Update`.
        operation "operation" = 2: String [],
        /// The version in which the fields are named.
        api_version "apiVersion" = 3: String [],
        /// When the manager last changed one of them.
        time "time" = 4: Option<Time> [],
        /// The format of `fieldsV1`; always `FieldsV1`.
        fields_type "fieldsType" = 6: String [],
        /// The fields themselves.
        fields_v1 "fieldsV1" = 7: Option<FieldSet> [],
        /// The subresource through which the fields were set, if any.
        subresource "subresource" = 8: String [],
    }
}

/// The set of owned fields as it stands on the wire (API-135): a JSON object of objects.
///
/// It is stored as text, because most objects in memory are never asked who owns their fields: as a tree it would take
/// some twenty times as much memory as the rest of an object.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldSet {
    /// With its members in order, so that equal sets have equal texts.
    json: Box<str>,
}

// === impl FieldSet ===

impl FieldSet {
    /// The set as a tree of `f:NAME`, `k:{KEYS}` and `v:VALUE`.
    pub fn tree(&self) -> Value {
        // The text was written from a tree.
        serde_json::from_str(&self.json).unwrap_or_default()
    }
}

impl From<Value> for FieldSet {
    fn from(tree: Value) -> Self {
        Self { json: tree.to_string().into() }
    }
}

impl Default for FieldSet {
    fn default() -> Self {
        Self::from(Value::Null)
    }
}

impl std::fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FieldSet").field(&self.json).finish()
    }
}

impl Serialize for FieldSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.tree().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl Described for FieldSet {
    const SHAPE: Shape = Shape::FieldSet;

    fn is_absent(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_set_is_the_same_after_it_was_stored() {
        for tree in
            [json!({"f:spec": {".": {}, "f:rules": {}}, "f:metadata": {}}), json!({}), json!([1, "a"]), Value::Null]
        {
            let set = FieldSet::from(tree.clone());
            assert_eq!(set.tree(), tree);
            assert_eq!(serde_json::to_value(&set).unwrap(), tree);
            assert_eq!(serde_json::from_value::<FieldSet>(tree).unwrap(), set);
        }
    }
}
