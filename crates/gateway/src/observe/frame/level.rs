//! A level in a frame.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{is_default, short};

/// A priority level: its seats, the requests that wait for them, and the flows that use them.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Level {
    /// The name of the level.
    pub name: String,
    /// What happens to requests that find no seat; `None` where it is not known.
    #[serde(skip_serializing_if = "is_default")]
    pub queuing: Option<Queuing>,
    /// Whether its object is gone, and it stays only until its last request has ended.
    #[serde(skip_serializing_if = "is_default")]
    pub is_quiescing: bool,
    /// The seats that the level has of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub nominal: i64,
    /// The seats that nobody can borrow from it.
    #[serde(skip_serializing_if = "is_default")]
    pub floor: i64,
    /// The seats that it can have at most, with those that others can lend.
    #[serde(skip_serializing_if = "is_default")]
    pub limit: i64,
    /// The seats that it may use now.
    #[serde(skip_serializing_if = "is_default")]
    pub current: i64,
    /// The seats in use at the end of the interval. [`utilisation`](Self::utilisation) tells of the whole interval.
    #[serde(skip_serializing_if = "is_default")]
    pub in_use: i64,
    /// The mean of the seats in use through the interval.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub in_use_mean: f64,
    /// The seats that it has from other levels.
    #[serde(skip_serializing_if = "is_default")]
    pub borrowed: i64,
    /// The seats of its own that other levels have.
    #[serde(skip_serializing_if = "is_default")]
    pub lent: i64,
    /// The requests that wait at the end of the interval.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting: i64,
    /// The long-running requests at the end of the interval, whether they have seats or not.
    #[serde(skip_serializing_if = "is_default")]
    pub long_running: i64,
    /// How many of them there may be; `None` if there is no limit or it is not known.
    #[serde(skip_serializing_if = "is_default")]
    pub long_running_limit: Option<i64>,
    /// The seats in use by long-running requests that have not begun to respond.
    #[serde(skip_serializing_if = "is_default")]
    pub long_running_seats: i64,
    /// How long the requests waited that were started, or gave up waiting, in the interval; `None` if there were none.
    #[serde(skip_serializing_if = "is_default")]
    pub wait_ms: Option<Percentiles>,
    /// How long the requests ran that ended in the interval; `None` if there were none.
    #[serde(skip_serializing_if = "is_default")]
    pub execution_ms: Option<Percentiles>,
    /// Requests started per second.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub dispatched: f64,
    /// Requests rejected per second, by reason, as the metric `apiserver_flowcontrol_rejected_requests_total` names it.
    #[serde(skip_serializing_if = "is_default")]
    pub rejected: BTreeMap<String, f64>,
    /// Requests ended per second because another level needed its own seats.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub revoked: f64,
    /// How much of its current limit the level used through the interval. `None` for a level without a limit.
    #[serde(skip_serializing_if = "is_default")]
    pub utilisation: Option<Utilisation>,
    /// The flow schemas that lead to the level, and how many requests each has matched.
    #[serde(skip_serializing_if = "is_default")]
    pub schemas: Vec<Schema>,
    /// The seats that are kept for clients of which nothing runs, because others hold seats for long.
    #[serde(skip_serializing_if = "is_default")]
    pub kept: i64,
    /// The heaviest flows of the last minute, the heaviest first. Only of the levels with the most to tell.
    #[serde(skip_serializing_if = "is_default")]
    pub flows: Vec<Flow>,
    /// Who delayed whom in the last minute, the longest delay first.
    #[serde(skip_serializing_if = "is_default")]
    pub delays: Vec<Delay>,
}

/// What happens to requests that find no seat.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Queuing {
    /// Every request finds a seat.
    Exempt,
    /// Requests without a free seat are rejected.
    Reject,
    /// Requests wait in queues that flows share, as in Kubernetes.
    ShuffleSharding,
    /// Requests wait in the queue of their flow.
    PerFlow,
}

/// A distribution in two numbers.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half of the values are below it.
    #[serde(serialize_with = "short")]
    pub p50: f64,
    /// 99 of 100 values are below it.
    #[serde(serialize_with = "short")]
    pub p99: f64,
}

/// A ratio through an interval, from integrals over time and not from samples. `min` and `max` are bounds of the
/// buckets that the ratio was in.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Utilisation {
    /// The value was never below this.
    #[serde(serialize_with = "short")]
    pub min: f64,
    /// The mean of the value over time.
    #[serde(serialize_with = "short")]
    pub mean: f64,
    /// The value was never above this.
    #[serde(serialize_with = "short")]
    pub max: f64,
}

/// A flow schema that leads to a level.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Schema {
    /// The name of the flow schema.
    pub name: String,
    /// The requests that it has matched since the server started.
    pub hits: u64,
    /// The requests that it matched in the interval, per second.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub rate: f64,
    /// The rate of the flows of the schema, if they have one.
    #[serde(skip_serializing_if = "is_default")]
    pub flow_rate: Option<FlowRate>,
}

/// The rate of the flows of a schema, and the requests that wait for it.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FlowRate {
    /// The rate of each flow, as the annotation `evenkeel.dev/rate` has it.
    pub policy: String,
    /// Requests that had to wait for it, per second.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub delayed: f64,
    /// Requests that wait for it at the end of the interval. They take no seat.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting: u64,
}

/// A flow of a level: over the last minute, and at the end of the interval.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Flow {
    /// The flow schema.
    pub schema: String,
    /// The user or the namespace, as the schema's distinguisher says; empty if the schema has none.
    #[serde(skip_serializing_if = "is_default")]
    pub distinguisher: String,
    /// The seats that it held on average.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub seats: f64,
    /// The requests that waited on average.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub waiting: f64,
    /// The requests that were rejected, per second.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub rejected: f64,
    /// The seats that it holds at the end of the interval.
    #[serde(skip_serializing_if = "is_default")]
    pub held: i64,
    /// Requests of the flow that wait at the end of the interval.
    #[serde(skip_serializing_if = "is_default")]
    pub queued: i64,
    /// How long the oldest of them has waited.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub queued_ms: f64,
    /// The costs of its requests that have ended, for each unit that they were counted in.
    #[serde(skip_serializing_if = "is_default")]
    pub costs: Vec<FlowCost>,
}

/// The cost of the requests of a flow within the last minute.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FlowCost {
    /// `seconds`, `bytes`, `tokens`, or `units` if the service reports the cost.
    pub unit: String,
    /// The cost per second.
    #[serde(serialize_with = "short")]
    pub rate: f64,
    /// The cost that was expected, per second.
    #[serde(serialize_with = "short")]
    pub expected: f64,
}

/// How much one flow waited behind another in the last minute.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delay {
    /// The flow that waited: an index of [`Level::flows`].
    pub waiter: usize,
    /// The flow that held the seats: an index of [`Level::flows`], the same as `waiter` for its own requests; `None` for all
    /// flows that are not listed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: Option<usize>,
    /// For how long, summed over all its requests.
    #[serde(serialize_with = "short")]
    pub seconds: f64,
    /// The share of all waiting of the level.
    #[serde(serialize_with = "short")]
    pub share: f64,
}

// === impl Level ===

impl Level {
    /// Whether the level has no limit.
    pub fn is_exempt(&self) -> bool {
        self.queuing == Some(Queuing::Exempt)
    }

    /// Requests rejected per second, for whatever reason.
    pub fn rejected_total(&self) -> f64 {
        self.rejected.values().sum()
    }
}
