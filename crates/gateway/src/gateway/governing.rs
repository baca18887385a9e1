//! `Governing`: lets new objects govern, and notes which of them were edited.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel::FlowControl;
use evenkeel_api::Object;
use evenkeel_engine::controller::Objects;

use super::findings::Findings;
use crate::observe::metrics::GatewayMetrics;

/// The objects that govern, and who is told of new ones.
#[derive(Debug)]
pub(super) struct Governing {
    pub(super) flow: FlowControl,
    pub(super) metrics: GatewayMetrics,
    pub(super) findings: Findings,
    pub(super) last: Objects,
}

// === impl Governing ===

impl Governing {
    /// Lets these objects govern. The flow control warns of those that are of no use.
    pub(super) fn apply(&mut self, objects: Objects) {
        self.findings.look_for(objects.clone());
        self.flow.apply_stored(objects.clone());
        self.metrics.objects_applied(edited(&self.last, &objects));
        self.last = objects;
    }
}

/// The names of objects that were there before, with another specification or other annotations.
fn edited(before: &Objects, after: &Objects) -> Vec<String> {
    let levels = differing(&before.priority_levels, &after.priority_levels).map(|name| format!("level {name}"));
    let schemas = differing(&before.flow_schemas, &after.flow_schemas).map(|name| format!("flow schema {name}"));
    levels.chain(schemas).collect()
}

fn differing<'a, V: 'a, S: PartialEq + 'a>(
    before: &'a [Arc<Object<V, S>>],
    after: &'a [Arc<Object<V, S>>],
) -> impl Iterator<Item = &'a str> {
    let known: HashMap<&str, _> = before.iter().map(|object| (&*object.metadata.name, object)).collect();
    after.iter().filter_map(move |object| {
        let known = known.get(&*object.metadata.name)?;
        let is_same = known.spec == object.spec && known.metadata.annotations == object.metadata.annotations;
        (!is_same).then_some(&*object.metadata.name)
    })
}
