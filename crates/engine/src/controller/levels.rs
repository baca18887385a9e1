//! `Levels`: the trait through which the controller changes queue sets that others hold.

use crate::borrowing::{DemandPeriod, Stake};
use crate::configuration::LevelId;
use crate::queue_set::QueueSetConfig;
use crate::time::Instant;

/// The queue sets of all levels, wherever they are kept: in a plain table, or each behind a lock of its own.
///
/// The controller names only levels that it has created and not removed.
pub trait Levels {
    /// A level of that name comes into being: it needs a queue set.
    fn create(&mut self, level: LevelId, name: &str, config: QueueSetConfig, now: Instant);

    /// The queue set of a level is configured anew, which may start waiting requests.
    fn configure(&mut self, level: LevelId, config: QueueSetConfig, now: Instant);

    /// Ends a period in which the demand for seats was observed, and starts the next.
    fn end_demand_period(&mut self, level: LevelId, now: Instant) -> DemandPeriod;

    /// Removes a level if nothing waits and nothing executes in it (FQ-34), and tells whether it is gone. No request may arrive
    /// between the look and the removal. Requests may still linger in it; their ends change no other level.
    fn remove_if_idle(&mut self, level: LevelId) -> bool;

    /// From now on a ledger with these terms decides which requests start; with `None`, the configured limits of the levels do.
    /// Both may start waiting requests. Requests that run go on, and those that wait keep their places (BM-3).
    fn set_ledger(&mut self, terms: Option<&LedgerTerms>, now: Instant);
}

/// The terms of a ledger: the seats of the server, and those of each level.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerTerms {
    /// The seats of the server.
    pub seats: i64,
    /// The levels.
    pub stakes: Vec<(LevelId, Stake)>,
}
