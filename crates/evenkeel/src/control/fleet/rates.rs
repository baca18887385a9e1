//! The rates of flows that other instances see too: each has the part of its demand (RL-6).

use std::collections::BTreeMap;

use evenkeel_fleet::{RateLoad, RateShares};

use crate::control::flow_control::FlowControlShared;

// === impl FlowControlShared ===

impl FlowControlShared {
    /// The demand of flows for which an equal part of their rate is too little here, or that others list.
    pub(crate) fn fleet_rates(&self) -> Vec<RateLoad> {
        let (_, snapshot) = self.controlled();
        let now = self.upkeep().clock.now();
        let mut loads: BTreeMap<Box<str>, RateLoad> = BTreeMap::new();
        for level in snapshot.levels.iter() {
            for (schema, ledger) in level.accounts.rate_ledgers() {
                let (demands, is_complete) = ledger.stamps.demands(now);
                if demands.is_empty() && is_complete {
                    continue;
                }
                let load = loads.entry(schema).or_default();
                load.flows.extend(demands);
                load.is_cut_short |= !is_complete;
            }
        }
        loads.into_iter().map(|(schema, load)| RateLoad { schema: schema.into(), ..load }).collect()
    }

    /// From now on the flows of this instance have these parts of their rates.
    pub(crate) fn share_rates(&self, shares: &RateShares) {
        let (_, snapshot) = self.controlled();
        let now = self.upkeep().clock.now();
        let nothing = BTreeMap::new();
        for level in snapshot.levels.iter() {
            for (schema, ledger) in level.accounts.rate_ledgers() {
                let parts = shares.parts.get(&*schema).unwrap_or(&nothing);
                ledger.stamps.share(shares.instances, (!shares.is_apart).then_some(parts), now);
            }
        }
    }
}
