//! What a request needs to find its level: swapped as a whole when the objects change.

use std::sync::Arc;

use evenkeel_engine::borrowing::DemandPeriod;
use evenkeel_engine::controller::Levels;
use evenkeel_engine::queue_set::QueueSetConfig;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Configuration, LevelId};

use crate::level::{Level, Wakers};
use crate::upkeep::Upkeep;

/// A configuration and the levels that it leads to. It never changes.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) configuration: Configuration,
    pub(crate) levels: LevelTable,
    /// By schema, the number of its series in its level.
    pub(crate) series: Box<[u32]>,
    pub(crate) upkeep: Arc<Upkeep>,
}

/// The levels, by the index of their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct LevelTable(Vec<Option<Arc<Level>>>);

/// The levels while the controller changes them, and who is to be woken by that.
#[derive(Debug, Default)]
pub(crate) struct LevelChanges {
    pub(crate) table: LevelTable,
    pub(crate) wakers: Wakers,
}

// === impl LevelTable ===

impl LevelTable {
    pub(crate) fn get(&self, id: LevelId) -> Option<&Arc<Level>> {
        self.0.get(id.index())?.as_ref().filter(|level| level.id == id)
    }
}

// === impl LevelChanges ===

impl Levels for LevelChanges {
    fn create(&mut self, id: LevelId, config: QueueSetConfig, now: Instant) {
        let levels = &mut self.table.0;
        if levels.len() <= id.index() {
            levels.resize(id.index() + 1, None);
        }
        levels[id.index()] = Some(Arc::new(Level::new(id, config, now)));
    }

    fn configure(&mut self, id: LevelId, config: QueueSetConfig, now: Instant) {
        if let Some(level) = self.table.get(id) {
            level.lock().configure(now, config, &mut self.wakers);
        }
    }

    fn end_demand_period(&mut self, id: LevelId, now: Instant) -> DemandPeriod {
        let level = self.table.get(id);
        level.map(|level| level.lock().queue_set.demand_mut().read_and_reset(now)).unwrap_or_default()
    }

    fn is_idle(&mut self, id: LevelId) -> bool {
        self.table.get(id).is_none_or(|level| level.lock().queue_set.is_idle())
    }

    fn remove(&mut self, id: LevelId) {
        if let Some(level) = self.table.get(id) {
            level.lock().is_removed = true;
            self.table.0[id.index()] = None;
        }
    }
}
