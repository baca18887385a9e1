//! Mandatory objects: those that exist in every server, and whose specification is fixed (API-52, API-53).

use super::rules::{Mandatory, Rules};
use super::{EmptyRules, FieldError, Path, Value};

/// Checks that a mandatory object says what it must.
pub(super) fn check<S: Rules>(
    name: &str,
    spec: &S,
    empty_rules: EmptyRules,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(Mandatory { spec: fixed, except }) = spec.mandatory(name) else { return };
    if *spec != fixed {
        let detail = format!("spec of '{name}'{except} must equal the fixed value");
        errors.push(FieldError::invalid(path, &Value::internal(spec, empty_rules), detail));
    }
}
