//! Rejects writes that would leave the governed server with fewer seats than it has levels that need one (LB-2a).

use std::any::Any;
use std::sync::{Arc, OnceLock};

use evenkeel::FlowControl;
use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, V1};
use evenkeel_api::{HubSpec, Object, Preset};
use evenkeel_check::Assumptions;
use evenkeel_engine::controller::{Borrowing, Objects, TooFewSeats};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::failure::Failure;
use crate::options::Moment;
use crate::registry::Registry;

/// The flow control of the server that the objects govern, as soon as there is one in this process. Clones share it.
///
/// This trait tells the API how many seats that server has. Without it, the API stores every valid object.
#[derive(Debug, Clone, Default)]
pub struct GovernedFlow {
    flow: Arc<OnceLock<FlowControl>>,
    /// One write at a time: two writes that fit alone may be too much together.
    one_by_one: Arc<Mutex<()>>,
}

/// The facts that decide whether there are enough seats after a write.
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

    /// The assumptions of checks about the server: the known facts about its flow control.
    pub(crate) fn assumptions(&self) -> Assumptions {
        let unknown = || Assumptions {
            preset: Preset::Plain,
            borrowing: Borrowing::Immediate,
            widest: 1,
            ..Assumptions::default()
        };
        self.flow.get().map_or_else(unknown, FlowControl::check_assumptions)
    }
}

// === impl SeatCheck ===

impl SeatCheck<'_> {
    /// Rejects an object that would leave too few seats. A write that makes nothing worse is accepted.
    pub(crate) async fn admit<S: HubSpec>(&self, object: &Object<V1, S>) -> Result<SeatsChecked, Failure> {
        // With other settings, no level that needs a seat can be without one.
        let flow = self.governed.flow.get().filter(|flow| !flow.preset().is_kubernetes());
        let Some(flow) = flow else { return Ok(SeatsChecked { _turn: None }) };
        let turn = Arc::clone(&self.governed.one_by_one).lock_owned().await;
        let flow_schemas = self.schemas.snapshot(Moment::Any).await?.objects;
        let priority_levels = self.levels.snapshot(Moment::Any).await?.objects;
        let before = Objects { flow_schemas, priority_levels };
        match too_few_after(flow, before, object) {
            Some(too_few) => Err(refusal(object, &too_few)),
            None => Ok(SeatsChecked { _turn: Some(turn) }),
        }
    }
}

/// The problem after a write, unless it was there before and is not worse.
fn too_few_after<S: HubSpec>(flow: &FlowControl, before: Objects, object: &Object<V1, S>) -> Option<TooFewSeats> {
    let lacking = |objects: &Objects| flow.check_objects(objects).err();
    let in_need_before = lacking(&before).map_or(0, |too_few| too_few.levels.len());
    lacking(&with(before, object)).filter(|too_few| too_few.levels.len() > in_need_before)
}

/// The objects after the write.
pub(crate) fn with<S: HubSpec>(mut objects: Objects, object: &Object<V1, S>) -> Objects {
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
