//! The objects that a controller is to follow.

use std::sync::Arc;

use evenkeel_api::annotations::{self, NotUnderstood};
use evenkeel_api::meta::ObjectMeta;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration, PriorityLevelEnablement};
use evenkeel_api::{AnyObject, Kind, Object, Preset, bootstrap};

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
    /// A controller has the mandatory objects anyway, but follows only flow schemas whose levels are given (CC-9). A file of
    /// objects that leaves out the mandatory ones means this. An object `exempt` that does not say `exempt: {}`, which is valid
    /// but of no use to a controller (CC-8), gets it too.
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
    /// The objects that govern: all but those of the mode `audit`, or these too if one of them has the mode `promote`.
    #[must_use]
    pub fn governing(mut self) -> Self {
        if self.is_promoted() {
            return self.in_places();
        }
        self.priority_levels.retain(|level| governs(&level.metadata));
        self.flow_schemas.retain(|schema| governs(&schema.metadata));
        self
    }

    /// What would govern if those of the mode `audit` did, each in the place of the object that it names, or as another one; `None` if none has
    /// that mode, or if they govern already.
    pub fn audited(&self) -> Option<Self> {
        let is_audit = self.metadata().any(|metadata| !governs(metadata));
        (is_audit && !self.is_promoted()).then(|| self.in_places())
    }

    /// The levels among which a server divides its seats that follows these objects, as those that [govern](Self::governing).
    pub fn seat_plan(&self) -> SeatPlan<'_> {
        let levels = self.priority_levels.iter().map(|level| &**level).filter(|level| governs(&level.metadata));
        let schemas = self.flow_schemas.iter().map(|schema| &**schema).filter(|schema| governs(&schema.metadata));
        SeatPlan::new(levels, schemas)
    }

    /// Whether one write has let all objects of the shadow govern (SH-5).
    fn is_promoted(&self) -> bool {
        self.metadata().any(|metadata| annotations::is_promoted(&metadata.annotations))
    }

    fn metadata(&self) -> impl Iterator<Item = &ObjectMeta> {
        let levels = self.priority_levels.iter().map(|level| &level.metadata);
        levels.chain(self.flow_schemas.iter().map(|schema| &schema.metadata))
    }

    fn in_places(&self) -> Self {
        Self { priority_levels: in_place(&self.priority_levels), flow_schemas: in_place(&self.flow_schemas) }
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

fn governs(metadata: &ObjectMeta) -> bool {
    !annotations::is_audit(&metadata.annotations)
}

/// The objects of a kind, with those of the mode `audit` in the places of those that they name.
fn in_place<V: Clone, S: Clone>(objects: &[Arc<Object<V, S>>]) -> Vec<Arc<Object<V, S>>>
where
    Object<V, S>: Clone,
{
    let (governing, audits): (Vec<_>, Vec<_>) = objects.iter().partition(|object| governs(&object.metadata));
    let audits: Vec<_> = (audits.into_iter())
        .map(|audit| {
            let mut object = Object::clone(audit);
            if let Some(name) = annotations::replaces(&audit.metadata.annotations) {
                name.clone_into(&mut object.metadata.name);
            }
            object.metadata.annotations.remove(annotations::MODE);
            object.metadata.annotations.remove(annotations::REPLACES);
            Arc::new(object)
        })
        .collect();
    let is_replaced = |name: &str| audits.iter().any(|audit| audit.metadata.name == name);
    let kept = governing.into_iter().filter(|object| !is_replaced(&object.metadata.name)).cloned();
    kept.chain(audits.iter().cloned()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, shares: i32, annotations: &[(&str, &str)]) -> AnyObject {
        let mut level = PriorityLevelConfiguration::builder(name).limited(|l| l.shares(shares).reject()).build();
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        level.metadata.annotations.extend(annotations);
        level.into()
    }

    fn shown(objects: &Objects) -> Vec<(&str, Option<i32>)> {
        let shares = |level: &PriorityLevelConfiguration| level.spec.limited.as_ref()?.nominal_concurrency_shares;
        objects.priority_levels.iter().map(|level| (level.name(), shares(level))).collect()
    }

    #[test]
    fn sh_5_objects_of_the_mode_audit_do_not_govern_and_take_the_places_that_they_name() {
        let audit = (annotations::MODE, "audit");
        let objects: Objects = [
            level("orders", 10, &[]),
            level("rest", 20, &[]),
            level("orders-next", 30, &[audit, (annotations::REPLACES, "orders")]),
            level("reports", 40, &[audit]),
        ]
        .into_iter()
        .collect();
        assert_eq!(shown(&objects.clone().governing()), [("orders", Some(10)), ("rest", Some(20))]);
        let audited = objects.audited().unwrap();
        assert_eq!(shown(&audited), [("rest", Some(20)), ("orders", Some(30)), ("reports", Some(40))]);
        assert!(audited.audited().is_none(), "those that govern in the shadow have no mode");

        // One of them is promoted: all of them govern, whatever is written of the others after that.
        let mut promoted = objects.clone();
        let leader = promoted.priority_levels.iter_mut().find(|level| level.name() == "reports").unwrap();
        let annotations = &mut Arc::make_mut(leader).metadata.annotations;
        annotations.insert(annotations::MODE.to_owned(), annotations::PROMOTE.to_owned());
        assert!(promoted.audited().is_none());
        assert_eq!(shown(&promoted.clone().governing()), shown(&audited));
        for (name, shares) in [("orders", Some(30)), ("orders-next", None)] {
            promoted.priority_levels.retain(|level| level.name() != name);
            promoted.priority_levels.extend(shares.map(|shares| match level(name, shares, &[]) {
                AnyObject::PriorityLevelConfiguration(level) => Arc::new(level),
                AnyObject::FlowSchema(_) => unreachable!(),
            }));
            let mut governing = promoted.clone().governing();
            governing.priority_levels.sort_by(|one, other| other.name().cmp(one.name()));
            assert_eq!(shown(&governing), [("rest", Some(20)), ("reports", Some(40)), ("orders", Some(30))]);
        }
        assert_eq!(objects.seat_plan().seats_min(), objects.governing().seat_plan().seats_min());
        // What is not understood changes nothing: the object governs.
        let unknown: Objects = [level("a", 1, &[(annotations::MODE, "dry-run")])].into_iter().collect();
        assert!(unknown.audited().is_none() && !unknown.not_understood().is_empty());
    }
}
