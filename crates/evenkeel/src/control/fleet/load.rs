//! The load of this instance at the moment, as it is published to the fleet (FL-3).

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_engine::LevelId;
use evenkeel_engine::borrowing::Stake;
use evenkeel_engine::fleet_division::InstanceLoad;
use evenkeel_fleet::{CurrentUsage, SeenLevel};

use crate::control::core::LevelCore;
use crate::control::flow_control::FlowControlShared;

// === impl FlowControlShared ===

impl FlowControlShared {
    /// The seats in use and waiting of all levels. Each level is locked for as long as it takes to read two numbers.
    pub(crate) fn fleet_usage(&self) -> CurrentUsage {
        // How many seats the service has does not matter here.
        let seen = self.limited_levels(0, |core| {
            let in_use = u64::try_from(core.limited_seats()).unwrap_or(0);
            (in_use, in_use.saturating_add(u64::try_from(core.queue_set().seats_waiting()).unwrap_or(0)))
        });
        let in_use = seen.iter().map(|(.., (in_use, _))| in_use).sum();
        let demands = seen.into_iter().map(|(name, _, (_, demand))| (name, demand)).filter(|(_, demand)| *demand > 0);
        CurrentUsage { in_use, demands: demands.collect() }
    }

    /// The load of all levels, by flow, as parts of a service with that many seats.
    pub(crate) fn fleet_load(&self, service_seats: u64) -> Arc<InstanceLoad> {
        let seen = self.limited_levels(service_seats, |core| SeenLevel::new(core.queue_set(), core.limited_seats()));
        let used = seen.into_iter().filter(|(.., level)| level.demand() > 0);
        Arc::new(InstanceLoad { levels: used.map(|(name, stake, level)| level.into_load(name, stake)).collect() })
    }

    /// Looks at all levels that limit something. Exempt ones do not count.
    fn limited_levels<R>(&self, service_seats: u64, look: impl Fn(&LevelCore) -> R) -> Vec<(String, Stake, R)> {
        let service_seats = i64::try_from(service_seats).unwrap_or(i64::MAX);
        let (controller, snapshot) = self.controlled();
        let stakes = controller.stakes_with(service_seats).filter(|(.., stake)| !stake.is_exempt);
        let mut stakes: BTreeMap<LevelId, (String, Stake)> =
            stakes.map(|(name, id, stake)| (id, (name.to_owned(), stake))).collect();
        drop(controller);
        let levels = snapshot.levels.iter().filter_map(|level| {
            let (name, stake) = stakes.remove(&level.id)?;
            Some((name, stake, look(&level.lock())))
        });
        levels.collect()
    }
}
