//! `Publication`: the value that an instance publishes (FL-3).

use std::sync::Arc;

use evenkeel_engine::auto_limit::Totals;
use evenkeel_engine::fleet_division::InstanceLoad;

use crate::rates::RateLoad;

/// How many flows of a level an instance lists at most; the others are one flow with their weight and demand.
pub const FLOWS_LISTED_MAX: usize = 64;

/// The value of an instance's key.
///
/// Not `#[non_exhaustive]`: tests of the protocol make it.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// The revision of the ledger that the instance obeys.
    pub ack: u64,
    /// The seats that it uses or may use by that ledger, the larger of them (FL-6).
    pub hold: u64,
    /// Whether the instance is about to end, and wants no seats (FL-11).
    pub is_draining: bool,
    /// The seats that it could use, by level and flow.
    pub load: Arc<InstanceLoad>,
    /// What has happened there since it started, if the fleet finds out how many seats there should be (FL-13).
    pub totals: Option<Totals>,
    /// Whether the service has told this instance that it wants no more seats (AL-10).
    pub is_held_down: bool,
    /// Its demand for rates that others may share.
    pub rates: Arc<Vec<RateLoad>>,
}

/// The load of an instance at the moment, for [`Member::poll`](crate::Member::poll).
///
/// The usage is asked for at every poll that may publish something, and should cost next to nothing. The load lists flows, and is
/// asked for when it is about to be published: at most four times a second.
pub trait LoadSource {
    /// The seats in use, and what each level could use.
    fn usage(&self) -> CurrentUsage;

    /// What the instance could use, by level and flow: at most [`FLOWS_LISTED_MAX`] flows a level. It is asked for after the usage. The service
    /// has so many seats by the ledger.
    fn load(&self, service_seats: u64) -> Arc<InstanceLoad>;

    /// What the limit has to know that finds itself; nothing from instances that do not sum up what happens (FL-13).
    fn limit_input(&self) -> Option<LimitInput> {
        None
    }

    /// The demand for rates that others may share, in the order of the schemas' names (RL-6). It is asked for four times a second at most.
    fn rates(&self) -> Vec<RateLoad> {
        Vec::new()
    }
}

/// What one instance tells of the limit that the fleet finds (FL-13).
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitInput {
    /// What has happened since the instance started.
    pub totals: Totals,
    /// The fewest seats that its levels need.
    pub floor: u32,
    /// Whether the service has told it that it wants no more (AL-10).
    pub is_held_down: bool,
}

/// The seats in use, and what each level could use.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Default)]
pub struct CurrentUsage {
    /// The seats in use, read **after** the last allowance has taken effect: an instance publishes it as what it holds.
    pub in_use: u64,
    /// The levels by name, with the seats that they could use: in use and waiting. Levels without demand may be left out.
    pub demands: Vec<(String, u64)>,
}

/// The load of an instance at the moment, all at once.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Default)]
pub struct CurrentLoad {
    /// The seats in use, read **after** the last allowance has taken effect: an instance publishes it as what it holds.
    pub in_use: u64,
    /// The seats that it could use, by level and flow: at most [`FLOWS_LISTED_MAX`] flows a level.
    pub load: Arc<InstanceLoad>,
}

// === impl Publication ===

impl Publication {
    /// The seats that the instance could use.
    pub(crate) fn demand(&self) -> u64 {
        self.load.levels.iter().fold(0, |sum: u64, level| sum.saturating_add(level.demand))
    }
}

// === impl CurrentUsage ===

impl CurrentUsage {
    pub(crate) fn demand(&self) -> u64 {
        self.demands.iter().fold(0, |sum, (_, demand)| sum.saturating_add(*demand))
    }
}

// === impl CurrentLoad ===

impl LoadSource for CurrentLoad {
    fn usage(&self) -> CurrentUsage {
        let demands = self.load.levels.iter().map(|level| (level.name.clone(), level.demand)).collect();
        CurrentUsage { in_use: self.in_use, demands }
    }

    fn load(&self, _service_seats: u64) -> Arc<InstanceLoad> {
        Arc::clone(&self.load)
    }
}

/// Whether a load differs from the published one by so much that it is published at once: a level by more than two seats and a
/// tenth.
pub(crate) fn differs_much(published: &InstanceLoad, now: &CurrentUsage) -> bool {
    let before =
        |name: &str| published.levels.iter().filter(|level| level.name == name).map(|level| level.demand).sum::<u64>();
    let after =
        |name: &str| now.demands.iter().filter(|(level, _)| level == name).map(|(_, demand)| demand).sum::<u64>();
    let names = published.levels.iter().map(|level| &level.name).chain(now.demands.iter().map(|(level, _)| level));
    names.into_iter().any(|name| before(name).abs_diff(after(name)) > (after(name) / 10).max(2))
}
