//! An engine with requests in it, each known by a number, and the objects that tests of the controller use.

#![allow(dead_code, reason = "no test needs all of this")]

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::controller::{ControlledLevel, Objects};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::{Arrival, Finish};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{ApplyReport, Engine, LevelId, LevelView, Ticket, WorkEstimate};

/// An engine, and what a server knows of its requests.
pub(crate) struct BusyEngine {
    pub(crate) engine: Engine<u32>,
    /// The requests that have started, in order.
    pub(crate) started: Vec<u32>,
    pub(crate) now: Instant,
    tickets: HashMap<u32, Ticket>,
}

/// What became of a request that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    Started,
    Waiting,
    Rejected,
    /// There is no such level.
    Nowhere,
}

/// These objects and no others.
pub(crate) fn objects(levels: &[PriorityLevelConfiguration], schemas: &[FlowSchema]) -> Objects {
    Objects {
        priority_levels: levels.iter().cloned().map(Arc::new).collect(),
        flow_schemas: schemas.iter().cloned().map(Arc::new).collect(),
    }
}

/// A level with one queue. Of a server with one seat, it has that seat beside `catch-all`, and lends none.
pub(crate) fn queuing(name: &str) -> PriorityLevelConfiguration {
    let builder = PriorityLevelConfiguration::builder(name);
    builder.limited(|l| l.shares(95).queue(|q| q.queues(1).hand_size(1))).build()
}

/// The level with other numbers, as they are: the API's defaults would replace a zero.
pub(crate) fn with_queues(
    mut level: PriorityLevelConfiguration,
    queues: i32,
    hand_size: i32,
) -> PriorityLevelConfiguration {
    let limited = level.spec.limited.as_mut().expect("a limited level");
    let queuing = limited.limit_response.queuing.as_mut().expect("a level with queues");
    (queuing.queues, queuing.hand_size) = (queues, hand_size);
    level
}

/// A level that rejects requests.
pub(crate) fn rejecting(name: &str, shares: i32) -> PriorityLevelConfiguration {
    PriorityLevelConfiguration::builder(name).limited(|l| l.shares(shares).reject()).build()
}

/// A schema for everybody and everything.
pub(crate) fn schema(name: &str, level: &str, precedence: i32) -> FlowSchema {
    let builder = FlowSchema::builder(name).priority_level(level).matching_precedence(precedence).by_user();
    builder.rule(|r| r.user("*").everything()).build()
}

/// One seat, and another second of it after the request has finished.
pub(crate) const LINGERING: WorkEstimate =
    WorkEstimate { initial_seats: 1, final_seats: 1, additional_latency: 1_000_000_000 };

// === impl BusyEngine ===

impl BusyEngine {
    pub(crate) fn new(server_limit: i64) -> Self {
        let now = Instant::from_nanos(0);
        Self { engine: Engine::new(server_limit, now), started: Vec::new(), now, tickets: HashMap::new() }
    }

    pub(crate) fn pass(&mut self, span: Nanos) {
        self.now = self.now + span;
    }

    pub(crate) fn apply(&mut self, objects: Objects) -> ApplyReport {
        self.engine.apply(objects, self.now, &mut |_: Ticket, number: &mut u32| self.started.push(*number))
    }

    pub(crate) fn reapply(&mut self) -> ApplyReport {
        self.engine.reapply(self.now, &mut |_: Ticket, number: &mut u32| self.started.push(*number))
    }

    pub(crate) fn adjust(&mut self) {
        self.engine.adjust(self.now, &mut |_: Ticket, number: &mut u32| self.started.push(*number));
    }

    /// A request of a flow of its own comes.
    pub(crate) fn arrive(&mut self, level: LevelId, number: u32, work: WorkEstimate) -> Came {
        let mut note = |_: Ticket, number: &mut u32| self.started.push(*number);
        let (came, id) =
            match self.engine.arrive(self.now, level, NewRequest::new(u64::from(number), work), number, &mut note) {
                Some(Arrival::Started { id, .. }) => (Came::Started, id),
                Some(Arrival::Waiting { id, .. }) => (Came::Waiting, id),
                Some(Arrival::Rejected { payload, .. }) => {
                    assert_eq!(payload, number);
                    return Came::Rejected;
                }
                None => return Came::Nowhere,
            };
        self.tickets.insert(number, Ticket { level, id });
        came
    }

    pub(crate) fn finish(&mut self, number: u32) -> Option<Finish<u32>> {
        let ticket = self.tickets[&number];
        self.engine.finish(self.now, ticket, &mut |_: Ticket, number: &mut u32| self.started.push(*number))
    }

    pub(crate) fn release(&mut self, number: u32) -> Option<u32> {
        let ticket = self.tickets[&number];
        self.engine.release(self.now, ticket, &mut |_: Ticket, number: &mut u32| self.started.push(*number))
    }

    pub(crate) fn cancel(&mut self, number: u32) -> Option<u32> {
        let ticket = self.tickets[&number];
        self.engine.cancel(self.now, ticket, &mut |_: Ticket, number: &mut u32| self.started.push(*number))
    }

    pub(crate) fn ticket(&self, number: u32) -> Ticket {
        self.tickets[&number]
    }

    /// The names of all levels.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.engine.levels().map(|level| level.name).collect()
    }

    /// The names of the schemas in use, in the order in which they are tried.
    pub(crate) fn schema_names(&self) -> Vec<String> {
        self.engine.configuration().schemas().iter().map(|schema| schema.name.to_string()).collect()
    }

    pub(crate) fn control(&self, level: &str) -> &ControlledLevel {
        let controller = self.engine.controller();
        let control = controller.level(level).unwrap_or_else(|| panic!("no level {level}"));
        assert_eq!(controller.is_quiescing(control.id()), control.is_quiescing(), "{level}: asked by id and by name");
        control
    }

    pub(crate) fn id(&self, level: &str) -> LevelId {
        self.control(level).id()
    }

    pub(crate) fn view(&self, level: &str) -> LevelView<'_, u32> {
        self.engine.levels().find(|view| view.name == level).unwrap_or_else(|| panic!("no level {level}"))
    }

    /// How many requests execute and wait in a level.
    pub(crate) fn busy(&self, level: &str) -> (usize, usize) {
        let set = self.view(level).queue_set;
        (set.executing(), set.waiting())
    }
}
