//! The writer of an object, its version and its endpoint.

use std::sync::LazyLock;

use evenkeel_api::Version;
use serde_json::json;

use super::field_set::FieldSet;

/// The writer of an object, and the way it writes.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer<'a> {
    /// The name of the field manager (API-80).
    pub manager: &'a str,
    /// The version of the request.
    pub version: Version,
    /// The endpoint that the request writes to.
    pub endpoint: WriteTarget,
}

/// The endpoint that a request writes to.
///
/// Not `#[non_exhaustive]`: an object has no other parts that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteTarget {
    /// The object itself, all but its status.
    Object,
    /// The subresource `status`.
    Status,
}

/// The name of a manager that gives none.
const UNKNOWN: &str = "unknown";

/// The fields that no manager ever owns (API-131).
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let fields = json!({
        "f:apiVersion": {},
        "f:kind": {},
        "f:metadata": {
            ".": {},
            "f:creationTimestamp": {},
            "f:generation": {},
            "f:managedFields": {},
            "f:name": {},
            "f:namespace": {},
            "f:resourceVersion": {},
            "f:selfLink": {},
            "f:uid": {},
        },
    });
    FieldSet::from_fields_v1(&fields).unwrap_or_default()
});

// === impl Writer ===

impl<'a> Writer<'a> {
    /// The name under which the manager appears.
    pub(crate) fn name(&self) -> &'a str {
        if self.manager.is_empty() { UNKNOWN } else { self.manager }
    }
}

// === impl WriteTarget ===

impl WriteTarget {
    /// The name of the subresource in a `managedFields` entry.
    pub(crate) const fn subresource(self) -> &'static str {
        match self {
            Self::Object => "",
            Self::Status => "status",
        }
    }

    /// Takes out the fields that requests to this endpoint cannot change, and so do not own (API-131).
    pub(crate) fn reset(self, set: &mut FieldSet) {
        match self {
            Self::Object => set.remove_field("status"),
            Self::Status => {
                set.remove_field("metadata");
                set.remove_field("spec");
            }
        }
    }
}

/// Takes out what nobody ever owns.
pub(crate) fn strip(set: &mut FieldSet) {
    set.subtract(&NEVER_OWNED);
}
