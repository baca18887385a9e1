//! The objects that a controller is to follow.

use std::sync::Arc;

use evenkeel_api::annotations::{self, NotUnderstood};
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration, PriorityLevelEnablement};
use evenkeel_api::{AnyObject, Kind, Preset, bootstrap};

use super::seat_plan::SeatPlan;

/// The objects that a controller is to follow.
///
/// Not `#[non_exhaustive]`: the API has these two kinds.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    /// All priority levels.
    pub priority_levels: Vec<Arc<PriorityLevelConfiguration>>,
    /// All flow schemas.
    pub flow_schemas: Vec<Arc<FlowSchema>>,
}

// === impl Objects ===

impl Objects {
    /// The objects that every Kubernetes server starts with.
    pub fn bootstrap() -> Self {
        bootstrap::all().into()
    }

    /// These, and those of the mandatory levels that are not among them.
    ///
    /// A controller has the mandatory objects anyway, but follows only flow schemas whose levels are given (CC-9). Whoever
    /// writes objects down, and leaves out those that are always there, means this. An object `exempt` that does
    /// not say `exempt: {}`, which is valid but of no use to a controller (CC-8), gets it too.
    ///
    /// ```
    /// use evenkeel_api::v1::FlowSchema;
    /// use evenkeel_engine::controller::Objects;
    ///
    /// let probes = FlowSchema::builder("probes").priority_level("exempt");
    /// let probes = probes.rule(|r| r.user("*").non_resource_urls(["/healthz"]).verbs(["get"])).build();
    /// let objects = [probes.into()].into_iter().collect::<Objects>().with_mandatory_levels();
    /// assert!(objects.priority_levels.iter().any(|level| level.name() == "exempt"));
    /// ```
    #[must_use]
    pub fn with_mandatory_levels(mut self) -> Self {
        for level in &mut self.priority_levels {
            if let Some(built_in) = bootstrap::mandatory_priority_level(level.name())
                && level.spec.enablement == PriorityLevelEnablement::Exempt
                && level.spec.exempt.is_none()
            {
                Arc::make_mut(level).spec.exempt.clone_from(&built_in.spec.exempt);
            }
        }
        for built_in in &bootstrap::mandatory().priority_levels {
            if self.priority_levels.iter().all(|level| level.name() != built_in.name()) {
                self.priority_levels.push(Arc::new(built_in.clone()));
            }
        }
        self
    }
}

impl Objects {
    /// The levels among which a server that follows these objects divides its seats.
    pub fn seat_plan(&self) -> SeatPlan<'_> {
        let levels = self.priority_levels.iter().map(|level| &**level);
        SeatPlan::new(levels, self.flow_schemas.iter().map(|schema| &**schema))
    }

    /// The annotations that are not understood, each with the kind and the name of its object (BM-2).
    pub(super) fn not_understood(&self) -> Vec<(Kind, String, NotUnderstood)> {
        let levels = self.priority_levels.iter().map(|level| (Kind::PriorityLevelConfiguration, &level.metadata));
        let schemas = self.flow_schemas.iter().map(|schema| (Kind::FlowSchema, &schema.metadata));
        let found = levels.chain(schemas).flat_map(|(kind, metadata)| {
            let found = annotations::not_understood(kind, &metadata.annotations);
            found.into_iter().map(move |found| (kind, metadata.name.clone(), found))
        });
        found.collect()
    }
}

impl From<&bootstrap::BootstrapObjects> for Objects {
    fn from(objects: &bootstrap::BootstrapObjects) -> Self {
        Self {
            priority_levels: objects.priority_levels.iter().cloned().map(Arc::new).collect(),
            flow_schemas: objects.flow_schemas.iter().cloned().map(Arc::new).collect(),
        }
    }
}

/// The objects that a server starts with.
impl From<Preset> for Objects {
    fn from(preset: Preset) -> Self {
        Self::from(&preset.objects())
    }
}

impl FromIterator<AnyObject> for Objects {
    fn from_iter<I: IntoIterator<Item = AnyObject>>(objects: I) -> Self {
        let mut all = Self::default();
        for object in objects {
            match object {
                AnyObject::FlowSchema(schema) => all.flow_schemas.push(Arc::new(schema)),
                AnyObject::PriorityLevelConfiguration(level) => all.priority_levels.push(Arc::new(level)),
            }
        }
        all
    }
}
