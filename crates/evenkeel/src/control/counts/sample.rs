//! A copy of the numbers of a level, taken under the lock of its listeners and looked at without it.

use std::sync::Arc;

use evenkeel_engine::SeatSeconds;
use evenkeel_engine::queue_set::ReadingBounds;
use evenkeel_engine::time::Instant;

use super::level::{ControlGauges, Ratios};
use super::series::Series;
use crate::control::core::{LevelCore, LevelQueueSet};
use crate::control::ledger::LevelGrants;
use crate::control::level::Level;
use crate::control::long_running::LongRunningCount;

/// The numbers of a level at one moment.
#[derive(Debug)]
pub(crate) struct LevelSample {
    pub(crate) name: Arc<str>,
    pub(crate) series: Vec<Series>,
    pub(crate) ratios: Ratios,
    pub(crate) epoch_advances: [u64; 2],
    pub(crate) control: ControlGauges,
    pub(crate) readings: Readings,
    pub(crate) long_running: Arc<LongRunningCount>,
    pub(crate) kept_seats: i64,
    pub(crate) revoked: u64,
}

/// The readings of a queue set's progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readings {
    pub(crate) current_r: SeatSeconds,
    pub(crate) dispatch_r: SeatSeconds,
    pub(crate) latest_s: SeatSeconds,
    pub(crate) bounds: ReadingBounds,
}

// === impl LevelSample ===

impl LevelSample {
    pub(crate) fn take(name: Arc<str>, level: &Level, now: Instant) -> Self {
        let look = |core: &mut LevelCore| {
            let current = core.grants.as_ref().map(LevelGrants::usable);
            (core.readings(), core.queue_set().kept_seats(), current)
        };
        let (mut listeners, (readings, kept_seats, current)) = level.listeners_and(look);
        let metrics = &mut listeners.metrics;
        metrics.ratios.account(now);
        Self {
            name,
            series: metrics.series.iter().filter(|series| series.is_used()).cloned().collect(),
            ratios: metrics.ratios,
            epoch_advances: metrics.epoch_advances,
            control: ControlGauges { current: current.unwrap_or(metrics.control.current), ..metrics.control },
            readings,
            long_running: Arc::clone(&metrics.long_running),
            kept_seats,
            revoked: metrics.revoked,
        }
    }
}

// === impl Readings ===

impl Readings {
    pub(crate) fn of(set: &LevelQueueSet) -> Self {
        let counters = set.counters();
        let latest_s = counters.last_dispatch_s;
        // While nothing waits, the only reading is that of the queue that was last dispatched from.
        let idle = ReadingBounds { next_r: (latest_s, latest_s), discounted: (latest_s, latest_s) };
        Self {
            current_r: set.virtual_time(),
            dispatch_r: counters.last_dispatch_r,
            latest_s,
            bounds: set.reading_bounds().unwrap_or(idle),
        }
    }
}
