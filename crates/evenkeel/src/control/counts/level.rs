//! `LevelMetrics`: the counts of one level, as a listener of its events.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_engine::Schema;
use evenkeel_engine::borrowing::DemandStatistics;
use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::limits::LevelLimits;
use evenkeel_engine::queue_set::{QueuingDiscipline, Rejection};
use evenkeel_engine::time::Instant;

use super::ratio::RatioHistogram;
use super::series::{DURATIONS, QUEUE_LENGTHS, SEATS, Series, WATCHES};
use crate::control::core::LevelQueueSet;
use crate::control::digests::DigestId;
use crate::control::events::{Event, EventKind, NO_QUEUE, RunEnd};
use crate::control::long_running::LongRunningCount;

/// The numbers of a level. They outlive the level (OB-7).
#[derive(Debug)]
pub(crate) struct LevelMetrics {
    /// The series of flow schemas, by the numbers that [`series`](Self::series) gave out. None is ever removed.
    pub(crate) series: Vec<Series>,
    /// The numbers of series, by the names of the schemas: there may be thousands, and each is looked up at every change.
    numbers: HashMap<Arc<str>, u32>,
    pub(crate) ratios: Ratios,
    /// The advances of the epoch that were not clean, and those that were.
    pub(crate) epoch_advances: [u64; 2],
    pub(crate) control: ControlGauges,
    pub(crate) long_running: Arc<LongRunningCount>,
    /// How many of its requests were told to end (LM-7).
    pub(crate) revoked: u64,
}

/// How much of its limits a level uses through time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratios {
    pub(crate) seats: RatioHistogram<13>,
    pub(crate) waiting: RatioHistogram<10>,
    pub(crate) executing: RatioHistogram<10>,
    pub(crate) demand: RatioHistogram<12>,
}

/// The gauges of a level as the control plane last set them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ControlGauges {
    pub(crate) limits: LevelLimits,
    pub(crate) current: i64,
    pub(crate) statistics: DemandStatistics,
    pub(crate) target: f64,
    pub(crate) max_long_running: Option<u32>,
    pub(crate) is_revocable: bool,
    /// `None` for a level that is gone.
    pub(crate) modes: Option<Modes>,
}

/// The modes of a level (BM-4).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Modes {
    /// `None` for a level without queues.
    pub(crate) queuing: Option<QueuingDiscipline>,
    pub(crate) borrowing: Borrowing,
}

/// How a request is counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    /// The number of its series in its level.
    pub(crate) series: u32,
    pub(crate) access: super::Access,
    pub(crate) is_watch: bool,
    /// The number of the digest that was used, for dumps.
    pub(crate) digest: DigestId,
}

pub(crate) const SEAT_UTILIZATION: [f64; 13] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
static REQUEST_UTILIZATION: [f64; 10] = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
static DEMAND: [f64; 12] = [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];

// === impl LevelMetrics ===

impl LevelMetrics {
    pub(crate) fn new(now: Instant) -> Self {
        let ratios = Ratios {
            seats: RatioHistogram::new(const { &SEAT_UTILIZATION }, now),
            waiting: RatioHistogram::new(&REQUEST_UTILIZATION, now),
            executing: RatioHistogram::new(&REQUEST_UTILIZATION, now),
            demand: RatioHistogram::new(&DEMAND, now),
        };
        Self {
            series: Vec::new(),
            numbers: HashMap::new(),
            ratios,
            epoch_advances: [0; 2],
            control: ControlGauges::default(),
            long_running: Arc::default(),
            revoked: 0,
        }
    }

    /// The number of the series of a schema, which it keeps for ever.
    pub(crate) fn series(&mut self, schema: &Schema) -> u32 {
        let number = self.numbers.get(&*schema.name).copied().unwrap_or_else(|| self.add_series(&schema.name));
        if let Some(series) = self.series.get_mut(number as usize) {
            series.method = schema.distinguisher_method().cloned();
        }
        number
    }

    /// Takes in a schema that has changed, if it has a series.
    pub(crate) fn update_series(&mut self, schema: &Schema) {
        if self.numbers.contains_key(&*schema.name) {
            self.series(schema);
        }
    }

    fn add_series(&mut self, schema: &str) -> u32 {
        let number = u32::try_from(self.series.len()).unwrap_or(u32::MAX);
        let series = Series::new(schema);
        self.numbers.insert(Arc::clone(&series.schema), number);
        self.series.push(series);
        number
    }

    /// The name of the schema that has this number; empty once the numbers have been handed to another level.
    pub(crate) fn schema(&self, series: u32) -> &str {
        self.series.get(series as usize).map_or("", |series| &series.schema)
    }

    /// The control plane has looked at the level (OB-6). `denominator` is that of CL-19, and `waiting_max` how many requests may wait.
    pub(crate) fn configure(&mut self, now: Instant, control: ControlGauges, denominator: i64, waiting_max: i64) {
        self.control = control;
        self.ratios.seats.set_denominator(now, denominator);
        self.ratios.executing.set_denominator(now, denominator);
        self.ratios.demand.set_denominator(now, denominator);
        self.ratios.waiting.set_denominator(now, waiting_max);
    }

    /// Counts events of the level.
    pub(crate) fn hear(&mut self, events: &[Event]) {
        for event in events {
            self.count(event);
            if event.level.is_last {
                self.ratios.take_over(event);
            }
        }
    }

    #[inline]
    fn count(&mut self, event: &Event) {
        let seats = i64::from(event.seats);
        let Some(numbers) = self.series.get_mut(event.series as usize).map(|series| &mut series.numbers) else {
            if let EventKind::MeterWoundBack { is_clean } = event.kind {
                self.epoch_advances[usize::from(is_clean)] += 1;
            }
            return;
        };
        match event.kind {
            EventKind::Passed { queue_length, is_exempt, .. } => {
                numbers.seats.observe(&SEATS, seats);
                numbers.start(seats, 0, is_exempt);
                if queue_length != NO_QUEUE {
                    numbers.queue_length.observe(&QUEUE_LENGTHS, i64::from(queue_length));
                }
            }
            EventKind::Finished { ran, lingers, is_watch, end } => {
                self.revoked += u64::from(end == RunEnd::Revoked);
                numbers.executing -= 1;
                // Requests without seats say nothing about how long a seat is held or how many are needed.
                let is_watch = is_watch || seats == 0;
                numbers.execution[usize::from(is_watch)].observe(&DURATIONS, ran);
                if !lingers {
                    numbers.executing_seats -= seats;
                }
            }
            EventKind::Arrived { queue_length, .. } => {
                numbers.seats.observe(&SEATS, seats);
                if queue_length != NO_QUEUE {
                    numbers.waiting += 1;
                    numbers.waiting_seats += seats;
                    numbers.queue_length.observe(&QUEUE_LENGTHS, i64::from(queue_length));
                }
            }
            EventKind::Started { waited, was_queued, is_exempt } => {
                numbers.start(seats, waited, is_exempt);
                if was_queued {
                    numbers.waiting -= 1;
                    // The seats that a request lost when it was narrowed stay behind, as they do in the queue set (FQ-24).
                    numbers.waiting_seats -= seats;
                }
            }
            // Long-running requests that are too many are counted apart: see `LongRunningCount`.
            EventKind::Refused { reason, .. } if reason != Rejection::TooManyLongRunning => {
                numbers.seats.observe(&SEATS, seats);
                numbers.reject(reason, 0, 0);
            }
            EventKind::GaveUp { waited, reason, is_displaced } => {
                numbers.waiting -= 1;
                numbers.waiting_seats -= seats;
                // A request that gave up counts as one that waited for its execution (OB-4), and one that gave way to another
                // (PF-7) as one that was rejected at once.
                numbers.reject(reason, waited, usize::from(!is_displaced));
            }
            EventKind::Released => numbers.executing_seats -= seats,
            EventKind::Resized { before } => numbers.executing_seats += seats - i64::from(before),
            EventKind::Watches { count } => {
                numbers.watches.observe(&WATCHES, i64::try_from(count).unwrap_or(i64::MAX));
            }
            EventKind::Blocked => numbers.blocked += 1,
            EventKind::Refused { .. }
            | EventKind::Charged { .. }
            | EventKind::Costed { .. }
            | EventKind::MeterWoundBack { .. }
            | EventKind::Reconfigured => {}
        }
    }

    /// Hands the numbers to a new level of the same name. Requests that still linger in the old one are no longer counted.
    pub(crate) fn carry_over(&mut self, set: &LevelQueueSet, now: Instant) -> Self {
        for request in set.requests() {
            if let Some(series) = self.series.get_mut(request.payload.series as usize) {
                series.numbers.executing_seats -= i64::from(request.work.max_seats());
            }
        }
        let mut handed = std::mem::replace(self, Self::new(now));
        handed.ratios.seats.set(now, 0);
        handed.ratios.demand.set(now, 0);
        handed
    }
}

// === impl Ratios ===

impl Ratios {
    pub(crate) fn account(&mut self, now: Instant) {
        self.seats.account(now);
        self.waiting.account(now);
        self.executing.account(now);
        self.demand.account(now);
    }

    /// Takes over the state that an event led to.
    #[inline]
    fn take_over(&mut self, event: &Event) {
        let (now, level) = (event.at, &event.level);
        let in_use = i64::from(level.seats_in_use);
        self.seats.set(now, in_use);
        self.waiting.set(now, i64::from(level.waiting));
        self.executing.set(now, i64::from(level.executing));
        self.demand.set(now, in_use + level.seats_waiting);
    }
}
