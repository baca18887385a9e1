//! `Snapshot`: all objects, decoded, for code that reads all of them after each change.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_api::v1::{Status, V1};
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::List;

use super::upkeep::Upkeep;
use super::{DecodedCache, Record, is_same};

/// All objects as of the last update, in the order of their names. An update decodes only what has changed and is not
/// [decoded](DecodedCache) yet.
///
/// The objects have no statuses and no managed fields, which are the larger part of most objects. An object stays the same while
/// only its status and metadata without an effect on requests change, so that all who hold it share one copy; its labels and
/// `resourceVersion`, for example, may be old. Unreadable objects are left out, and logged once.
#[derive(Debug)]
pub(crate) struct Snapshot<S: HubSpec> {
    entries: Mutex<Vec<SnapshotEntry<S>>>,
}

/// The objects of a [`Snapshot`] at a revision.
#[derive(Debug)]
pub(crate) struct ObjectsOfKind<S: HubSpec> {
    pub(crate) objects: Vec<Arc<Object<V1, S>>>,
    /// For each of the objects, what its status and metadata say.
    pub(crate) upkeep: Vec<Upkeep>,
    pub(crate) revision: u64,
}

#[derive(Debug, Clone)]
struct SnapshotEntry<S: HubSpec> {
    stored: Arc<evenkeel_store::Object>,
    /// None if it is unreadable.
    object: Option<Arc<Object<V1, S>>>,
    upkeep: Upkeep,
}

// === impl Snapshot ===

impl<S: HubSpec> Default for Snapshot<S> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<S: HubSpec> Snapshot<S> {
    /// Updates the snapshot to a whole list, and returns its objects.
    pub(crate) fn update(&self, list: &List, decoded: &DecodedCache<S>) -> ObjectsOfKind<S> {
        let mut known = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = known.as_slice();
        let mut present = Vec::with_capacity(list.items.len());
        for stored in &list.items {
            let (_, from_here) = rest.split_at(rest.partition_point(|known| known.stored.name < stored.name));
            rest = from_here;
            present.push(match rest.first().filter(|known| known.stored.name == stored.name) {
                Some(known) if is_same(&known.stored, stored) => known.clone(),
                before => SnapshotEntry::read(stored, decoded, before),
            });
        }
        let readable = || present.iter().filter_map(|known| Some((known.object.as_ref()?, known.upkeep)));
        let objects = readable().map(|(object, _)| Arc::clone(object)).collect();
        let upkeep = readable().map(|(_, upkeep)| upkeep).collect();
        log_recovered(&known, &present);
        *known = present;
        ObjectsOfKind { objects, upkeep, revision: list.revision }
    }
}

// === impl SnapshotEntry ===

impl<S: HubSpec> SnapshotEntry<S> {
    /// Reads an object that has changed since `before`, if it was there.
    fn read(stored: &Arc<evenkeel_store::Object>, decoded: &DecodedCache<S>, before: Option<&Self>) -> Self {
        // Objects that this process wrote are decoded already.
        let read = match decoded.known(stored) {
            Some(record) => Ok(Arc::clone(&record.object)),
            None => Record::read(stored).map(Arc::new),
        };
        let stored = Arc::clone(stored);
        match read {
            Ok(object) => {
                let upkeep = Upkeep::of(&object);
                let before = before.and_then(|before| before.object.as_ref());
                let object = match before.filter(|before| has_same_effect(before, &object)) {
                    Some(before) => Arc::clone(before),
                    None => without_status(object, stored.revision),
                };
                Self { stored, object: Some(object), upkeep }
            }
            Err(problem) => {
                tracing::warn!(%problem, "an object does not take effect: it is unreadable");
                Self { stored, object: None, upkeep: Upkeep::default() }
            }
        }
    }
}

/// Whether two objects have the same effect on requests. Their UIDs count: responses carry them.
pub(crate) fn has_same_effect<S: HubSpec>(one: &Object<V1, S>, other: &Object<V1, S>) -> bool {
    let (old, new) = (&one.metadata, &other.metadata);
    old.name == new.name && old.uid == new.uid && old.annotations == new.annotations && one.spec == other.spec
}

/// The object without its status and managed fields. It is not copied if it has neither.
fn without_status<S: HubSpec>(object: Arc<Object<V1, S>>, revision: u64) -> Arc<Object<V1, S>> {
    let is_bare = object.metadata.managed_fields.is_empty() && object.status == Status::default();
    if is_bare && !object.metadata.resource_version.is_empty() {
        return object;
    }
    let mut object = Arc::unwrap_or_clone(object);
    object.metadata.resource_version = revision.to_string();
    object.metadata.managed_fields = Vec::new();
    object.status = Status::default();
    Arc::new(object)
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
    use evenkeel_api::meta::Time;
    use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec};
    use evenkeel_engine::controller::Dangling;

    use super::*;

    /// An update while nothing is decoded yet.
    fn update(snapshot: &Snapshot<FlowSchemaSpec>, list: &List) -> Vec<Arc<FlowSchema>> {
        snapshot.update(list, &DecodedCache::default()).objects
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
        let mut changed = list(&[("b", 2), ("c", 4)]);
        changed.items.extend(list_of_level("other", &[("d", 5)]).items);
        let after = update(&snapshot, &changed);
        let seen: Vec<_> = after.iter().map(|object| (object.name(), &*object.metadata.resource_version)).collect();
        assert_eq!(seen, [("b", "2"), ("c", "4"), ("d", "5")]);
        assert!(Arc::ptr_eq(&before[1], &after[0]), "it is the same");
        assert!(!Arc::ptr_eq(&before[2], &after[2]), "it was written");
    }

    #[test]
    fn a_status_changes_the_upkeep_and_not_the_object() {
        let (snapshot, decoded) = (Snapshot::<FlowSchemaSpec>::default(), DecodedCache::default());
        let before = snapshot.update(&list(&[("a", 1)]), &decoded);
        assert_eq!(before.upkeep, [Upkeep::default()]);
        let mut schema = FlowSchema::builder("a").priority_level("a").build();
        schema.status.conditions.push(Dangling::new("a", "a", true).condition(Time::from_unix_seconds(1)));
        schema.metadata.labels.insert("b".to_owned(), "c".to_owned());
        let mut written = list(&[("a", 2)]);
        let payload = serde_json::to_vec(&schema).unwrap().into();
        written.items[0] = Arc::new(evenkeel_store::Object { payload, ..(*written.items[0]).clone() });
        let after = snapshot.update(&written, &decoded);
        assert_eq!(after.upkeep[0].dangling, Some(true));
        assert!(Arc::ptr_eq(&before.objects[0], &after.objects[0]), "all who hold the object share it");
        // Read for the first time, it has no status either.
        let anew = Snapshot::default().update(&written, &decoded);
        assert_eq!(anew.objects[0].status, Status::default());
        assert_eq!(anew.upkeep, after.upkeep);
    }

    #[test]
    fn what_is_decoded_already_is_taken_from_there() {
        let (snapshot, decoded) = (Snapshot::<FlowSchemaSpec>::default(), DecodedCache::default());
        let list = list(&[("a", 1)]);
        let record = decoded.decode(&list.items[0]).unwrap();
        assert!(Arc::ptr_eq(&snapshot.update(&list, &decoded).objects[0], &record.object));
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
