//! Whether the members of a patched object are of the right sort at all: objects, lists and maps where the type has them
//! (API-122).

use evenkeel_api::schema::{Shape, TypeSchema, object_type};
use evenkeel_api::{Spec, Version};
use serde_json::Value;

/// The fault of the first member that is not of the right sort. Other mistakes are left to the decoder.
pub(in crate::patch) fn restore<S: Spec>(object: &Value, version: Version) -> Result<(), String> {
    check_object(object, object_type(version, S::KIND))
}

fn check_object(object: &Value, schema: &TypeSchema) -> Result<(), String> {
    let members = match object {
        Value::Object(members) => members,
        Value::Null => return Ok(()),
        other => return Err(format!("cannot restore struct from: {}", sort_of(other))),
    };
    for field in schema.fields {
        if let Some(value) = members.get(field.name) {
            check(value, field.shape)?;
        }
    }
    Ok(())
}

fn check(value: &Value, shape: Shape) -> Result<(), String> {
    match (shape, value) {
        (_, Value::Null) | (Shape::StringMap, Value::Object(_)) => Ok(()),
        (Shape::Object(schema), _) => check_object(value, schema),
        (Shape::List(item), Value::Array(items)) => items.iter().try_for_each(|value| check(value, *item)),
        (Shape::List(_), _) => Err(format!("cannot restore slice from: {}", sort_of(value))),
        (Shape::StringMap, _) => Err(format!("cannot restore map from: {}", sort_of(value))),
        _ => Ok(()),
    }
}

fn sort_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
