//! What a request needs to find its level: swapped as a whole when the objects change.

use std::sync::Arc;

use evenkeel_engine::borrowing::DemandPeriod;
use evenkeel_engine::controller::Levels;
use evenkeel_engine::queue_set::QueueSetConfig;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Configuration, LevelId};

use crate::level::{Level, Wakers};
use crate::uid_headers::UidHeaders;
use crate::upkeep::Upkeep;

/// A configuration and the levels that it leads to. It never changes.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) configuration: Configuration,
    pub(crate) levels: LevelTable,
    /// One for each flow schema of the configuration.
    uid_headers: Vec<UidHeaders>,
    /// By flow schema, the number of its series in its level.
    series: Box<[u32]>,
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

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn new(configuration: Configuration, levels: LevelTable, upkeep: Arc<Upkeep>) -> Self {
        let uid_headers = UidHeaders::of_all(&configuration);
        let series = levels.number_series(&configuration);
        Self { configuration, levels, uid_headers, series, upkeep }
    }

    /// The headers of answers to requests of that flow schema.
    pub(crate) fn uid_headers(&self, schema: usize) -> &UidHeaders {
        &self.uid_headers[schema]
    }

    /// The number that the series of that flow schema has in its level.
    #[inline]
    pub(crate) fn series(&self, schema: usize) -> u32 {
        self.series[schema]
    }
}

// === impl LevelTable ===

impl LevelTable {
    pub(crate) fn get(&self, id: LevelId) -> Option<&Arc<Level>> {
        self.0.get(id.index())?.as_ref().filter(|level| level.id == id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Level>> {
        self.0.iter().flatten()
    }

    /// By flow schema, the number of its series in its level.
    fn number_series(&self, configuration: &Configuration) -> Box<[u32]> {
        let schemas = configuration.schemas().iter();
        let numbers = schemas.map(|schema| self.get(schema.level.id).map(|level| level.lock().metrics.series(schema)));
        numbers.map(Option::unwrap_or_default).collect()
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
            let mut state = level.lock();
            let now = state.at(now);
            state.configure(now, config, &mut self.wakers);
        }
    }

    fn end_demand_period(&mut self, id: LevelId, now: Instant) -> DemandPeriod {
        let Some(level) = self.table.get(id) else { return DemandPeriod::default() };
        let mut state = level.lock();
        let now = state.at(now);
        state.queue_set.demand_mut().read_and_reset(now)
    }

    fn remove_if_idle(&mut self, id: LevelId) -> bool {
        let Some(level) = self.table.get(id) else { return true };
        // Under one lock: whoever takes it next sees a request or a level that is gone.
        let mut state = level.lock();
        state.is_removed = state.queue_set.is_idle();
        let is_removed = state.is_removed;
        drop(state);
        if is_removed {
            self.table.0[id.index()] = None;
        }
        is_removed
    }
}
