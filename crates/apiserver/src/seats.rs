//! Refuses writes that would leave the server whose requests the objects govern with fewer seats than levels that must have
//! one (LB-2a).

use std::any::Any;
use std::sync::{Arc, OnceLock};

use evenkeel::FlowControl;
use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, V1};
use evenkeel_api::{HubSpec, Object, Preset};
use evenkeel_engine::controller::{Objects, TooFewSeats};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::failure::Failure;
use crate::options::Moment;
use crate::registry::Registry;

/// The flow control of the server whose requests the objects govern, as soon as there is one in this process. Clones share it.
///
/// The API knows the seats of that server from here. Without one, it stores whatever is valid.
#[derive(Debug, Clone, Default)]
pub struct GovernedFlow {
    flow: Arc<OnceLock<FlowControl>>,
    /// Two writes that fit one by one may be too much together.
    one_by_one: Arc<Mutex<()>>,
}

/// What decides whether there are enough seats after a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeatCheck<'a> {
    pub(crate) governed: &'a GovernedFlow,
    pub(crate) schemas: &'a Registry<FlowSchemaSpec>,
    pub(crate) levels: &'a Registry<PriorityLevelConfigurationSpec>,
}

/// The right to write, after the check and until the write has taken place.
#[derive(Debug)]
pub(crate) struct SeatsChecked {
    _turn: Option<OwnedMutexGuard<()>>,
}

// === impl GovernedFlow ===

impl GovernedFlow {
    /// The objects govern the requests of this flow control from now on. Only the first one counts.
    pub fn set(&self, flow: FlowControl) {
        let _ = self.flow.set(flow);
    }
}

// === impl SeatCheck ===

impl SeatCheck<'_> {
    /// Refuses an object that would leave too few seats. One that makes nothing worse passes.
    pub(crate) async fn admit<S: HubSpec>(&self, object: &Object<V1, S>) -> Result<SeatsChecked, Failure> {
        // Elsewhere there can be no level without a seat that must have one.
        let flow = self.governed.flow.get().filter(|flow| flow.preset() == Preset::Plain);
        let Some(flow) = flow else { return Ok(SeatsChecked { _turn: None }) };
        let turn = Arc::clone(&self.governed.one_by_one).lock_owned().await;
        let (flow_schemas, _) = self.schemas.snapshot(Moment::Any).await?;
        let (priority_levels, _) = self.levels.snapshot(Moment::Any).await?;
        let before = Objects { flow_schemas, priority_levels };
        match too_few_after(flow, before, object) {
            Some(too_few) => Err(refusal(object, &too_few)),
            None => Ok(SeatsChecked { _turn: Some(turn) }),
        }
    }
}

/// What is wrong after a write and was not before, or not as much.
fn too_few_after<S: HubSpec>(flow: &FlowControl, before: Objects, object: &Object<V1, S>) -> Option<TooFewSeats> {
    let lacking = |objects: &Objects| flow.check_objects(objects).err();
    let in_need_before = lacking(&before).map_or(0, |too_few| too_few.levels.len());
    lacking(&with(before, object)).filter(|too_few| too_few.levels.len() > in_need_before)
}

/// The objects with this one among them.
fn with<S: HubSpec>(mut objects: Objects, object: &Object<V1, S>) -> Objects {
    let object: &dyn Any = object;
    if let Some(level) = object.downcast_ref::<PriorityLevelConfiguration>() {
        put(&mut objects.priority_levels, level);
    }
    if let Some(schema) = object.downcast_ref::<FlowSchema>() {
        put(&mut objects.flow_schemas, schema);
    }
    objects
}

fn put<S: HubSpec>(objects: &mut Vec<Arc<Object<V1, S>>>, object: &Object<V1, S>) {
    let object = Arc::new(object.clone());
    match objects.binary_search_by(|known| known.name().cmp(object.name())) {
        Ok(place) => objects[place] = object,
        Err(place) => objects.insert(place, object),
    }
}

fn refusal<S: HubSpec>(object: &Object<V1, S>, too_few: &TooFewSeats) -> Failure {
    let needed = too_few.levels.len();
    let why = format!("{too_few}; set `concurrency` of the gateway to at least {needed}, or delete a level first");
    Failure::not_admitted(S::KIND, object.name(), why)
}
