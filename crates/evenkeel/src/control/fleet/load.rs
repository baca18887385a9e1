//! What this instance does at the moment, as the fleet is told (FL-3).

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_engine::LevelId;
use evenkeel_engine::borrowing::Stake;
use evenkeel_engine::fleet_division::{FlowLoad, InstanceLoad, LevelLoad};
use evenkeel_engine::queue_set::ActiveFlowView;
use evenkeel_fleet::{CurrentLoad, FLOWS_LISTED_MAX};

use crate::control::core::LevelCore;
use crate::control::flow_control::FlowControlShared;

/// What is seen of a level under its lock.
struct Seen {
    in_use: u64,
    waiting: u64,
    flows: Vec<ActiveFlowView>,
    queues: u64,
}

// === impl FlowControlShared ===

impl FlowControlShared {
    /// What all levels do, as parts of a service with that many seats. Levels that limit nothing do not count.
    pub(crate) fn fleet_load(&self, service_seats: u64) -> CurrentLoad {
        let service_seats = i64::try_from(service_seats).unwrap_or(i64::MAX);
        let (controller, snapshot) = self.controlled();
        let stakes: BTreeMap<LevelId, (String, Stake)> =
            controller.stakes_with(service_seats).map(|(name, id, stake)| (id, (name.to_owned(), stake))).collect();
        drop(controller);
        let mut in_use = 0;
        let mut levels = Vec::new();
        for level in snapshot.levels.iter() {
            let Some((name, stake)) = stakes.get(&level.id).filter(|(_, stake)| !stake.is_exempt) else { continue };
            let seen = Seen::in_level(&level.lock());
            in_use += seen.in_use;
            if seen.in_use + seen.waiting > 0 {
                levels.push(seen.load(name.clone(), *stake));
            }
        }
        CurrentLoad { in_use, load: Arc::new(InstanceLoad { levels }) }
    }
}

// === impl Seen ===

impl Seen {
    fn in_level(core: &LevelCore) -> Self {
        let set = core.queue_set();
        let flows: Vec<_> = set.active_flows().collect();
        // Where flows share queues, each queue that is in use counts as one.
        let queues = if flows.is_empty() { set.queues().filter(|queue| queue.waiting > 0).count() } else { 0 };
        Self { in_use: count(core.limited_seats()), waiting: count(set.seats_waiting()), flows, queues: queues as u64 }
    }

    fn load(self, name: String, stake: Stake) -> LevelLoad {
        let weight = |flow: &ActiveFlowView| u64::from(flow.weight);
        let flow_weight = self.flows.iter().map(weight).sum::<u64>().max(self.queues).max(1);
        let demand_of = |flow: &ActiveFlowView| flow.seats_in_use.saturating_add(flow.seats_waiting);
        let mut flows = self.flows;
        if flows.len() > FLOWS_LISTED_MAX {
            flows.select_nth_unstable_by_key(FLOWS_LISTED_MAX, |flow| std::cmp::Reverse(demand_of(flow)));
            flows.truncate(FLOWS_LISTED_MAX);
        }
        // In one order, so that what has not changed looks the same.
        flows.sort_unstable_by_key(|flow| flow.hash);
        let listed =
            |flow: &ActiveFlowView| FlowLoad { hash: flow.hash, weight: weight(flow), demand: demand_of(flow) };
        LevelLoad {
            name,
            floor: count(stake.floor),
            nominal: count(stake.nominal),
            max: count(stake.max),
            borrowing_weight: count(stake.weight),
            demand: self.in_use.saturating_add(self.waiting),
            flow_weight,
            flows: flows.iter().map(listed).collect(),
        }
    }
}

fn count(seats: i64) -> u64 {
    u64::try_from(seats).unwrap_or(0)
}
