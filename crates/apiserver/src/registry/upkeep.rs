//! `Upkeep`: what controllers have to know of an object whose status and metadata are not kept.

use std::any::Any;

use evenkeel_api::v1::{FlowSchema, V1};
use evenkeel_api::{HubSpec, Object};
use evenkeel_engine::controller::Dangling;

use crate::verbs::is_of_the_collector;

/// The work that the status and the metadata of an object ask of controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Upkeep {
    /// The content of a flow schema's condition `Dangling`: whether its level is missing. `None` without such a condition, or
    /// with one about another level.
    pub(crate) dangling: Option<bool>,
    /// Whether the object is being deleted and has a finalizer that a garbage collector removes.
    pub(crate) awaits_collector: bool,
}

// === impl Upkeep ===

impl Upkeep {
    pub(crate) fn of<S: HubSpec>(object: &Object<V1, S>) -> Self {
        let schema = (object as &dyn Any).downcast_ref::<FlowSchema>();
        let finalizers = &object.metadata.finalizers;
        Self {
            dangling: schema.and_then(dangling),
            awaits_collector: object.metadata.deletion_timestamp.is_some()
                && finalizers.iter().any(|name| is_of_the_collector(name)),
        }
    }
}

fn dangling(schema: &FlowSchema) -> Option<bool> {
    let level = &schema.spec.priority_level_configuration.name;
    [true, false].into_iter().find(|is_dangling| Dangling::new(schema.name(), level, *is_dangling).is_told_by(schema))
}
