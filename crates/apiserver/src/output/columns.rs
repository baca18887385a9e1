//! `Columns`: what a table shows of each kind (API-174, API-175).

use std::cmp::Ordering;

use evenkeel_api::meta::Time;
use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, V1};
use evenkeel_api::{HubSpec, Object};
use serde::Serialize;

use super::age::age;

/// The columns of a kind's table.
pub(crate) trait Columns: HubSpec {
    /// The columns.
    const COLUMNS: &'static [Column];

    /// The cells of one row, one for each column.
    fn cells(object: &Object<V1, Self>, now: Time) -> Vec<Cell<'_>>;

    /// In which order the rows stand.
    fn order(one: &Object<V1, Self>, other: &Object<V1, Self>) -> Ordering;
}

/// A column of a table.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Column {
    name: &'static str,
    #[serde(rename = "type")]
    cell_type: &'static str,
    format: &'static str,
    description: &'static str,
    priority: u8,
}

/// A cell of a table.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Cell<'a> {
    /// A text that is there already.
    Text(&'a str),
    /// A text that was made for the table.
    Made(String),
    /// A number.
    Number(i32),
}

/// The text of a cell for a value that the object does not have.
const NONE: &str = "<none>";
/// The condition that says that the level of a flow schema is missing (API-197).
const DANGLING: &str = "Dangling";

// === impl Column ===

impl Column {
    const fn new(name: &'static str, description: &'static str) -> Self {
        Self { name, cell_type: "string", format: "", description, priority: 0 }
    }

    const fn name() -> Self {
        Self { format: "name", ..Self::new("Name", "The name of the object, unique among those of its kind.") }
    }

    const fn age() -> Self {
        Self::new("Age", "How long ago the object was created.")
    }
}

// === impl Cell ===

impl Cell<'_> {
    fn number(number: Option<i32>) -> Self {
        number.map_or(Self::Text(NONE), Self::Number)
    }
}

// === impl Columns ===

impl Columns for FlowSchemaSpec {
    const COLUMNS: &'static [Column] = &[
        Column::name(),
        Column::new("PriorityLevel", "The priority level that the requests go to."),
        Column::new("MatchingPrecedence", "Where the flow schema stands when several match: the lowest number wins."),
        Column::new("DistinguisherMethod", "What tells one flow from another."),
        Column::age(),
        Column::new("MissingPL", "Whether there is no priority level of that name."),
    ];

    fn cells(object: &FlowSchema, now: Time) -> Vec<Cell<'_>> {
        let spec = &object.spec;
        let method = spec.distinguisher_method.as_ref().map_or(NONE, |method| method.method.as_str());
        let dangling = object.status.condition(DANGLING).map_or("?", |condition| condition.status.as_str());
        vec![
            Cell::Text(object.name()),
            Cell::Text(&spec.priority_level_configuration.name),
            Cell::Number(spec.matching_precedence),
            Cell::Text(method),
            Cell::Made(age(object.metadata.creation_timestamp, now)),
            Cell::Text(dangling),
        ]
    }

    fn order(one: &FlowSchema, other: &FlowSchema) -> Ordering {
        let place = |schema: &FlowSchema| schema.spec.matching_precedence;
        place(one).cmp(&place(other)).then_with(|| one.name().cmp(other.name()))
    }
}

impl Columns for PriorityLevelConfigurationSpec {
    const COLUMNS: &'static [Column] = &[
        Column::name(),
        Column::new("Type", "Whether the level limits its requests."),
        Column::new("NominalConcurrencyShares", "The level's share of the server's seats."),
        Column::new("Queues", "How many queues the level has."),
        Column::new("HandSize", "How many of the queues a flow may use."),
        Column::new("QueueLengthLimit", "How many requests may wait in one queue."),
        Column::age(),
    ];

    fn cells(object: &PriorityLevelConfiguration, now: Time) -> Vec<Cell<'_>> {
        let limited = object.spec.limited.as_ref();
        let queuing = limited.and_then(|limited| limited.limit_response.queuing.as_ref());
        vec![
            Cell::Text(object.name()),
            Cell::Text(object.spec.enablement.as_str()),
            Cell::number(limited.map(|limited| limited.nominal_concurrency_shares.unwrap_or_default())),
            Cell::number(queuing.map(|queuing| queuing.queues)),
            Cell::number(queuing.map(|queuing| queuing.hand_size)),
            Cell::number(queuing.map(|queuing| queuing.queue_length_limit)),
            Cell::Made(age(object.metadata.creation_timestamp, now)),
        ]
    }

    fn order(one: &PriorityLevelConfiguration, other: &PriorityLevelConfiguration) -> Ordering {
        one.name().cmp(other.name())
    }
}
