//! The difference between two states of an object, field by field.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;
use super::field_set::FieldSet;
use super::owned_parts::{OwnedParts, is_empty};

/// The difference between two states of an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Comparison {
    /// The fields that are new or have another value.
    pub(crate) changed: FieldSet,
    /// The fields that are gone.
    pub(crate) removed: FieldSet,
}

/// A part of an object in both states; at least one of them has it.
#[derive(Clone, Copy)]
struct ElementPair<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
}

/// The same items of a list in both states. There are several only where an object repeats what should be unique.
#[derive(Default)]
struct Items<'a> {
    old: Vec<&'a Value>,
    new: Vec<&'a Value>,
}

// === impl Comparison ===

impl Comparison {
    /// Compares two states of an object.
    pub(crate) fn of(old: &Value, new: &Value, parts: OwnedParts) -> Self {
        ElementPair { old: Some(old), new: Some(new) }.compare(parts)
    }

    /// The differences below these elements, which come in any order.
    fn of_children(children: impl Iterator<Item = (Element, Comparison)>) -> Self {
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        for (element, below) in children {
            if !below.removed.is_empty() {
                removed.push((element.clone(), below.removed));
            }
            if !below.changed.is_empty() {
                changed.push((element, below.changed));
            }
        }
        Self { changed: FieldSet::of_children(changed), removed: FieldSet::of_children(removed) }
    }
}

// === impl ElementPair ===

impl<'a> ElementPair<'a> {
    fn compare(self, parts: OwnedParts) -> Comparison {
        // Where there are no parts on either side, what is left to compare is `null`, empty and absent.
        if matches!(parts, OwnedParts::Whole) || (is_empty(self.old) && is_empty(self.new)) {
            return self.compare_whole();
        }
        let mut comparison = match parts {
            OwnedParts::Elements | OwnedParts::Members { .. } => self.compare_items(parts),
            _ => self.compare_members(parts),
        };
        // A new part is owned together with its own parts.
        comparison.changed.itself = self.old.is_none();
        comparison.removed.itself = self.new.is_none();
        comparison
    }

    fn compare_whole(self) -> Comparison {
        Comparison {
            changed: (self.new.is_some() && self.old != self.new).then(FieldSet::leaf).unwrap_or_default(),
            removed: self.new.is_none().then(FieldSet::leaf).unwrap_or_default(),
        }
    }

    fn compare_members(self, parts: OwnedParts) -> Comparison {
        let (old, new) = (members(self.old), members(self.new));
        Comparison::of_children(both_names(old, new).filter_map(|name| {
            let pair = ElementPair { old: old.and_then(|old| old.get(name)), new: new.and_then(|new| new.get(name)) };
            if pair.old == pair.new {
                return None;
            }
            let (name, below) = match parts {
                OwnedParts::Fields(schema) => match schema.field(name) {
                    Some(field) => (Cow::Borrowed(field.name), OwnedParts::of_field(field)),
                    None => (Cow::Owned(name.clone()), OwnedParts::Whole),
                },
                _ => (Cow::Owned(name.clone()), OwnedParts::Whole),
            };
            Some((Element::Field(name), pair.compare(below)))
        }))
    }

    fn compare_items(self, parts: OwnedParts) -> Comparison {
        let mut items: BTreeMap<Element, Items<'a>> = BTreeMap::new();
        for item in elements(self.old) {
            items.entry(element(parts, item)).or_default().old.push(item);
        }
        for item in elements(self.new) {
            items.entry(element(parts, item)).or_default().new.push(item);
        }
        Comparison::of_children(items.into_iter().map(|(element, items)| {
            let below = items.compare(parts.below(&element));
            (element, below)
        }))
    }
}

// === impl Items ===

impl Items<'_> {
    fn compare(self, parts: OwnedParts) -> Comparison {
        if let ([] | [_], [] | [_]) = (self.old.as_slice(), self.new.as_slice()) {
            return ElementPair { old: self.old.first().copied(), new: self.new.first().copied() }.compare(parts);
        }
        Comparison {
            changed: (!self.new.is_empty() && self.old != self.new).then(FieldSet::leaf).unwrap_or_default(),
            removed: self.new.is_empty().then(FieldSet::leaf).unwrap_or_default(),
        }
    }
}

fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn elements(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn element(parts: OwnedParts, item: &Value) -> Element {
    parts.element_of(item).unwrap_or_else(|| Element::value(item))
}

/// The names of both maps, each once.
fn both_names<'a>(
    old: Option<&'a Map<String, Value>>,
    new: Option<&'a Map<String, Value>>,
) -> impl Iterator<Item = &'a String> {
    let old_names = old.into_iter().flat_map(Map::keys);
    let new_names = new.into_iter().flat_map(Map::keys);
    old_names.chain(new_names.filter(move |name| old.is_none_or(|old| !old.contains_key(*name))))
}
