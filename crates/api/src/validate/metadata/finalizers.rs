//! Finalizers: their names, and which two exclude each other (API-33).

use super::METADATA;
use crate::validate::{FieldError, Value, names};

const ORPHAN: &str = "orphan";
const FOREGROUND_DELETION: &str = "foregroundDeletion";
/// The finalizers that need no prefix to say whose they are.
const STANDARD: [&str; 3] = [ORPHAN, FOREGROUND_DELETION, "kubernetes"];

pub(super) fn check(finalizers: &[String], errors: &mut Vec<FieldError>) {
    let path = METADATA.child("finalizers");
    for finalizer in finalizers {
        names::report(errors, &path, finalizer, names::qualified_name(finalizer));
    }
    let has = |name| finalizers.iter().any(|finalizer| finalizer == name);
    if has(ORPHAN) && has(FOREGROUND_DELETION) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, &Value::json(finalizers), detail));
    }
    for (index, finalizer) in finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(path.index(index), &Value::text(finalizer), detail));
        }
    }
}
