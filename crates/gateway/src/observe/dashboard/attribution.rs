//! The flows of a frame: which flows use a level and which delay others, within a bound.

use std::cmp::Reverse;

use evenkeel::status::{FlowId, LevelFlows};

use crate::observe::frame::{Delay, Flow, FlowCost, Level, rounded};

/// A frame has so many flows and delays in all; levels that come first take what they need.
const FLOWS_MAX: usize = 60;
const DELAYS_MAX: usize = 160;
/// So many flows and delays of one level, at most.
const FLOWS_OF_LEVEL: usize = 12;
const DELAYS_OF_LEVEL: usize = 64;

/// What is left of a flow's waiting is a delay behind flows that are not listed, unless it is less than this part. Figures have
/// three digits, so that a part of a hundredth may be due to rounding.
const REST_MIN: f64 = 0.02;

/// Puts what is known of flows into their levels.
pub(super) fn attach(levels: &mut [Level], known: &[LevelFlows]) {
    let (mut flows_left, mut delays_left) = (FLOWS_MAX, DELAYS_MAX);
    for flows in known {
        let Some(level) = levels.iter_mut().find(|level| level.name == flows.level) else { continue };
        (level.flows, level.delays) = of_level(flows, flows_left.min(FLOWS_OF_LEVEL), delays_left.min(DELAYS_OF_LEVEL));
        flows_left -= level.flows.len();
        delays_left -= level.delays.len();
    }
}

fn of_cost(cost: &evenkeel::status::FlowCost, window: f64) -> FlowCost {
    FlowCost {
        unit: cost.unit.to_owned(),
        rate: rounded(cost.cost / window),
        expected: rounded(cost.expected / window),
    }
}

fn cost_of(usage: &evenkeel::status::FlowUsage) -> f64 {
    usage.costs.iter().map(|cost| cost.cost).fold(0.0, f64::max)
}

fn of_level(known: &LevelFlows, flows_max: usize, delays_max: usize) -> (Vec<Flow>, Vec<Delay>) {
    let window = known.window_seconds.max(1.0);
    #[expect(clippy::cast_precision_loss, reason = "a count within a minute")]
    let flow = |usage: &evenkeel::status::FlowUsage| Flow {
        schema: usage.id.schema.clone(),
        distinguisher: usage.id.flow.clone(),
        seats: rounded(usage.figures.seat_seconds / window),
        waiting: rounded(usage.figures.wait_seconds / window),
        rejected: rounded(usage.figures.rejections as f64 / window),
        held: i64::try_from(usage.now.seats_now).unwrap_or(i64::MAX),
        queued: i64::try_from(usage.now.waiting_now).unwrap_or(i64::MAX),
        queued_ms: rounded(usage.now.longest_wait_seconds * 1000.0),
        costs: usage.costs.iter().map(|cost| of_cost(cost, window)).collect(),
    };
    // Flows that hold seats or wait now come first: the heaviest of the last minute may be gone.
    let is_present = |usage: &&evenkeel::status::FlowUsage| usage.now.seats_now > 0 || usage.now.waiting_now > 0;
    let mut present: Vec<&evenkeel::status::FlowUsage> = known.flows.iter().filter(is_present).collect();
    present.sort_by_key(|usage| Reverse((usage.now.seats_now, usage.now.waiting_now)));
    present.truncate(flows_max.div_ceil(2));
    // The flows that cost the most are shown too, whatever seats they hold.
    let mut dearest: Vec<&evenkeel::status::FlowUsage> =
        known.flows.iter().filter(|usage| !usage.costs.is_empty()).collect();
    dearest.sort_by(|a, b| cost_of(b).total_cmp(&cost_of(a)));
    present.extend(dearest.into_iter().take(flows_max / 4));
    present.sort_by(|a, b| a.id.cmp(&b.id));
    present.dedup_by(|a, b| a.id == b.id);
    let is_listed = |usage: &&evenkeel::status::FlowUsage, index: usize| {
        index < flows_max.saturating_sub(present.len()) || present.iter().any(|one| one.id == usage.id)
    };
    let listed = known.flows.iter().enumerate().filter(|(index, usage)| is_listed(usage, *index));
    let mut flows: Vec<Flow> = listed.map(|(_, usage)| flow(usage)).take(flows_max).collect();
    // A flow that delays others or is delayed is listed with them, whatever else it does.
    let mut place = |id: &FlowId| {
        let found = flows.iter().position(|flow| flow.schema == id.schema && flow.distinguisher == id.flow);
        found.or_else(|| {
            let usage = known.flows.iter().find(|usage| usage.id == *id)?;
            (flows.len() < flows_max).then(|| flows.push(flow(usage)))?;
            Some(flows.len() - 1)
        })
    };
    let total = known.total.wait_seconds;
    let share = |seconds: f64| if total > 0.0 { rounded(seconds / total) } else { 0.0 };
    let delays = known.delays.iter().take(delays_max).filter_map(|delay| {
        let (by, seconds) = (place(delay.behind.as_ref()?)?, delay.wait_seconds);
        Some(Delay { waiter: place(&delay.delayed)?, by: Some(by), seconds: rounded(seconds), share: share(seconds) })
    });
    let mut delays: Vec<Delay> = delays.collect();
    let rest: Vec<Delay> = flows
        .iter()
        .enumerate()
        .filter_map(|(waiter, flow)| {
            let listed: f64 = delays.iter().filter(|delay| delay.waiter == waiter).map(|delay| delay.seconds).sum();
            let seconds = flow.waiting * window - listed;
            let is_worth_it = seconds > REST_MIN * flow.waiting * window && share(seconds) >= REST_MIN;
            is_worth_it.then(|| Delay { waiter, by: None, seconds: rounded(seconds), share: share(seconds) })
        })
        .collect();
    delays.extend(rest.into_iter().take(delays_max.saturating_sub(delays.len())));
    (flows, delays)
}
