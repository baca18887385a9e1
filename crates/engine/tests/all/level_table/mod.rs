//! Levels on which nothing runs: a test says what they ask for, and sees how they are configured.

use std::collections::HashMap;

use evenkeel_engine::LevelId;
use evenkeel_engine::borrowing::{DemandIntegrator, DemandPeriod};
use evenkeel_engine::controller::{LedgerTerms, Levels};
use evenkeel_engine::queue_set::QueueSetConfig;
use evenkeel_engine::time::Instant;

/// A table of levels that are always idle. It fails the test if it is asked for a level that it does not have.
#[derive(Default)]
pub(crate) struct LevelTable(HashMap<LevelId, Level>);

struct Level {
    config: QueueSetConfig,
    demand: DemandIntegrator,
}

impl LevelTable {
    /// From now on, there is demand for that many seats.
    #[allow(dead_code, reason = "not every test that has levels says what they ask for")]
    pub(crate) fn demand(&mut self, level: LevelId, now: Instant, seats: i64) {
        self.get_mut(level).demand.set(now, seats);
    }

    /// The seats that a level was last told to give out.
    #[allow(dead_code, reason = "not every test that has levels looks at this")]
    pub(crate) fn concurrency_limit(&self, level: LevelId) -> i64 {
        self.0[&level].config.concurrency_limit
    }

    fn get_mut(&mut self, level: LevelId) -> &mut Level {
        self.0.get_mut(&level).expect("a level that was created and not removed")
    }
}

impl Levels for LevelTable {
    fn create(&mut self, level: LevelId, _name: &str, config: QueueSetConfig, now: Instant) {
        let created = Level { config, demand: DemandIntegrator::new(now) };
        assert!(self.0.insert(level, created).is_none(), "{level:?} was there already");
    }

    fn configure(&mut self, level: LevelId, config: QueueSetConfig, _now: Instant) {
        self.get_mut(level).config = config;
    }

    fn end_demand_period(&mut self, level: LevelId, now: Instant) -> DemandPeriod {
        self.get_mut(level).demand.read_and_reset(now)
    }

    fn remove_if_idle(&mut self, level: LevelId) -> bool {
        assert!(self.0.remove(&level).is_some(), "{level:?} was not there");
        true
    }

    fn set_ledger(&mut self, terms: Option<&LedgerTerms>, _now: Instant) {
        assert!(terms.is_none(), "nothing runs here, so that nothing can be granted");
    }
}
