//! `ObjectsAt`: the objects at a revision, and a generation that counts changes that affect requests.

use std::sync::Arc;

use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, V1};
use evenkeel_api::{HubSpec, Object};
use evenkeel_engine::controller::Objects;

use crate::registry::{ObjectsOfKind, Upkeep, has_same_effect};

/// The objects at a revision of the store.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObjectsAt {
    /// The revision.
    pub revision: u64,
    /// Counts the changes that affect requests. States of one generation differ only in statuses, and in metadata other than
    /// names, UIDs and annotations.
    pub generation: u64,
    /// The objects, in the order of their names, without statuses and managed fields. Metadata other than names, UIDs and annotations
    /// may be that of an earlier revision.
    pub objects: Objects,
    pub(crate) upkeep: UpkeepOfObjects,
}

/// The work that the present statuses and metadata ask of controllers: an [`Upkeep`] for each of the
/// [`objects`](ObjectsAt::objects).
#[derive(Debug, Default)]
pub(crate) struct UpkeepOfObjects {
    pub(crate) flow_schemas: Vec<Upkeep>,
    pub(crate) priority_levels: Vec<Upkeep>,
}

// === impl ObjectsAt ===

impl ObjectsAt {
    /// The objects at a revision, and their generation, by the state before.
    pub(super) fn after(
        before: Option<&Self>,
        schemas: ObjectsOfKind<FlowSchemaSpec>,
        levels: ObjectsOfKind<PriorityLevelConfigurationSpec>,
    ) -> Self {
        let revision = schemas.revision;
        let upkeep = UpkeepOfObjects { flow_schemas: schemas.upkeep, priority_levels: levels.upkeep };
        let objects = Objects { flow_schemas: schemas.objects, priority_levels: levels.objects };
        let generation = match before {
            None => 1,
            Some(before) if govern_alike(&before.objects, &objects) => before.generation,
            Some(before) => before.generation + 1,
        };
        Self { revision, generation, objects, upkeep }
    }

    /// The flow schemas, and the upkeep of each.
    pub(crate) fn flow_schemas(&self) -> (&[Arc<FlowSchema>], &[Upkeep]) {
        (&self.objects.flow_schemas, &self.upkeep.flow_schemas)
    }

    /// The priority levels, and the upkeep of each.
    pub(crate) fn priority_levels(&self) -> (&[Arc<PriorityLevelConfiguration>], &[Upkeep]) {
        (&self.objects.priority_levels, &self.upkeep.priority_levels)
    }
}

/// Whether both sets of objects have the same effect on requests.
fn govern_alike(one: &Objects, other: &Objects) -> bool {
    all_alike(&one.priority_levels, &other.priority_levels) && all_alike(&one.flow_schemas, &other.flow_schemas)
}

fn all_alike<S: HubSpec>(one: &[Arc<Object<V1, S>>], other: &[Arc<Object<V1, S>>]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other) || has_same_effect(one, other))
}

#[cfg(test)]
mod tests {
    use evenkeel_api::v1::{Condition, FlowSchema};

    use super::*;

    #[test]
    fn only_what_makes_a_difference_to_requests_begins_a_generation() {
        let schema = FlowSchema::builder("a").priority_level("exempt").build();
        let schemas = |objects: Vec<Arc<FlowSchema>>| {
            let upkeep = vec![Upkeep::default(); objects.len()];
            ObjectsOfKind { objects, upkeep, revision: 1 }
        };
        let levels = || ObjectsOfKind { objects: Vec::new(), upkeep: Vec::new(), revision: 1 };
        let changed = |change: &dyn Fn(&mut FlowSchema)| {
            let mut changed = schema.clone();
            change(&mut changed);
            schemas(vec![Arc::new(changed)])
        };
        let first = ObjectsAt::after(None, changed(&|_| {}), levels());
        let generation =
            |change: &dyn Fn(&mut FlowSchema)| ObjectsAt::after(Some(&first), changed(change), levels()).generation;
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
        let none = ObjectsAt::after(Some(&first), schemas(Vec::new()), levels());
        assert_eq!(none.generation, first.generation + 1);
    }
}
