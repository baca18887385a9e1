//! `Snapshot`: all objects, decoded, for code that reads all of them after each change.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::List;

use super::{DecodedCache, Record, is_same};

/// All objects as of the last update, in the order of their names. An update decodes only what has changed and is not
/// [decoded](DecodedCache) yet.
///
/// The objects have no managed fields, which are the larger part of most objects and not needed here. Unreadable objects
/// are left out, and logged once.
#[derive(Debug)]
pub(crate) struct Snapshot<S: HubSpec> {
    entries: Mutex<Vec<SnapshotEntry<S>>>,
}

#[derive(Debug)]
struct SnapshotEntry<S: HubSpec> {
    stored: Arc<evenkeel_store::Object>,
    /// None if it is unreadable.
    object: Option<Arc<Object<V1, S>>>,
}

// === impl Snapshot ===

impl<S: HubSpec> Default for Snapshot<S> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<S: HubSpec> Snapshot<S> {
    /// Updates the snapshot to a whole list, and returns its objects.
    pub(crate) fn update(&self, list: &List, decoded: &DecodedCache<S>) -> Vec<Arc<Object<V1, S>>> {
        let mut known = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = known.as_slice();
        let mut present = Vec::with_capacity(list.items.len());
        for stored in &list.items {
            let (_, from_here) = rest.split_at(rest.partition_point(|known| known.stored.name < stored.name));
            rest = from_here;
            let object = match rest.first() {
                Some(known) if is_same(&known.stored, stored) => known.object.clone(),
                _ => read(stored, decoded),
            };
            present.push(SnapshotEntry { stored: Arc::clone(stored), object });
        }
        let objects = present.iter().filter_map(|known| known.object.clone()).collect();
        log_recovered(&known, &present);
        *known = present;
        objects
    }
}

fn read<S: HubSpec>(stored: &Arc<evenkeel_store::Object>, decoded: &DecodedCache<S>) -> Option<Arc<Object<V1, S>>> {
    // Objects that this process wrote are decoded already.
    let read = match decoded.known(stored) {
        Some(record) if record.object.metadata.managed_fields.is_empty() => return Some(Arc::clone(&record.object)),
        Some(record) => Ok(Object::clone(&record.object)),
        None => Record::read(stored),
    };
    match read {
        Ok(mut object) => {
            object.metadata.resource_version = stored.revision.to_string();
            object.metadata.managed_fields = Vec::new();
            Some(Arc::new(object))
        }
        Err(problem) => {
            tracing::warn!(%problem, "an object does not take effect: it is unreadable");
            None
        }
    }
}

/// Logs each object that is no longer unreadable.
fn log_recovered<S: HubSpec>(before: &[SnapshotEntry<S>], now: &[SnapshotEntry<S>]) {
    for SnapshotEntry { stored, .. } in before.iter().filter(|known| known.object.is_none()) {
        let place = now.binary_search_by(|known| known.stored.name.cmp(&stored.name));
        if place.is_err() || place.is_ok_and(|place| now[place].object.is_some()) {
            let (kind, name) = (S::KIND, &*stored.name);
            tracing::info!(%kind, name, "resolved: an unreadable object was deleted or is readable again");
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::Kind;
    use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec};

    use super::*;

    /// An update while nothing is decoded yet.
    fn update(snapshot: &Snapshot<FlowSchemaSpec>, list: &List) -> Vec<Arc<FlowSchema>> {
        snapshot.update(list, &DecodedCache::default())
    }

    fn list(objects: &[(&str, u64)]) -> List {
        list_of_level("a", objects)
    }

    fn list_of_level(level: &str, objects: &[(&str, u64)]) -> List {
        let stored = |(name, revision): &(&str, u64)| {
            let schema = FlowSchema::builder(*name).priority_level(level).build();
            let payload = serde_json::to_vec(&schema).unwrap().into();
            let (name, create_revision) = ((*name).into(), 1);
            let kind = Kind::FlowSchema;
            Arc::new(evenkeel_store::Object { kind, name, revision: *revision, create_revision, payload })
        };
        List { revision: 9, items: objects.iter().map(stored).collect(), remaining: 0 }
    }

    #[test]
    fn only_what_has_changed_is_decoded_again() {
        let snapshot = Snapshot::<FlowSchemaSpec>::default();
        let before = update(&snapshot, &list(&[("a", 1), ("b", 2), ("d", 3)]));
        let after = update(&snapshot, &list(&[("b", 2), ("c", 4), ("d", 5)]));
        let seen: Vec<_> = after.iter().map(|object| (object.name(), &*object.metadata.resource_version)).collect();
        assert_eq!(seen, [("b", "2"), ("c", "4"), ("d", "5")]);
        assert!(Arc::ptr_eq(&before[1], &after[0]), "it is the same");
        assert!(!Arc::ptr_eq(&before[2], &after[2]), "it was written");
    }

    #[test]
    fn what_is_decoded_already_is_taken_from_there() {
        let (snapshot, decoded) = (Snapshot::<FlowSchemaSpec>::default(), DecodedCache::default());
        let list = list(&[("a", 1)]);
        let record = decoded.decode(&list.items[0]).unwrap();
        assert!(Arc::ptr_eq(&snapshot.update(&list, &decoded)[0], &record.object));
    }

    #[test]
    fn a_reused_revision_shows_the_new_object() {
        let snapshot = Snapshot::<FlowSchemaSpec>::default();
        update(&snapshot, &list(&[("a", 1), ("b", 2)]));
        let after = update(&snapshot, &list_of_level("other", &[("a", 1), ("c", 2)]));
        let seen: Vec<_> =
            after.iter().map(|object| (object.name(), &*object.spec.priority_level_configuration.name)).collect();
        assert_eq!(seen, [("a", "other"), ("c", "other")]);
    }

    #[test]
    fn unreadable_objects_are_left_out_until_they_are_mended() {
        let snapshot = Snapshot::<FlowSchemaSpec>::default();
        let broken = |mut list: List| {
            let stored = evenkeel_store::Object { payload: "garbage".into(), ..(*list.items[1]).clone() };
            list.items[1] = Arc::new(stored);
            list
        };
        let names = |objects: Vec<Arc<FlowSchema>>| -> Vec<String> {
            objects.iter().map(|object| object.name().to_owned()).collect()
        };
        let all = [("a", 1), ("b", 2), ("c", 3)];
        assert_eq!(names(update(&snapshot, &broken(list(&all)))), ["a", "c"]);
        assert_eq!(names(update(&snapshot, &broken(list(&all)))), ["a", "c"]);
        assert_eq!(names(update(&snapshot, &list(&all))), ["a", "b", "c"]);
    }
}
