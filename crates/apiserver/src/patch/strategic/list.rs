//! Merges the lists of a strategic merge patch: sets of texts, and objects told apart by a key.

use std::collections::{HashMap, HashSet};

use evenkeel_api::schema::Field;
use serde_json::{Map, Value};

use super::directive::{Strategy, is_special, take_strategy};
use super::object::{Merger, Scope};
use super::order::{Named, in_order};
use crate::failure::Failure;
use crate::patch::printed::printed;

/// The part of a patch that concerns one list.
pub(super) struct ListPatch {
    pub(super) field: &'static Field,
    /// The order of the elements.
    pub(super) order: Option<Value>,
    /// The elements that go.
    pub(super) deleted: Option<Value>,
    /// The elements to be merged.
    pub(super) items: Option<Vec<Value>>,
}

/// The elements of a patch, sorted out.
#[derive(Default)]
struct Elements {
    /// The elements to merge, each with its key.
    merged: Vec<(String, Value)>,
    /// The elements to remove.
    deleted: HashSet<String>,
    /// The treatment of the whole list.
    strategy: Option<Strategy>,
}

// === impl ListPatch ===

impl ListPatch {
    /// Merges the patch into the stored list.
    pub(super) fn merge_into(self, stored: &mut Vec<Value>, merger: Merger) -> Result<(), Failure> {
        let mut elements = self.elements()?;
        if elements.strategy == Some(Strategy::Replace) {
            *stored = elements.merged.into_iter().map(|(_, item)| item).collect();
            return Ok(());
        }
        elements.deleted.extend(self.deleted()?);
        let order = self.order(&elements)?;
        if elements.merged.is_empty() && elements.deleted.is_empty() && order.is_none() {
            return Ok(());
        }
        let order = order.unwrap_or_else(|| elements.merged.iter().map(|(identity, _)| identity.clone()).collect());

        let mut items: Vec<Named> = Vec::with_capacity(stored.len());
        for (place, item) in stored.drain(..).enumerate() {
            let identity = self.identity_of_stored(&item);
            if !elements.deleted.contains(&identity) {
                items.push(Named { identity, value: item, stored: Some(place) });
            }
        }
        let mut places: HashMap<String, usize> =
            items.iter().enumerate().rev().map(|(place, item)| (item.identity.clone(), place)).collect();
        for (identity, patch) in elements.merged {
            match places.get(&identity) {
                Some(place) => self.merge_item(&mut items[*place].value, patch, merger)?,
                None => {
                    places.insert(identity.clone(), items.len());
                    items.push(Named { identity, value: merger.cleaned(patch, Some(self.field)), stored: None });
                }
            }
        }
        *stored = in_order(items, &order);
        Ok(())
    }

    fn merge_item(&self, item: &mut Value, patch: Value, merger: Merger) -> Result<(), Failure> {
        match (item, patch) {
            (Value::Object(object), Value::Object(patch)) => {
                merger.merge(object, patch, Scope::of(self.field.shape.element()))
            }
            (item, patch) => {
                *item = patch;
                Ok(())
            }
        }
    }

    fn elements(&self) -> Result<Elements, Failure> {
        let mut elements = Elements::default();
        for item in self.items.iter().flatten().cloned() {
            match (item, self.field.merge_key()) {
                (Value::Object(mut members), Some(key)) if is_special(&Value::Object(members.clone())) => {
                    match take_strategy(&mut members)? {
                        Some(Strategy::Replace) => elements.strategy = Some(Strategy::Replace),
                        _ => {
                            elements.deleted.insert(identity(&members, key)?);
                        }
                    }
                }
                (Value::Object(members), Some(key)) => {
                    // A list that is replaced as a whole needs no keys, but cannot be told yet.
                    elements.merged.push((identity(&members, key)?, Value::Object(members)));
                }
                (item @ (Value::String(_) | Value::Number(_) | Value::Bool(_)), None) => {
                    elements.merged.push((item.to_string(), item));
                }
                _ => return Err(Failure::rejected_patch()),
            }
        }
        Ok(elements)
    }

    fn identity_of_stored(&self, item: &Value) -> String {
        match self.field.merge_key() {
            Some(key) => item.get(key).map(Value::to_string).unwrap_or_default(),
            None => item.to_string(),
        }
    }

    fn deleted(&self) -> Result<Vec<String>, Failure> {
        match (&self.deleted, self.field.merge_key()) {
            (None | Some(Value::Null), _) => Ok(Vec::new()),
            (Some(Value::Array(items)), None) => Ok(items.iter().map(Value::to_string).collect()),
            _ => Err(Failure::bad_request("invalid patch format of primitive list")),
        }
    }

    /// The order that the patch fixes. It must name the elements of the patch, and in the same order.
    fn order(&self, elements: &Elements) -> Result<Option<Vec<String>>, Failure> {
        let bad_order = || Failure::bad_request("invalid patch format of setElementOrder list");
        let items = match &self.order {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(bad_order()),
        };
        let identity_of = |item: &Value| match (self.field.merge_key(), item) {
            (Some(key), Value::Object(members)) => identity(members, key),
            (None, item) => Ok(item.to_string()),
            _ => Err(bad_order()),
        };
        let order: Vec<String> = items.iter().map(identity_of).collect::<Result<_, _>>()?;
        let mut rest = order.iter();
        if elements.merged.iter().all(|(identity, _)| rest.any(|ordered| ordered == identity)) {
            Ok(Some(order))
        } else {
            Err(bad_order())
        }
    }
}

/// The key of an object in a list (API-122).
fn identity(members: &Map<String, Value>, key: &str) -> Result<String, Failure> {
    members.get(key).map(Value::to_string).ok_or_else(|| {
        let map = printed(&Value::Object(members.clone()));
        Failure::plain(format!("map: {map} does not contain declared merge key: {key}"))
    })
}
