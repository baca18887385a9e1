//! Takes away what a manager no longer applies and nobody else owns (API-127).

use std::borrow::Cow;

use serde_json::Value;

use super::element::Element;
use super::field_set::FieldSet;
use super::owned_parts::OwnedParts;

/// The facts that decide whether a part of an object stays.
#[derive(Clone, Copy)]
pub(crate) struct Claims<'a> {
    /// The fields that the manager applied the last time.
    pub(crate) last: &'a FieldSet,
    /// The fields that any manager owns, with those that this manager applies now.
    pub(crate) current: &'a FieldSet,
}

/// Takes away everything that was applied the last time and that nobody claims any more.
///
/// An object that has its name from the schema goes when nobody claims anything in it; a key of a map or an item of a list
/// goes when nobody claims itself.
pub(crate) fn prune(value: &mut Value, parts: OwnedParts, claims: Claims<'_>) {
    let emptied = match value {
        Value::Object(members) => {
            members.retain(|name, value| {
                let element = Element::Field(Cow::Owned(name.clone()));
                keep(value, &element, parts, claims)
            });
            members.is_empty()
        }
        Value::Array(items) => {
            items.retain_mut(|item| match parts.element_of(item) {
                Some(element) => keep(item, &element, parts, claims),
                None => true,
            });
            items.is_empty()
        }
        _ => false,
    };
    if emptied {
        *value = Value::Null;
    }
}

fn keep(value: &mut Value, element: &Element, parts: OwnedParts, claims: Claims<'_>) -> bool {
    let Some(last) = claims.last.child(element) else { return true };
    let nobody = FieldSet::default();
    let current = claims.current.child(element).unwrap_or(&nobody);
    let is_named = parts.names(element);
    let claimed = |set: &FieldSet| set.itself || (is_named && set.has_children());
    if claimed(last) && !claimed(current) {
        return false;
    }
    if last.has_children() {
        prune(value, parts.below(element), Claims { last, current });
    }
    true
}
