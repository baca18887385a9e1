//! `FlowControl::flows`: who uses the levels and who delays whom (AT-1, AT-2), as a structure for tools.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use evenkeel_engine::attribution::{FlowKey, FlowNow, LevelUsage, Ranking};
use evenkeel_engine::time::{Nanos, SECOND};
use serde::Serialize;

use crate::control::events::CostKind;
use crate::control::flow_control::{FlowControl, FlowControlShared};
use crate::control::level::Level;

/// Who used a level within the last minute, and who delayed whom. Made by
/// [`FlowControl::flows`](crate::FlowControl::flows); it can be serialised.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LevelFlows {
    /// The name of the level.
    pub level: String,
    /// The length of time that the figures cover, in seconds: half a minute to a minute, or less if less has passed.
    pub window_seconds: f64,
    /// The heaviest flows: those with the most seat-time first. Each is among the heaviest by one of the figures.
    pub flows: Vec<FlowUsage>,
    /// What all other flows have together.
    pub other: FlowFigures,
    /// What all flows have together.
    pub total: FlowFigures,
    /// By how much each figure of a flow may be wrong, since memory is bounded.
    pub error: FlowFigures,
    /// Who delayed whom: the longest waits first.
    pub delays: Vec<FlowDelay>,
}

/// A flow: what tells requests apart that take turns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowId {
    /// The name of its flow schema.
    pub schema: String,
    /// What tells it from the other flows of its flow schema: a user or a namespace; empty if nothing does. The end of a name
    /// that is very long is replaced by `…`.
    pub flow: String,
}

/// A flow and its figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowUsage {
    /// Which flow.
    #[serde(flatten)]
    pub id: FlowId,
    /// The figures of the flow over that time.
    #[serde(flatten)]
    pub figures: FlowFigures,
    /// The figures of the flow at this moment.
    #[serde(flatten)]
    pub now: FlowMoment,
    /// The cost of its requests that have ended, for each unit that it was counted in. Empty if costs do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<FlowCost>,
}

/// The cost of the requests of a flow, in one unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowCost {
    /// The unit of the cost: `seconds`, `bytes`, `tokens`, or `units` if the service reports it.
    pub unit: &'static str,
    /// The cost of all of them.
    pub cost: f64,
    /// What they were expected to cost.
    pub expected: f64,
}

/// The figures of a flow at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowMoment {
    /// The seats that it holds.
    pub seats_now: u64,
    /// How many of its requests wait.
    pub waiting_now: u64,
    /// How long its oldest waiting request has waited.
    pub longest_wait_seconds: f64,
}

/// The seat-time, waits, rejections and delays of a flow, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowFigures {
    /// Seats times seconds. Divided by the window it is the number of seats that were in use on average.
    pub seat_seconds: f64,
    /// How long its requests waited, of those that have started or were rejected.
    pub wait_seconds: f64,
    /// How many of its requests were rejected.
    pub rejections: u64,
    /// How long requests waited behind its requests, its own included.
    pub delay_seconds: f64,
}

/// How long one flow waited behind another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowDelay {
    /// The flow whose requests waited.
    pub delayed: FlowId,
    /// The flow whose requests had the seats: the same flow if it waited behind requests of its own, and `None` if the level had
    /// no seats at all.
    pub behind: Option<FlowId>,
    /// How long.
    pub wait_seconds: f64,
}

/// How many flows are looked at by each figure, and how many delays.
const LOOKED_AT: usize = 64;

// === impl FlowControl ===

impl FlowControl {
    /// Who used each level within the last minute, and who delayed whom: so many flows by each figure, and the longest of the
    /// delays among so many, in ascending byte order of the levels' names. Empty unless flows are
    /// [attributed](crate::FlowControlBuilder::attribute_flows).
    ///
    /// ```
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// let flow = FlowControl::builder().attribute_flows().drive_by_hand().build();
    /// let (user, request) = (User::new("alice", ["system:authenticated"]), RequestInfo::default());
    /// for _ in 0..3 {
    ///     drop(flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT));
    /// }
    /// let levels = flow.flows(20);
    /// let everyone = levels.iter().find(|level| level.level == "everyone").unwrap();
    /// assert_eq!(everyone.flows[0].id.flow, "alice");
    /// ```
    pub fn flows(&self, count: usize) -> Vec<LevelFlows> {
        self.shared().flows(count)
    }

    /// Who uses one level, and who delays whom there; `None` if there is no such level, or flows are not attributed.
    pub fn flows_of(&self, level: &str, count: usize) -> Option<LevelFlows> {
        let shared = self.shared();
        shared.level_flows(level, &*shared.known_levels.get(level)?, count)
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    pub(crate) fn flows(&self, count: usize) -> Vec<LevelFlows> {
        let levels = self.known_levels.all();
        levels.iter().filter_map(|(name, level)| self.level_flows(name, level, count)).collect()
    }

    fn level_flows(&self, name: &str, level: &Level, count: usize) -> Option<LevelFlows> {
        let now = self.upkeep().clock.now();
        let (mut listeners, now) = level.listeners_and(|core| core.at(now));
        let usage = listeners.attribution.as_mut()?.usage(now, LOOKED_AT);
        Some(LevelFlows::new(name, &usage, count))
    }
}

// === impl LevelFlows ===

impl LevelFlows {
    fn new(name: &str, usage: &LevelUsage<'_>, count: usize) -> Self {
        let id = |key| FlowId::new(usage, key);
        let rankings = [&usage.seat_time, &usage.waiting, &usage.rejections, &usage.blamed];
        let heaviest = rankings.iter().flat_map(|ranking| ranking.flows.iter().take(count));
        let present = usage.now.iter().map(|now| now.flow);
        let dearest = usage.costs.iter().take(count).map(|cost| cost.flow);
        let keys: BTreeSet<FlowKey> = heaviest.map(|(key, _)| *key).chain(present).chain(dearest).collect();
        let of = |ranking: &Ranking, key: FlowKey| {
            ranking.flows.iter().find(|(flow, _)| *flow == key).map_or(0, |(_, weight)| *weight)
        };
        let mut rest = rankings.map(|ranking| ranking.total);
        let mut sums: BTreeMap<FlowId, ([u64; 4], FlowMoment, Vec<FlowCost>)> = BTreeMap::new();
        for key in keys {
            // A flow without a name is one of the others until its next request.
            let Some(id) = id(key) else { continue };
            // Long names may be the same where they are cut.
            let (sum, moment, costs) = sums.entry(id).or_default();
            if let Some(now) = usage.now.iter().find(|now| now.flow == key) {
                moment.add(now);
            }
            for cost in usage.costs.iter().filter(|cost| cost.flow == key) {
                FlowCost::add_to(costs, cost);
            }
            for (index, ranking) in rankings.iter().enumerate() {
                let figure = of(ranking, key);
                sum[index] += figure;
                rest[index] = rest[index].saturating_sub(figure);
            }
        }
        let mut flows: Vec<_> = sums.into_iter().collect();
        flows.sort_by_key(|(_, (figures, ..))| Reverse(*figures));
        let usage_of = |(id, (figures, now, costs))| FlowUsage { id, figures: FlowFigures::new(figures), now, costs };
        let flows = flows.into_iter().map(usage_of).collect();
        let delays = usage.delays.pairs.iter().filter_map(|delay| {
            let behind = delay.behind.map(id);
            // A flow whose name is not known is not the same as no flow.
            let behind = match behind {
                Some(None) => return None,
                Some(known) => known,
                None => None,
            };
            Some(FlowDelay { delayed: id(delay.delayed)?, behind, wait_seconds: seconds(delay.wait) })
        });
        Self {
            level: name.to_owned(),
            window_seconds: seconds(u64::try_from(usage.window).unwrap_or_default()),
            flows,
            other: FlowFigures::new(rest),
            total: FlowFigures::new(rankings.map(|ranking| ranking.total)),
            error: FlowFigures::new(rankings.map(|ranking| ranking.error)),
            delays: delays.take(count.saturating_mul(count)).collect(),
        }
    }
}

// === impl FlowId ===

impl FlowId {
    fn new(usage: &LevelUsage<'_>, key: FlowKey) -> Option<Self> {
        let name = usage.name(key)?;
        let end = if name.is_cut { "…" } else { "" };
        Some(Self { schema: name.schema.to_owned(), flow: format!("{}{end}", name.distinguisher) })
    }
}

// === impl FlowMoment ===

impl FlowMoment {
    fn add(&mut self, now: &FlowNow) {
        self.seats_now += now.seats;
        self.waiting_now += now.waiting;
        let wait = seconds(u64::try_from(now.wait_longest).unwrap_or_default());
        self.longest_wait_seconds = self.longest_wait_seconds.max(wait);
    }
}

// === impl FlowCost ===

impl FlowCost {
    #[expect(clippy::cast_precision_loss, reason = "figures")]
    fn add_to(costs: &mut Vec<Self>, more: &evenkeel_engine::attribution::FlowCost) {
        let Some(unit) = CostKind::of_number(more.unit).map(CostKind::noun) else { return };
        let (cost, expected) = (more.cost as f64 / 1000.0, more.expected as f64 / 1000.0);
        match costs.iter_mut().find(|known| known.unit == unit) {
            Some(known) => {
                known.cost += cost;
                known.expected += expected;
            }
            None => costs.push(Self { unit, cost, expected }),
        }
    }
}

// === impl FlowFigures ===

impl FlowFigures {
    fn new([seat_time, waiting, rejections, blamed]: [u64; 4]) -> Self {
        Self {
            seat_seconds: seconds(seat_time),
            wait_seconds: seconds(waiting),
            rejections,
            delay_seconds: seconds(blamed),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures")]
fn seconds(nanos: u64) -> f64 {
    const NANOS: Nanos = SECOND;
    nanos as f64 / NANOS as f64
}
