//! `Governing`: applies new objects, and notes what has changed.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_api::Object;
use evenkeel_engine::controller::Objects;

use super::StartError;
use super::findings::Findings;
use super::flow_controls::FlowControls;
use crate::observe::metrics::{Edit, GatewayMetrics, ObjectChange};

/// The objects that govern, and the parts that get new ones.
#[derive(Debug)]
pub(super) struct Governing {
    pub(super) flows: Arc<FlowControls>,
    pub(super) metrics: GatewayMetrics,
    pub(super) findings: Findings,
    pub(super) last: Objects,
}

// === impl Governing ===

impl Governing {
    /// Lets these objects govern, unless there are fewer seats than levels that have to have one. The flow control warns of
    /// those that are of no use.
    pub(super) fn apply(&mut self, objects: Objects) -> Result<(), StartError> {
        self.flows.apply(&objects)?;
        self.findings.look_for(&objects, self.flows.default());
        self.metrics.objects_applied(changes(&self.last, &objects));
        self.last = objects;
        Ok(())
    }
}

/// The differences between two sets of objects.
pub(super) fn changes(before: &Objects, after: &Objects) -> Vec<ObjectChange> {
    let mut changes = changes_of("level", &before.priority_levels, &after.priority_levels);
    changes.extend(changes_of("flow schema", &before.flow_schemas, &after.flow_schemas));
    changes
}

/// The differences between the objects of one kind. The status of an object, and who changed it when, does not count.
fn changes_of<V, S: PartialEq>(
    kind: &'static str,
    before: &[Arc<Object<V, S>>],
    after: &[Arc<Object<V, S>>],
) -> Vec<ObjectChange> {
    let mut known: HashMap<&str, &Object<V, S>> =
        before.iter().map(|object| (&*object.metadata.name, &**object)).collect();
    let change = |edit, name: &str| ObjectChange { kind, edit, name: name.to_owned() };
    let mut changes = Vec::new();
    for object in after {
        let name = &*object.metadata.name;
        match known.remove(name) {
            None => changes.push(change(Edit::Added, name)),
            Some(known) => {
                let is_same = known.spec == object.spec && known.metadata.annotations == object.metadata.annotations;
                if !is_same {
                    changes.push(change(Edit::Edited, name));
                }
            }
        }
    }
    changes.extend(known.into_keys().map(|name| change(Edit::Removed, name)));
    changes
}

#[cfg(test)]
mod tests {
    use evenkeel::{FlowSchema, PriorityLevelConfiguration};

    use super::*;

    fn objects(levels: &[(&str, i32)], schemas: &[&str]) -> Objects {
        let level = |(name, shares): &(&str, i32)| {
            Arc::new(PriorityLevelConfiguration::builder(*name).limited(|l| l.shares(*shares).reject()).build())
        };
        let schema = |name: &&str| Arc::new(FlowSchema::builder(*name).priority_level("a").build());
        Objects {
            priority_levels: levels.iter().map(level).collect(),
            flow_schemas: schemas.iter().map(schema).collect(),
        }
    }

    #[test]
    fn what_is_different_has_a_name() {
        let before = objects(&[("a", 1), ("b", 1), ("c", 1)], &["x"]);
        let mut found = changes(&before, &objects(&[("a", 1), ("b", 2), ("d", 1)], &["x", "y"]));
        found.sort();
        let words: Vec<_> = found.iter().map(|one| format!("{} {} {}", one.kind, one.name, one.edit.word())).collect();
        assert_eq!(words, ["flow schema y added", "level d added", "level b edited", "level c removed"]);
        assert_eq!(changes(&before, &before), []);
    }
}
