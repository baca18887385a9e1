//! The status of both kinds: at most one condition of each type (API-51).

use std::collections::HashSet;

use super::{FieldError, Path, Value};
use crate::v1::Status;

pub(super) fn check(status: &Status, errors: &mut Vec<FieldError>) {
    let path = Path::new("status");
    let conditions = path.child("conditions");
    let mut seen = HashSet::new();
    for (index, condition) in status.conditions.iter().enumerate() {
        let condition = &condition.condition;
        let element = conditions.index(index);
        let path = element.child("type");
        if !seen.insert(condition) {
            errors.push(FieldError::duplicate(path, &Value::json(condition)));
        }
        if condition.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
    }
}
