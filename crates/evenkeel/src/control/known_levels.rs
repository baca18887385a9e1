//! All levels that there have been, for metrics and dumps.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_engine::limits::ratio_denominator;
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::time::Instant;

use crate::control::core::LevelCore;
use crate::control::counts::{ControlGauges, Modes};
#[cfg(feature = "metrics")]
use crate::control::counts::{LevelSample, ServerSample};
use crate::control::level::Level;
use crate::control::seat_division::SeatController;
use crate::control::snapshot::LevelTable;
use crate::control::upkeep::Upkeep;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The levels by name, each as it is or as it last was. Requests never look at it.
#[derive(Debug, Default)]
pub(crate) struct KnownLevels(Mutex<BTreeMap<Arc<str>, Arc<Level>>>);

// === impl KnownLevels ===

impl KnownLevels {
    /// Takes over what the controller has done. A level that comes back keeps its numbers (OB-7) and its `Retry-After`
    /// (HF-13).
    pub(crate) fn update(&self, controller: &SeatController, table: &LevelTable, now: Instant, upkeep: &Upkeep) {
        let mut known = self.lock();
        let mut waiting_max = 0_i64;
        for (name, controlled) in controller.levels() {
            let Some(level) = table.get(controlled.id()) else { continue };
            if let Some(before) = known.get(name).filter(|before| !Arc::ptr_eq(before, level)) {
                let mut old = before.listeners();
                let mut core = before.lock();
                let now = core.at(now);
                let metrics = old.metrics.carry_over(core.queue_set(), now);
                drop(core);
                let mut new = level.listeners();
                new.metrics = metrics;
                std::mem::swap(&mut new.retry, &mut old.retry);
            }
            if !known.get(name).is_some_and(|before| Arc::ptr_eq(before, level)) {
                known.insert(name.into(), Arc::clone(level));
            }
            if let Mode::Queue(queuing) = controlled.mode() {
                let queues = i64::try_from(queuing.deal.deck()).unwrap_or(i64::MAX);
                waiting_max = waiting_max.saturating_add(queues.saturating_mul(queuing.queue_length_limit));
            }
            let gauges = ControlGauges {
                limits: controlled.limits(),
                current: controlled.current_limit(),
                statistics: controlled.statistics(),
                target: controlled.target(),
                max_long_running: controlled.max_long_running(),
                is_revocable: controlled.is_revocable(),
                modes: Some(Modes { queuing: controlled.mode().discipline(), borrowing: controller.borrowing() }),
            };
            let denominator = ratio_denominator(gauges.current, controller.server_limit());
            let look = |core: &mut LevelCore| {
                let set = core.queue_set();
                let queues = i64::try_from(set.mode().queues()).unwrap_or(i64::MAX).max(1);
                let waiting_max = set.queue_length_limit().max(1).saturating_mul(queues);
                (core.at(now), waiting_max)
            };
            let (mut listeners, (now, waiting_max)) = level.listeners_and(look);
            listeners.metrics.configure(now, gauges, denominator, waiting_max);
        }
        // A level that was deleted has no seats: a sum over all levels must not count those that it once had.
        for (_, level) in known.iter().filter(|(name, _)| controller.level(name).is_none()) {
            level.listeners().metrics.control = ControlGauges::default();
        }
        let levels = known.values().map(Arc::clone).collect();
        drop(known);
        upkeep.server.configure(now, levels, waiting_max, controller.nominal_sum(), controller.fair_fraction());
    }

    /// All levels, by name.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, Arc<Level>)> {
        self.lock().iter().map(|(name, level)| (Arc::clone(name), Arc::clone(level))).collect()
    }

    /// The level of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Level>> {
        self.lock().get(name).map(Arc::clone)
    }

    /// A copy of all numbers. The lock of the listeners of each level is held for the copy of its own.
    #[cfg(feature = "metrics")]
    pub(crate) fn sample(&self, upkeep: &Upkeep) -> (Vec<LevelSample>, ServerSample) {
        let now = upkeep.clock.now();
        let levels = self.all().into_iter().map(|(name, level)| LevelSample::take(name, &level, now)).collect();
        (levels, upkeep.server.sample(now))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Level>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
