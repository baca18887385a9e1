//! Mandatory objects: those that exist in every server, and whose specification is fixed (API-52, API-53).

pub(super) mod flow_schema;
pub(super) mod priority_level;

use super::rules::{Mandatory, Rules};
use super::{FieldError, Path, Value};

/// The name of the mandatory objects that let requests pass at once.
pub(super) const EXEMPT: &str = "exempt";
/// The name of the mandatory objects that take what nothing else matches.
const CATCH_ALL: &str = "catch-all";

/// Checks that a mandatory object says what it must.
pub(super) fn check<S: Rules>(name: &str, spec: &S, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(Mandatory { spec: fixed, except }) = spec.mandatory(name) else { return };
    if *spec != fixed {
        let detail = format!("spec of '{name}'{except} must equal the fixed value");
        errors.push(FieldError::invalid(path, &Value::internal(spec), detail));
    }
}
