//! The fields of the metadata that an update may not change (API-35).

use std::collections::BTreeSet;

use super::METADATA;
use crate::meta::ObjectMeta;
use crate::validate::{FieldError, Value};

pub(in crate::validate) fn check(new: &ObjectMeta, old: &ObjectMeta, errors: &mut Vec<FieldError>) {
    if old.deletion_timestamp.is_some() {
        check_finalizers(&new.finalizers, &old.finalizers, errors);
    }
    if !new.uid.is_empty() && new.uid != old.uid {
        errors.push(immutable("uid", &Value::json(&new.uid)));
    }
    if new.deletion_timestamp.is_some() && new.deletion_timestamp != old.deletion_timestamp {
        errors.push(immutable("deletionTimestamp", &Value::json(&new.deletion_timestamp)));
    }
    let (new_seconds, old_seconds) = (new.deletion_grace_period_seconds, old.deletion_grace_period_seconds);
    if new_seconds.is_some() && new_seconds != old_seconds {
        errors.push(immutable("deletionGracePeriodSeconds", &Value::json(&new_seconds)));
    }
}

/// Checks that an object that is being deleted is held back by nobody new.
fn check_finalizers(new: &[String], old: &[String], errors: &mut Vec<FieldError>) {
    let old: BTreeSet<_> = old.iter().collect();
    let added: BTreeSet<_> = new.iter().filter(|finalizer| !old.contains(finalizer)).collect();
    if added.is_empty() {
        return;
    }
    let added: Vec<_> = added.into_iter().map(|finalizer| Value::text(finalizer).to_string()).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    errors.push(FieldError::forbidden(METADATA.child("finalizers"), &detail));
}

fn immutable(field: &'static str, value: &Value) -> FieldError {
    FieldError::invalid(METADATA.child(field), value, "field is immutable")
}
