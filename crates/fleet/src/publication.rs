//! What an instance publishes of itself (FL-3).

use std::sync::Arc;

use evenkeel_engine::fleet_division::InstanceLoad;

/// How many flows of a level an instance lists at most; the others are one flow with their weight and demand.
pub const FLOWS_LISTED_MAX: usize = 64;

/// The value of an instance's key.
///
/// Not `#[non_exhaustive]`: tests of the protocol make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The revision of the ledger that the instance obeys.
    pub ack: u64,
    /// The seats that it uses or may use by that ledger, the larger of them (FL-6).
    pub hold: u64,
    /// Whether the instance is about to end, and wants no seats (FL-11).
    pub is_draining: bool,
    /// What it could use, by level and flow.
    pub load: Arc<InstanceLoad>,
}

/// What an instance does at the moment.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Default)]
pub struct CurrentLoad {
    /// The seats in use, read **after** the last allowance has taken effect: an instance publishes it as what it holds.
    pub in_use: u64,
    /// What it could use, by level and flow: at most [`FLOWS_LISTED_MAX`] flows a level.
    pub load: Arc<InstanceLoad>,
}

// === impl CurrentLoad ===

impl CurrentLoad {
    pub(crate) fn demand(&self) -> u64 {
        self.load.levels.iter().fold(0, |sum, level| sum.saturating_add(level.demand))
    }
}

/// Whether a load differs from the published one by so much that it is published at once: a level by more than two seats and a
/// tenth.
pub(crate) fn differs_much(published: &InstanceLoad, now: &InstanceLoad) -> bool {
    let demand_of = |load: &InstanceLoad, name: &str| {
        load.levels.iter().filter(|level| level.name == name).map(|level| level.demand).sum::<u64>()
    };
    let changed = |name: &str| {
        let (before, now) = (demand_of(published, name), demand_of(now, name));
        before.abs_diff(now) > (now / 10).max(2)
    };
    published.levels.iter().chain(&now.levels).any(|level| changed(&level.name))
}
