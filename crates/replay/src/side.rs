//! A configuration, and the simulated server that has it.

use evenkeel_engine::controller::Objects;
use evenkeel_engine::time::Nanos;
use evenkeel_engine::{Attributes, Classification, RequestInfo, flow_hash};
use evenkeel_sim::{Class, NewRequest, ServerSettings, Simulator};

use crate::flows::{Counter, FlowName, Token};
use crate::record::Record;
use crate::replay::Settings;

/// A configuration, and the simulated server that has it.
#[derive(Debug)]
pub(crate) struct Side {
    simulator: Simulator<Token>,
    /// A class of each flow schema.
    classes: Vec<Class>,
}

// === impl Side ===

impl Side {
    pub(crate) fn new(settings: &Settings, objects: Objects) -> Self {
        let mut server = ServerSettings::new(0).concurrency(&settings.concurrency);
        (server.preset, server.borrowing) = (settings.preset, settings.borrowing);
        let simulator = Simulator::new(server, objects.with_mandatory_levels());
        let class =
            |(index, schema)| simulator.class_of(&Classification { index, schema, distinguisher: "", flow_hash: 0 });
        let classes = simulator.configuration().schemas().iter().enumerate().map(class).collect();
        Self { simulator, classes }
    }

    /// Where a request belongs. If the log does not tell its user, it stays in the schema that it was in; `None` if there is
    /// no such schema.
    pub(crate) fn classify<'a>(
        &'a self,
        record: &'a Record<'_>,
        request: &'a RequestInfo<'_>,
    ) -> Option<Classification<'a>> {
        let configuration = self.simulator.configuration();
        if let Some(user) = &record.user {
            return Some(configuration.classify(Attributes { user, request }));
        }
        let name = &*record.placed.as_ref()?.schema;
        let (index, schema) = configuration.schemas().iter().enumerate().find(|(_, schema)| &*schema.name == name)?;
        let flow_hash = if schema.level.has_flows { flow_hash(&schema.name, "") } else { 0 };
        Some(Classification { index, schema, distinguisher: "", flow_hash })
    }

    /// The most seats that the level of a schema can have.
    pub(crate) fn seats_max(&self, schema: usize) -> i64 {
        self.classes.get(schema).map_or(0, |class| self.simulator.level(class.level).limits().max)
    }

    /// What a flow of a schema is called.
    pub(crate) fn flow_name(&self, schema: u32, distinguisher: &str) -> FlowName {
        let schema = &self.simulator.configuration().schemas()[schema as usize];
        let (level, distinguisher) = (schema.level.name.clone(), Some(distinguisher.into()));
        FlowName { schema: schema.name.clone(), level, distinguisher }
    }

    /// A request arrives that belongs to a flow of a schema.
    pub(crate) fn arrive(
        &mut self,
        at: Nanos,
        (schema, flow_hash): (u32, u64),
        request: NewRequest<Token>,
        counter: &mut Counter<'_>,
    ) {
        let mut class = self.classes[schema as usize];
        class.flow_hash = flow_hash;
        self.simulator.arrive(at, class, request, counter);
    }

    /// Lets the last requests end.
    pub(crate) fn drain(&mut self, counter: &mut Counter<'_>) {
        self.simulator.drain(counter);
    }

    pub(crate) fn into_simulator(self) -> Simulator<Token> {
        self.simulator
    }
}
