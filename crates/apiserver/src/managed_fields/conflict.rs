//! The error of an apply that would change fields of other owners (API-129).

use evenkeel_api::meta::StatusCause;
use evenkeel_api::validate::Value as Shown;

use super::field_set::FieldSet;
use super::owner::{Operation, Owner};
use crate::failure::Failure;

/// The fields of one owner that an apply wants to change.
pub(crate) struct Conflict {
    /// The identity of the owner, for sorting.
    order: (String, Operation, &'static str, String),
    /// The owner as messages name it.
    owner: String,
    /// The fields, in the version of the owner.
    pub(crate) fields: FieldSet,
}

// === impl Conflict ===

impl Conflict {
    pub(crate) fn new(owner: &Owner, fields: FieldSet) -> Self {
        let version = owner.version.api_version();
        Self {
            order: (owner.manager.clone(), owner.operation, version, owner.subresource.clone()),
            owner: name(owner),
            fields,
        }
    }
}

/// The refusal of an apply with these conflicts; at least one.
pub(crate) fn refuse(mut conflicts: Vec<Conflict>) -> Failure {
    conflicts.sort_by(|one, other| one.order.cmp(&other.order));
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for conflict in &conflicts {
        lines.push(format!("conflicts with {}:", conflict.owner));
        for field in conflict.fields.paths() {
            lines.push(format!("- {field}"));
            let message = format!("conflict with {}", conflict.owner);
            causes.push(StatusCause { reason: "FieldManagerConflict", message, field });
        }
    }
    let message = match causes.as_slice() {
        [cause] => format!("Apply failed with 1 conflict: {}: {}", cause.message, cause.field),
        causes => format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n")),
    };
    Failure::apply_conflict(message, causes)
}

fn name(owner: &Owner) -> String {
    let mut name = Shown::text(&owner.manager).to_string();
    if !owner.subresource.is_empty() {
        name += &format!(" with subresource {}", Shown::text(&owner.subresource));
    }
    if owner.operation == Operation::Update {
        name += &format!(" using {}", owner.version.api_version());
    }
    name
}
