//! Puts an applied object over the stored one (API-127).

use serde_json::{Map, Value};

use super::element::Element;
use super::owned_parts::{OwnedParts, is_empty};

/// The stored value with everything set that the applied one says.
pub(crate) fn merge(live: Option<&Value>, applied: &Value, parts: OwnedParts) -> Value {
    if matches!(parts, OwnedParts::Whole) || is_empty(live) {
        return applied.clone();
    }
    match (parts, live, applied) {
        // An empty value takes nothing away from what is there.
        (_, Some(live), _) if is_empty(Some(applied)) => live.clone(),
        (OwnedParts::Elements | OwnedParts::Members { .. }, Some(Value::Array(live)), Value::Array(applied)) => {
            Value::Array(merge_items(live, applied, parts))
        }
        (_, Some(Value::Object(live)), Value::Object(applied)) => Value::Object(merge_members(live, applied, parts)),
        _ => applied.clone(),
    }
}

fn merge_members(live: &Map<String, Value>, applied: &Map<String, Value>, parts: OwnedParts) -> Map<String, Value> {
    let mut merged = live.clone();
    for (name, value) in applied {
        let below = match parts {
            OwnedParts::Fields(schema) => OwnedParts::of_named(schema, name),
            _ => OwnedParts::Whole,
        };
        merged.insert(name.clone(), merge(live.get(name), value, below));
    }
    merged
}

/// Both lists as one. Items keep the order of the applied list; those that only the stored one has stay in front of
/// the item that they stood in front of.
fn merge_items(live: &[Value], applied: &[Value], parts: OwnedParts) -> Vec<Value> {
    let element = |item: &Value| parts.element_of(item).unwrap_or_else(|| Element::value(item));
    let live: Vec<_> = live.iter().map(|item| (element(item), item)).collect();
    let applied: Vec<_> = applied.iter().map(|item| (element(item), item)).collect();
    let stored = Index::new(&live);
    let sent = Index::new(&applied);
    let item = |(element, item): &(Element, &Value)| {
        let stored = stored.get(element).map(|place| live[place].1);
        merge(stored, item, parts.below(element))
    };

    let mut merged = Vec::with_capacity(live.len() + applied.len());
    let mut rest = applied.as_slice();
    let mut next_shared = rest.iter().position(|(element, _)| stored.get(element).is_some());
    for (element, value) in &live {
        if sent.get(element).is_none() {
            merged.push((*value).clone());
            continue;
        }
        if let Some(place) = next_shared.filter(|place| rest[*place].0 == *element) {
            let (now, later) = rest.split_at(place + 1);
            merged.extend(now.iter().map(item));
            rest = later;
            next_shared = rest.iter().position(|(element, _)| stored.get(element).is_some());
        }
    }
    merged.extend(rest.iter().map(item));
    merged
}

/// Where the items of a list are, by their path elements.
struct Index<'a>(std::collections::BTreeMap<&'a Element, usize>);

// === impl Index ===

impl<'a> Index<'a> {
    fn new(items: &'a [(Element, &Value)]) -> Self {
        Self(items.iter().enumerate().rev().map(|(place, (element, _))| (element, place)).collect())
    }

    fn get(&self, element: &Element) -> Option<usize> {
        self.0.get(element).copied()
    }
}
