//! The objects that a flow control follows, and the report on them.

use evenkeel_api::annotations::NotUnderstood;
use evenkeel_api::{Kind, Preset};
use evenkeel_engine::controller::{Dangling, Objects, TooFewSeats, Unusable};

use super::change::Change;
use super::{FlowControl, FlowControlShared};
use crate::control::into_objects::IntoObjects;
use crate::control::object_problems::{self, InvalidObjects};

/// The report on a set of objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ObjectsReport {
    /// The flow schemas that were given whose levels do not exist. They are not used.
    pub dangling: Vec<Dangling>,
    /// The levels that were given and could not be used, by name.
    pub unusable: Vec<(String, Unusable)>,
    /// Annotations that are not understood, each with the kind and the name of its object. Their defaults are used.
    pub not_understood: Vec<(Kind, String, NotUnderstood)>,
    /// Whether there are fewer seats than levels that have to have one: some of them have none (LB-2a).
    pub too_few_seats: Option<TooFewSeats>,
}

// === impl FlowControl ===

impl FlowControl {
    /// Follows these objects from now on. Requests that run go on, and requests that wait keep their places.
    ///
    /// The mandatory levels `exempt` and `catch-all` are always among the objects. If anything is wrong with the objects, nothing
    /// changes, and the error lists every problem: see [`FlowControlBuilder::try_build`](crate::FlowControlBuilder::try_build).
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// fn reload(flow: &FlowControl, manifest: &str) {
    ///     match flow.apply(manifest) {
    ///         Ok(report) if report.too_few_seats.is_some() => eprintln!("some level has no seats"),
    ///         Ok(_) => {}
    ///         Err(invalid) => eprintln!("the old objects stay in effect: {invalid}"),
    ///     }
    /// }
    /// ```
    pub fn apply(&self, objects: impl IntoObjects) -> Result<ObjectsReport, InvalidObjects> {
        let objects = objects.into_objects(self.preset())?;
        object_problems::check(&objects, self.shared.exempt_paths.as_ref(), self.preset())?;
        Ok(self.follow(objects.with_mandatory_levels()))
    }

    /// The same for objects that a store holds. They have been validated before, perhaps by other rules: what can be used of
    /// them is used, and the report and a warning name flow schemas without a level and levels that cannot be used.
    ///
    /// For a [Kubernetes API](Preset::Kubernetes), a mandatory object that is not among them has been deleted, and flow schemas
    /// that lead there are without a level, as in a kube-apiserver (CC-9).
    pub fn apply_stored(&self, objects: Objects) -> ObjectsReport {
        match self.shared.preset {
            Preset::Plain | Preset::Llm => self.follow(objects.with_mandatory_levels()),
            Preset::Kubernetes => self.follow(objects),
        }
    }

    pub(super) fn follow(&self, mut objects: Objects) -> ObjectsReport {
        objects.flow_schemas.extend(self.shared.exempt_paths.clone());
        self.shared.change(|controller, changes, now| {
            let mut applied = controller.apply(objects, changes, now);
            // A limit that finds itself is never below what the levels need (AL-6).
            if applied.too_few_seats.is_some() && self.shared.upkeep.pulse.found_seats().is_some() {
                let needed = controller.seats_min();
                applied.too_few_seats = controller.set_server_limit(needed.into(), changes, now);
            }
            Change::Objects(Box::new(applied))
        })
    }

    /// The report on the objects that it follows.
    pub fn report(&self) -> ObjectsReport {
        self.shared.control().report.clone()
    }

    /// Whether every level that has to have a seat would have one under these objects. [`apply`](Self::apply) does not ask: some
    /// level is then without seats, which its [`ObjectsReport`] says.
    ///
    /// ```
    /// use evenkeel::objects::Objects;
    /// use evenkeel::{FlowControl, PriorityLevelConfiguration};
    ///
    /// let level = |name| PriorityLevelConfiguration::builder(name).limited(|l| l.shares(10).reject()).build().into();
    /// let objects: Objects = ["orders", "reports", "rest"].map(level).into_iter().collect();
    /// let flow = FlowControl::builder().server_concurrency(2).drive_by_hand().build();
    /// let too_few = flow.check_objects(&objects).unwrap_err();
    /// assert!(too_few.to_string().starts_with("2 seats are too few for 4 priority levels with shares"));
    /// ```
    ///
    /// A limit that finds itself rises to what the objects need.
    pub fn check_objects(&self, objects: &Objects) -> Result<(), TooFewSeats> {
        let control = self.shared.control();
        let found_max = control.finder.as_ref().map(|finder| i64::from(*finder.limit.bounds().end()));
        let seats = found_max.or_else(|| self.shared.fleet_seats());
        control.controller.check_seats(objects, seats.unwrap_or_else(|| control.controller.server_limit()))
    }

    /// [`check_objects`](Self::check_objects) for a server with so many seats.
    pub fn check_objects_with(&self, objects: &Objects, seats: u32) -> Result<(), TooFewSeats> {
        self.shared.control().controller.check_seats(objects, seats.into())
    }

    /// [`check_objects`](Self::check_objects) for the objects in effect, on a server with so many seats.
    pub fn check_server_concurrency(&self, seats: u32) -> Result<(), TooFewSeats> {
        let control = self.shared.control();
        control.controller.check_seats(control.controller.objects(), seats.into())
    }
}

// === impl ObjectsReport ===

impl ObjectsReport {
    /// The problems that are new since the report before.
    pub(super) fn news_since(&self, before: &Self) -> Self {
        let dangling = self.dangling.iter().filter(|found| !before.dangling.contains(found));
        let unusable = self.unusable.iter().filter(|found| !before.unusable.contains(found));
        let not_understood = self.not_understood.iter().filter(|found| !before.not_understood.contains(found));
        Self {
            dangling: dangling.cloned().collect(),
            unusable: unusable.cloned().collect(),
            not_understood: not_understood.cloned().collect(),
            too_few_seats: self.too_few_seats.clone().filter(|found| before.too_few_seats.as_ref() != Some(found)),
        }
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    /// The flow schemas that are not used because their levels are missing.
    pub(crate) fn dangling(&self) -> Vec<Dangling> {
        self.control().report.dangling.clone()
    }
}
