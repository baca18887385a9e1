//! Owner references: what each must say, and that at most one is the controller (API-34).

use super::METADATA;
use crate::meta::OwnerReference;
use crate::validate::{FieldError, Path, Value};

pub(super) fn check(owners: &[OwnerReference], errors: &mut Vec<FieldError>) {
    let path = METADATA.child("ownerReferences");
    for (index, owner) in owners.iter().enumerate() {
        check_owner(owner, &path.index(index), errors);
    }
    let mut controllers = owners.iter().filter(|owner| owner.controller == Some(true));
    // A third one is not worth a problem of its own: each would show the whole list again.
    if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
            first.kind, first.name, second.kind, second.name
        );
        errors.push(FieldError::invalid(path, &Value::json(owners), detail));
    }
}

fn check_owner(owner: &OwnerReference, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let members =
        [("apiVersion", &owner.api_version), ("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)];
    for (name, value) in members {
        if value.is_empty() {
            errors.push(FieldError::required(path.child(name), "must not be empty"));
        } else if name == "apiVersion" && value.matches('/').count() > 1 {
            let detail = "must be <group>/<version> or <version>";
            errors.push(FieldError::invalid(path.child(name), &Value::text(value), detail));
        }
    }
    // Events come and go by the thousand; nothing may depend on one.
    if owner.api_version == "v1" && owner.kind == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(path, &Value::json(owner), detail));
    }
}
