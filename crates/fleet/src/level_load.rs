//! `SeenLevel`: the load of a level at the moment, as it is published: read under the lock of the level, and sorted afterwards.

use evenkeel_engine::borrowing::Stake;
use evenkeel_engine::fleet_division::{FlowLoad, LevelLoad};
use evenkeel_engine::queue_set::{ActiveFlowView, QueueSet};

use crate::publication::FLOWS_LISTED_MAX;

/// So many flows of a level are looked at under its lock, at most. Of further ones only the seats count, as those of flows of average weight.
const FLOWS_SEEN_MAX: usize = 4096;

/// The seats and flows of a level.
#[derive(Debug)]
pub struct SeenLevel {
    in_use: u64,
    waiting: u64,
    flows: Vec<ActiveFlowView>,
    queues: u64,
}

// === impl SeenLevel ===

impl SeenLevel {
    /// Looks at a level in which so many seats are in use, those included that are on their way to it.
    pub fn new<T>(set: &QueueSet<T>, in_use: i64) -> Self {
        let flows: Vec<_> = set.active_flows().take(FLOWS_SEEN_MAX).collect();
        // Where flows share queues, each queue that is in use counts as one.
        let queues = if flows.is_empty() { set.queues().filter(|queue| queue.waiting > 0).count() } else { 0 };
        Self { in_use: count(in_use), waiting: count(set.seats_waiting()), flows, queues: queues as u64 }
    }

    /// The seats that the level could use.
    pub fn demand(&self) -> u64 {
        self.in_use.saturating_add(self.waiting)
    }

    /// The load as it is published. The stake is what the level would have if this server had all seats of the service.
    pub fn into_load(self, name: String, stake: Stake) -> LevelLoad {
        let demand = self.demand();
        let weight = |flow: &ActiveFlowView| u64::from(flow.weight);
        let demand_of = |flow: &ActiveFlowView| flow.seats_in_use.saturating_add(flow.seats_waiting);
        let mut flow_weight = self.flows.iter().map(weight).sum::<u64>().max(self.queues).max(1);
        if self.flows.len() == FLOWS_SEEN_MAX {
            let seen = self.flows.iter().map(demand_of).fold(1, u64::saturating_add);
            flow_weight = flow_weight.saturating_mul(demand.max(seen)) / seen;
        }
        let mut flows = self.flows;
        if flows.len() > FLOWS_LISTED_MAX {
            flows.select_nth_unstable_by_key(FLOWS_LISTED_MAX, |flow| std::cmp::Reverse(demand_of(flow)));
            flows.truncate(FLOWS_LISTED_MAX);
        }
        // In a fixed order, so that an unchanged load compares as equal.
        flows.sort_unstable_by_key(|flow| flow.hash);
        let listed =
            |flow: &ActiveFlowView| FlowLoad { hash: flow.hash, weight: weight(flow), demand: demand_of(flow) };
        LevelLoad {
            name,
            floor: count(stake.floor),
            nominal: count(stake.nominal),
            max: count(stake.max),
            borrowing_weight: count(stake.weight),
            demand,
            flow_weight,
            flows: flows.iter().map(listed).collect(),
        }
    }
}

fn count(seats: i64) -> u64 {
    u64::try_from(seats).unwrap_or(0)
}
