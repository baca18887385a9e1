//! `ManagedFieldsEntry`: which fields a manager owns, for server-side apply.

use serde::{Deserialize, Serialize};

use super::Time;
use crate::schema::{Described, Shape, TypeName, declare_type};

declare_type! {
    /// The fields that one manager owns by one kind of operation in one version.
    pub struct ManagedFieldsEntry(TypeName::Fixed("ManagedFieldsEntry"), Meta) {
        /// The name of the manager.
        manager "manager" = 1: String [],
        /// How the manager came to own the fields: `Apply` or `Update`.
        operation "operation" = 2: String [],
        /// The version in which the fields are named.
        api_version "apiVersion" = 3: String [],
        /// When the manager last changed one of them.
        time "time" = 4: Option<Time> [],
        /// The form of `fieldsV1`; there is only `FieldsV1`.
        fields_type "fieldsType" = 6: String [],
        /// The fields themselves.
        fields_v1 "fieldsV1" = 7: Option<FieldSet> [],
        /// The subresource through which the fields were set, if any.
        subresource "subresource" = 8: String [],
    }
}

/// The set of owned fields as it stands on the wire (API-135), a tree of JSON objects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FieldSet(pub serde_json::Value);

impl Described for FieldSet {
    const SHAPE: Shape = Shape::FieldSet;

    fn is_absent(&self) -> bool {
        false
    }
}
