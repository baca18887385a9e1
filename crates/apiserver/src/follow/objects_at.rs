//! `ObjectsAt`: the objects at a revision, and a generation that counts changes that affect requests.

use std::sync::Arc;

use evenkeel_api::Object;
use evenkeel_engine::controller::Objects;

/// The objects at a revision of the store.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObjectsAt {
    /// The revision.
    pub revision: u64,
    /// Counts the changes that affect requests. States of one generation differ only in statuses, and in metadata other than
    /// names, UIDs and annotations.
    pub generation: u64,
    /// The objects, in the order of their names, without managed fields.
    pub objects: Objects,
}

// === impl ObjectsAt ===

impl ObjectsAt {
    /// The objects at a revision, and their generation, by the state before.
    pub(super) fn after(before: Option<&Self>, revision: u64, objects: Objects) -> Self {
        let generation = match before {
            None => 1,
            Some(before) if govern_alike(&before.objects, &objects) => before.generation,
            Some(before) => before.generation + 1,
        };
        Self { revision, generation, objects }
    }
}

/// Whether both sets of objects have the same effect on requests.
fn govern_alike(one: &Objects, other: &Objects) -> bool {
    all_alike(&one.priority_levels, &other.priority_levels) && all_alike(&one.flow_schemas, &other.flow_schemas)
}

fn all_alike<V, S: PartialEq>(one: &[Arc<Object<V, S>>], other: &[Arc<Object<V, S>>]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other) || is_alike(one, other))
}

/// The UID counts: responses carry it.
fn is_alike<V, S: PartialEq>(one: &Object<V, S>, other: &Object<V, S>) -> bool {
    let (old, new) = (&one.metadata, &other.metadata);
    old.name == new.name && old.uid == new.uid && old.annotations == new.annotations && one.spec == other.spec
}

#[cfg(test)]
mod tests {
    use evenkeel_api::v1::{Condition, FlowSchema};

    use super::*;

    #[test]
    fn only_what_makes_a_difference_to_requests_begins_a_generation() {
        let schema = FlowSchema::builder("a").priority_level("exempt").build();
        let objects = |change: &dyn Fn(&mut FlowSchema)| {
            let mut changed = schema.clone();
            change(&mut changed);
            Objects { flow_schemas: vec![Arc::new(changed)], priority_levels: Vec::new() }
        };
        let first = ObjectsAt::after(None, 1, objects(&|_| {}));
        let generation =
            |change: &dyn Fn(&mut FlowSchema)| ObjectsAt::after(Some(&first), 2, objects(change)).generation;
        let same: [&dyn Fn(&mut FlowSchema); 4] = [
            &|_| {},
            &|schema| schema.status.conditions.push(Condition::default()),
            &|schema| schema.metadata.resource_version = "2".to_owned(),
            &|schema| drop(schema.metadata.labels.insert("a".to_owned(), "b".to_owned())),
        ];
        assert!(same.into_iter().all(|change| generation(change) == first.generation));
        let other: [&dyn Fn(&mut FlowSchema); 4] = [
            &|schema| schema.spec.matching_precedence += 1,
            &|schema| schema.metadata.uid = "another".to_owned(),
            &|schema| schema.metadata.name = "b".to_owned(),
            &|schema| drop(schema.metadata.annotations.insert("a".to_owned(), "b".to_owned())),
        ];
        assert!(other.into_iter().all(|change| generation(change) == first.generation + 1));
        assert_eq!(ObjectsAt::after(Some(&first), 2, Objects::default()).generation, first.generation + 1);
    }
}
