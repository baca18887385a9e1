//! A configuration, and the simulated server that has it.

use std::collections::{BTreeMap, HashMap};

use evenkeel::events::CostKind;
use evenkeel_api::annotations::{self, FlowBy, HeaderCondition};
use evenkeel_engine::controller::Objects;
use evenkeel_engine::cost::route_key;
use evenkeel_engine::time::Nanos;
use evenkeel_engine::{Attributes, Classification, RequestInfo, Terms, flow_hash};
use evenkeel_sim::{AccountKey, Class, NewRequest, ServerSettings, Simulator};

use crate::flows::{Counter, FlowName, Token};
use crate::record::{Outcome, Record};
use crate::replay::Settings;

/// A configuration, and the simulated server that has it.
#[derive(Debug)]
pub(crate) struct Side {
    simulator: Simulator<Token>,
    /// A class of each flow schema.
    classes: Vec<Class>,
    /// The headers that flow schemas ask for, each with the place of the first that does.
    asked_headers: BTreeMap<String, usize>,
}

/// The cost of a request, as far as the log has it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ToldCost {
    /// In the unit of its flow schema; `None` if the log does not tell.
    pub(crate) cost: Option<f64>,
    pub(crate) key: AccountKey,
    /// Whether a cost counts that the log does not tell.
    pub(crate) is_untold: bool,
}

/// The headers that a flow schema with these annotations asks for, in lower case.
fn asked_by(annotations: &BTreeMap<String, String>) -> Vec<String> {
    let matched = match annotations::match_headers(annotations) {
        Some(HeaderCondition::Headers(headers)) => headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect(),
        Some(HeaderCondition::NotUnderstood) | None => Vec::new(),
    };
    let flow_by = match annotations::flow_by(annotations) {
        Some(FlowBy::Header(name)) => Some(name.to_ascii_lowercase()),
        _ => None,
    };
    matched.into_iter().chain(flow_by).collect()
}

// === impl Side ===

impl Side {
    pub(crate) fn new(settings: &Settings, objects: Objects) -> Self {
        let mut server = ServerSettings::new(0).concurrency(&settings.concurrency);
        (server.preset, server.borrowing) = (settings.preset, settings.borrowing);
        server.newcomer_wait = settings.newcomer_wait;
        let objects = objects.with_mandatory_levels();
        let annotations =
            objects.flow_schemas.iter().map(|schema| (schema.name().to_owned(), schema.metadata.annotations.clone()));
        let annotations: HashMap<String, _> = annotations.collect();
        let simulator = Simulator::new(server, objects);
        let class =
            |(index, schema)| simulator.class_of(&Classification { index, schema, distinguisher: "", flow_hash: 0 });
        let classes = simulator.configuration().schemas().iter().enumerate().map(class).collect();
        let mut asked_headers = BTreeMap::new();
        for (index, schema) in simulator.configuration().schemas().iter().enumerate() {
            let Some(annotations) = annotations.get(&*schema.name) else { continue };
            for name in asked_by(annotations) {
                asked_headers.entry(name).or_insert(index);
            }
        }
        Self { simulator, classes, asked_headers }
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

    /// The cost of a request, as far as the log has it in the unit of its flow schema, and its key there. The log has costs in
    /// the unit that counted when it was written, and always the bytes. `route`: the number of its route, if it has one.
    pub(crate) fn cost(
        record: &Record<'_>,
        request: &RequestInfo<'_>,
        route: Option<u64>,
        class: &Classification<'_>,
    ) -> ToldCost {
        let terms = class.schema.terms.as_deref().filter(|terms| terms.needs_accounts());
        let Some(unit) = terms.map(Terms::counts) else { return ToldCost::default() };
        let flow = match &record.user {
            Some(user) => class.schema.flow_key(Attributes { user, request }),
            None => class.flow_hash,
        };
        let kind = unit.as_ref().map(CostKind::of);
        let cost = match kind {
            Some(CostKind::Bytes) => record.bytes,
            _ => record.cost.filter(|(_, told)| Some(*told) == kind).map(|(cost, _)| cost),
        };
        // Where time is the unit, the service time is the cost, whatever the log tells.
        let is_asked_for = kind.is_some_and(|kind| kind != CostKind::Seconds) && record.outcome == Outcome::Served;
        let key = AccountKey { flow, route: route.unwrap_or_else(|| route_key(request)) };
        ToldCost { cost, key, is_untold: is_asked_for && cost.is_none() }
    }

    /// The headers that flow schemas ask for, in lower case.
    pub(crate) fn asked_headers(&self) -> impl Iterator<Item = &str> {
        self.asked_headers.keys().map(String::as_str)
    }

    /// Whether this header can make a difference for a request that belongs to this schema without it.
    pub(crate) fn depends_on(&self, header: &str, schema: usize) -> bool {
        self.asked_headers.get(header).is_some_and(|first| *first <= schema)
    }

    pub(crate) fn asks_for_addresses(&self) -> bool {
        self.simulator.configuration().asks_for_addresses()
    }

    /// The most seats that the level of a schema can have.
    pub(crate) fn seats_max(&self, schema: usize) -> i64 {
        self.classes.get(schema).map_or(0, |class| self.simulator.level(class.level).limits().max)
    }

    /// The name of a flow of a schema.
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
