//! Which fields an applied object owns: what it says, and nothing that it leaves out (API-127, API-135).

use std::borrow::Cow;

use serde_json::Value;

use super::element::Element;
use super::field_set::FieldSet;
use super::ownership::Ownership;

/// The fields of an object that was sent to be applied.
pub(crate) fn owned_fields(value: &Value, ownership: Ownership) -> FieldSet {
    let mut set = FieldSet::default();
    match (ownership, value) {
        (Ownership::Whole, _) => set.itself = true,
        (Ownership::Fields(schema), Value::Object(members)) => {
            for (name, value) in members {
                let mut below = owned_fields(value, Ownership::of_named(schema, name));
                // An explicit `null` or empty object is a value like any other.
                below.itself |= value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                set.insert(Element::Field(Cow::Owned(name.clone())), below);
            }
        }
        (Ownership::Keys, Value::Object(members)) => {
            for name in members.keys() {
                set.insert(Element::Field(Cow::Owned(name.clone())), FieldSet::leaf());
            }
        }
        (Ownership::Elements, Value::Array(items)) => {
            for item in items {
                set.insert(Element::value(item), FieldSet::leaf());
            }
        }
        (Ownership::Members { shape, .. }, Value::Array(items)) => {
            for item in items {
                let mut below = owned_fields(item, Ownership::of_member(shape));
                below.itself = true;
                set.insert(ownership.element_of(item).unwrap_or(Element::Index(0)), below);
            }
        }
        _ => {}
    }
    set
}
