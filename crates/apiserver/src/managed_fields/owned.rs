//! Which fields an applied object owns: what it says, and nothing that it leaves out (API-127, API-135).

use std::borrow::Cow;

use serde_json::Value;

use super::element::Element;
use super::field_set::FieldSet;
use super::owned_parts::OwnedParts;

/// The fields of an object that was sent to be applied.
pub(crate) fn owned_fields(value: &Value, parts: OwnedParts) -> FieldSet {
    let field = |name: &String| Element::Field(Cow::Owned(name.clone()));
    let children = match (parts, value) {
        (OwnedParts::Whole, _) => return FieldSet::leaf(),
        (OwnedParts::Fields(schema), Value::Object(members)) => {
            let below = |(name, value): (&String, &Value)| {
                let mut below = owned_fields(value, OwnedParts::of_named(schema, name));
                // An explicit `null` or empty object is a value like any other.
                below.itself |= value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                (field(name), below)
            };
            members.iter().map(below).collect()
        }
        (OwnedParts::Keys, Value::Object(members)) => {
            members.keys().map(|name| (field(name), FieldSet::leaf())).collect()
        }
        (OwnedParts::Elements, Value::Array(items)) => {
            items.iter().map(|item| (Element::value(item), FieldSet::leaf())).collect()
        }
        (OwnedParts::Members { shape, .. }, Value::Array(items)) => {
            let below = |item: &Value| {
                let mut below = owned_fields(item, OwnedParts::of_member(shape));
                below.itself = true;
                Some((parts.element_of(item)?, below))
            };
            items.iter().filter_map(below).collect()
        }
        _ => Vec::new(),
    };
    FieldSet::of_children(children)
}
