//! Merges the objects of a strategic merge patch.

use evenkeel_api::Version;
use evenkeel_api::schema::{Field, Shape, TypeSchema};
use serde_json::{Map, Value};

use super::directive::{Strategy, deleted_from, is_directive, ordered, take_retained, take_strategy};
use super::list::ListPatch;
use crate::failure::Failure;

/// Merges objects of one version: lists that one version merges, another one replaces.
#[derive(Clone, Copy)]
pub(super) struct Merger {
    pub(super) version: Version,
}

/// The types of an object's members, as far as they are known.
#[derive(Clone, Copy)]
pub(super) enum Scope {
    /// The keys are the fields of a type.
    Fields(&'static TypeSchema),
    /// The keys are the texts of a map.
    Texts,
    /// Nothing.
    Unknown,
}

// === impl Scope ===

impl Scope {
    pub(super) fn of(shape: Shape) -> Self {
        match shape {
            Shape::Object(schema) => Self::Fields(schema),
            Shape::StringMap => Self::Texts,
            _ => Self::Unknown,
        }
    }

    fn field(self, name: &str) -> Option<&'static Field> {
        match self {
            Self::Fields(schema) => schema.field(name),
            _ => None,
        }
    }

    /// The types of a member's members, as far as they are known.
    fn below(self, name: &str) -> Self {
        self.field(name).map_or(Self::Unknown, |field| Self::of(field.shape.element()))
    }
}

// === impl Merger ===

impl Merger {
    pub(super) fn merge(
        self,
        object: &mut Map<String, Value>,
        mut patch: Map<String, Value>,
        scope: Scope,
    ) -> Result<(), Failure> {
        match take_strategy(&mut patch) {
            Ok(None) => {}
            Ok(Some(Strategy::Replace)) => {
                *object = patch;
                return Ok(());
            }
            Ok(Some(Strategy::Delete)) => {
                object.clear();
                return Ok(());
            }
            // In a map of texts it is left out like any other directive.
            Err(failure) => match scope {
                Scope::Texts => return Ok(()),
                _ => return Err(failure),
            },
        }
        if let Some(names) = take_retained(&mut patch)? {
            object.retain(|name, _| names.contains(name));
        }
        self.merge_lists(object, &mut patch, scope)?;
        for (name, value) in patch {
            self.merge_member(object, name, value, scope)?;
        }
        Ok(())
    }

    fn merge_member(
        self,
        object: &mut Map<String, Value>,
        name: String,
        value: Value,
        scope: Scope,
    ) -> Result<(), Failure> {
        let below = scope.below(&name);
        match (object.get_mut(&name), value) {
            (_, Value::Null) => {
                object.remove(&name);
            }
            (Some(Value::Object(object)), Value::Object(patch)) => self.merge(object, patch, below)?,
            (None, value) => {
                let value = self.cleaned(value, scope.field(&name));
                object.insert(name, value);
            }
            (Some(member), value) => *member = value,
        }
        Ok(())
    }

    /// Merges the members that are merged lists, and takes them out of the patch, with what is said of them.
    fn merge_lists(
        self,
        object: &mut Map<String, Value>,
        patch: &mut Map<String, Value>,
        scope: Scope,
    ) -> Result<(), Failure> {
        let Scope::Fields(schema) = scope else { return Ok(()) };
        for field in schema.fields.iter().filter(|field| self.is_merged(field)) {
            let of_field = |directive: fn(&str) -> Option<&str>| {
                move |(name, _): &(&String, &Value)| directive(name) == Some(field.name)
            };
            let order = patch.iter().find(of_field(ordered)).map(|(name, _)| name.clone());
            let deleted = patch.iter().find(of_field(deleted_from)).map(|(name, _)| name.clone());
            let list = ListPatch {
                field,
                order: order.and_then(|name| patch.remove(&name)),
                deleted: deleted.and_then(|name| patch.remove(&name)),
                items: patch.get(field.name).and_then(Value::as_array).cloned(),
            };
            let Some(Value::Array(stored)) = object.get_mut(field.name) else { continue };
            if list.items.is_some() {
                patch.remove(field.name);
            }
            list.merge_into(stored, self)?;
        }
        Ok(())
    }

    fn is_merged(self, field: &Field) -> bool {
        matches!(field.shape, Shape::List(_)) && field.is_merged(self.version)
    }

    /// A value for a member that is not there yet: without what it says of how to merge, and without what it takes away.
    pub(super) fn cleaned(self, value: Value, field: Option<&'static Field>) -> Value {
        match value {
            Value::Object(members) => {
                let scope = field.map_or(Scope::Unknown, |field| Scope::of(field.shape.element()));
                let kept = members.into_iter().filter(|(name, value)| !is_directive(name) && !value.is_null());
                kept.map(|(name, value)| {
                    let value = self.cleaned(value, scope.field(&name));
                    (name, value)
                })
                .collect()
            }
            Value::Array(items) if field.is_some_and(|field| self.is_merged(field)) => {
                let kept = items.into_iter().filter(|item| !super::directive::is_special(item));
                kept.map(|item| self.cleaned(item, field)).collect()
            }
            other => other,
        }
    }
}
