//! `ManagedFieldsBuilder`: builds the fields that a manager owns.

use crate::Version;
use crate::meta::{FieldSet, ManagedFieldsEntry, Time};

/// Builds the fields that a manager owns. By default, they are owned by updates in `v1`.
///
/// ```
/// use evenkeel_api::v1::FlowSchema;
/// use serde_json::json;
///
/// let schema = FlowSchema::builder("batch")
///     .priority_level("tenants")
///     .managed_by("deployer", |m| m.applied().fields(json!({"f:spec": {"f:matchingPrecedence": {}}})))
///     .build();
/// assert_eq!(schema.metadata.managed_fields[0].operation, "Apply");
/// ```
#[derive(Debug, Clone)]
#[must_use = "the fields do nothing unless they are returned from the closure"]
pub struct ManagedFieldsBuilder(ManagedFieldsEntry);

// === impl ManagedFieldsBuilder ===

impl ManagedFieldsBuilder {
    pub(super) fn new(manager: String) -> Self {
        let entry = ManagedFieldsEntry {
            manager,
            operation: "Update".to_owned(),
            fields_type: "FieldsV1".to_owned(),
            fields_v1: Some(FieldSet::from(serde_json::Value::Object(serde_json::Map::new()))),
            ..ManagedFieldsEntry::default()
        };
        Self(entry).version(Version::V1)
    }

    /// The manager owns the fields because it applied them, and not because it wrote to them.
    pub fn applied(mut self) -> Self {
        "Apply".clone_into(&mut self.0.operation);
        self
    }

    /// The version in which the fields are named.
    pub fn version(mut self, version: Version) -> Self {
        version.api_version().clone_into(&mut self.0.api_version);
        self
    }

    /// The fields, as a tree of `f:NAME`, `k:{KEYS}` and `v:VALUE`.
    pub fn fields(mut self, fields: serde_json::Value) -> Self {
        self.0.fields_v1 = Some(FieldSet::from(fields));
        self
    }

    /// The subresource through which the fields were set.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.0.subresource = subresource.into();
        self
    }

    /// When the manager last changed one of the fields.
    pub fn at(mut self, time: Time) -> Self {
        self.0.time = Some(time);
        self
    }

    pub(super) fn into_entry(self) -> ManagedFieldsEntry {
        self.0
    }
}
