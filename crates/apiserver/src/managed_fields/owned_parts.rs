//! `OwnedParts`: what of a value can be owned on its own, by the schema table.

use evenkeel_api::schema::{Field, ListType, Package, Shape, TypeSchema, object_type};
use evenkeel_api::{Kind, Version};
use serde_json::Value;

use super::element::Element;

/// Into which parts a value falls for its owners.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OwnedParts {
    /// None: it is owned as a whole.
    Whole,
    /// The members of an object.
    Fields(&'static TypeSchema),
    /// The keys of a map of texts.
    Keys,
    /// The elements of a set.
    Elements,
    /// The members of a list of objects that are told apart by one of their own members.
    Members {
        /// The name of that member.
        key: &'static str,
        /// The shape of the objects.
        shape: &'static Shape,
    },
}

// === impl OwnedParts ===

impl OwnedParts {
    /// The parts of an object of the group.
    pub(crate) fn of_object(kind: Kind, version: Version) -> Self {
        Self::Fields(object_type(version, kind))
    }

    /// The parts of a member of an object.
    pub(crate) fn of_field(field: &Field) -> Self {
        match (field.shape, field.list_type) {
            (Shape::Object(schema), _) => Self::Fields(schema),
            (Shape::StringMap, _) => Self::Keys,
            (Shape::List(_), ListType::Set) => Self::Elements,
            (Shape::List(shape), ListType::Map(key)) => Self::Members { key, shape },
            _ => Self::Whole,
        }
    }

    /// The parts of one object of a list.
    pub(crate) fn of_member(shape: &Shape) -> Self {
        match shape {
            // References to owners, the only ones of `meta/v1`, are owned as a whole (API-127).
            Shape::Object(schema) if schema.package != Package::Meta => Self::Fields(schema),
            _ => Self::Whole,
        }
    }

    /// The parts of a member by its name; an unknown member has none.
    pub(crate) fn of_named(schema: &TypeSchema, name: &str) -> Self {
        schema.field(name).map_or(Self::Whole, Self::of_field)
    }

    /// The parts of what an element of the path leads to.
    pub(crate) fn below(self, element: &Element) -> Self {
        match (self, element) {
            (Self::Fields(schema), Element::Field(name)) => Self::of_named(schema, name),
            (Self::Members { shape, .. }, _) => Self::of_member(shape),
            _ => Self::Whole,
        }
    }

    /// Whether a member of this value has its name from the schema, so that it is there as soon as anything in it is.
    pub(crate) fn names(self, element: &Element) -> bool {
        matches!((self, element), (Self::Fields(schema), Element::Field(name)) if schema.field(name).is_some())
    }

    /// The path element of an item, if the value is a list whose items are owned on their own.
    pub(crate) fn element_of(self, item: &Value) -> Option<Element> {
        match self {
            Self::Elements => Some(Element::value(item)),
            Self::Members { key, .. } => Some(Element::key(key, item.get(key).unwrap_or(&Value::Null))),
            _ => None,
        }
    }
}

/// Whether the value has nothing that could be owned on its own: it is absent, `null` or empty.
pub(crate) fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}
