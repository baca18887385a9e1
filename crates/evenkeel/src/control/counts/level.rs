//! What is counted for one level, while its lock is held anyway.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_engine::borrowing::DemandStatistics;
use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::limits::LevelLimits;
use evenkeel_engine::queue_set::{Ended, Mode, Phase, QueuingDiscipline, Rejection, RequestId, RequestView};
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Schema, WorkEstimate};

use super::crowd::{Crowd, Doing};
use super::ratio::RatioHistogram;
use super::series::{DURATIONS, Numbers, QUEUE_LENGTHS, SEATS, Series, WATCHES};
use crate::control::digests::DigestId;
use crate::control::level::{LevelQueueSet, Waiter};
use crate::control::long_running::LongRunningCount;
use crate::control::rare_list::RareList;

/// The numbers of a level. They outlive the level (OB-7).
#[derive(Debug)]
pub(crate) struct LevelMetrics {
    /// By the number that [`series`](Self::series) gave out. Nothing is ever removed.
    pub(crate) series: Vec<Series>,
    /// The numbers, by the names of the schemas: there may be thousands, and each is looked up at every change.
    numbers: HashMap<Arc<str>, u32>,
    pub(crate) ratios: Ratios,
    /// The advances of the epoch that were not clean, and those that were.
    pub(crate) epoch_advances: [u64; 2],
    pub(crate) control: ControlGauges,
    pub(crate) crowd: Arc<Crowd>,
    pub(crate) long_running: Arc<LongRunningCount>,
}

/// How much of its limits a level uses through time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratios {
    pub(crate) seats: RatioHistogram<13>,
    pub(crate) waiting: RatioHistogram<10>,
    pub(crate) executing: RatioHistogram<10>,
    pub(crate) demand: RatioHistogram<12>,
}

/// What the control plane has last said of a level.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ControlGauges {
    pub(crate) limits: LevelLimits,
    pub(crate) current: i64,
    pub(crate) statistics: DemandStatistics,
    pub(crate) target: f64,
    pub(crate) max_long_running: Option<u32>,
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

/// What an event brought about, to be counted when it is over.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Nearly every event starts one request at most.
    pub(crate) first_started: Option<RequestId>,
    pub(crate) others_started: RareList<RequestId>,
    /// The series of the request that everybody waits for.
    pub(crate) blocked: Option<u32>,
    pub(crate) epoch_advanced: Option<bool>,
}

/// What a request that was started at once went through.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Passed {
    /// A queue of that length, itself included.
    Queue { length: usize },
    /// A level that has no queues.
    NoQueue,
    /// A level that has no limit, where no waiting is counted (OB-4).
    Exempt,
}

/// What has to be known of a request before it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    phase: Phase,
    waiter: Mark,
    seats: i64,
    arrived: Instant,
    started: Option<Instant>,
}

/// How a request is counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    /// The number of its series in its level.
    pub(crate) series: u32,
    pub(crate) access: super::Access,
    pub(crate) is_watch: bool,
    /// What it was digested with, which dumps want to know.
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
            crowd: Arc::default(),
            long_running: Arc::default(),
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

    /// The control plane has looked at the level (OB-6). `denominator` is that of CL-19.
    pub(crate) fn configure(&mut self, now: Instant, set: &LevelQueueSet, control: ControlGauges, denominator: i64) {
        self.control = control;
        self.ratios.seats.set_denominator(now, denominator);
        self.ratios.executing.set_denominator(now, denominator);
        self.ratios.demand.set_denominator(now, denominator);
        let length = set.queue_length_limit().max(1);
        let queues = i64::try_from(set.mode().queues()).unwrap_or(i64::MAX).max(1);
        self.ratios.waiting.set_denominator(now, length.saturating_mul(queues));
    }

    /// A request was taken in; `queue` is the one that it came into, if there are queues.
    #[inline]
    pub(crate) fn arrived(
        &mut self,
        mark: Mark,
        work: WorkEstimate,
        watches: Option<u64>,
        set: &LevelQueueSet,
        notes: &Notes,
        queue: Option<usize>,
    ) {
        let seats = i64::from(work.max_seats());
        self.estimated(mark, seats, watches);
        let Some(queue) = queue else { return };
        // Those that the arrival itself started were in the queue when the request came into it.
        let is_of_queue = |id: &RequestId| set.request(*id).is_some_and(|request| request.queue == Some(queue));
        let started = notes.started().filter(is_of_queue).count();
        let length = i64::try_from(set.queue_length(queue) + started).unwrap_or(i64::MAX);
        self.crowd.add(Doing::Waiting, mark.access, 1);
        if let Some(numbers) = self.numbers(mark.series) {
            numbers.waiting += 1;
            numbers.waiting_seats += seats;
            numbers.queue_length.observe(&QUEUE_LENGTHS, length);
        }
    }

    /// A request was taken in and started at once, and nothing else happened: what [`arrived`](Self::arrived) and a
    /// start count together. `length` is that of the queue that it went through, itself included, if there are queues.
    #[inline]
    pub(crate) fn passed(&mut self, mark: Mark, work: WorkEstimate, watches: Option<u64>, passed: Passed) {
        let seats = i64::from(work.max_seats());
        self.crowd.add(Doing::Executing, mark.access, 1);
        let Some(numbers) = self.numbers(mark.series) else { return };
        numbers.seats.observe(&SEATS, seats);
        if let Some(watches) = watches {
            numbers.watches.observe(&WATCHES, i64::try_from(watches).unwrap_or(i64::MAX));
        }
        numbers.dispatched += 1;
        numbers.executing += 1;
        numbers.executing_seats += seats;
        match passed {
            Passed::Queue { length } => {
                numbers.queue_length.observe(&QUEUE_LENGTHS, i64::try_from(length).unwrap_or(i64::MAX));
                numbers.wait[1].observe(&DURATIONS, 0);
            }
            Passed::NoQueue => numbers.wait[1].observe(&DURATIONS, 0),
            Passed::Exempt => {}
        }
    }

    /// A request was rejected on arrival.
    pub(crate) fn rejected(&mut self, mark: Mark, work: WorkEstimate, watches: Option<u64>, reason: Rejection) {
        self.estimated(mark, i64::from(work.max_seats()), watches);
        if let Some(numbers) = self.numbers(mark.series) {
            numbers.rejected[reason as usize] += 1;
            numbers.wait[0].observe(&DURATIONS, 0);
        }
    }

    #[inline]
    fn estimated(&mut self, mark: Mark, seats: i64, watches: Option<u64>) {
        if let Some(numbers) = self.numbers(mark.series) {
            numbers.seats.observe(&SEATS, seats);
            if let Some(watches) = watches {
                numbers.watches.observe(&WATCHES, i64::try_from(watches).unwrap_or(i64::MAX));
            }
        }
    }

    /// A request gave up waiting (FQ-28), for this reason. It counts as one that waited for its execution (OB-4).
    pub(crate) fn gave_up(&mut self, now: Instant, ending: Ending, reason: Rejection) {
        self.crowd.add(Doing::Waiting, ending.waiter.access, -1);
        if let Some(numbers) = self.numbers(ending.waiter.series) {
            numbers.waiting -= 1;
            numbers.waiting_seats -= ending.seats;
            numbers.rejected[reason as usize] += 1;
            numbers.wait[1].observe(&DURATIONS, now - ending.arrived);
        }
    }

    /// A waiting request gave way to another (PF-7): it is counted as one that was rejected at once, with the time it waited.
    pub(crate) fn displaced(&mut self, now: Instant, ending: Ending) {
        self.crowd.add(Doing::Waiting, ending.waiter.access, -1);
        if let Some(numbers) = self.numbers(ending.waiter.series) {
            numbers.waiting -= 1;
            numbers.waiting_seats -= ending.seats;
            numbers.rejected[Rejection::QueueFull as usize] += 1;
            numbers.wait[0].observe(&DURATIONS, now - ending.arrived);
        }
    }

    /// The handler of a request has returned.
    #[inline]
    pub(crate) fn finished(&mut self, now: Instant, ending: Ending) {
        self.crowd.add(Doing::Executing, ending.waiter.access, -1);
        let executed = ending.started.map_or(0, |started| now - started);
        // How long a seat is held, and how many are needed, does not follow from requests that have none.
        let is_watch = ending.waiter.is_watch || !ending.has_seats();
        if let Some(numbers) = self.numbers(ending.waiter.series) {
            numbers.executing -= 1;
            numbers.execution[usize::from(is_watch)].observe(&DURATIONS, executed);
        }
    }

    /// A request that runs holds other seats from now on.
    pub(crate) fn resized(&mut self, mark: Mark, before: u32, after: u32) {
        if let Some(numbers) = self.numbers(mark.series) {
            numbers.executing_seats += i64::from(after) - i64::from(before);
        }
    }

    /// A request has given its seats back.
    #[inline]
    pub(crate) fn released(&mut self, ending: Ending) {
        if let Some(numbers) = self.numbers(ending.waiter.series) {
            numbers.executing_seats -= ending.seats;
        }
    }

    /// Counts what an event brought about, and takes over the state that it led to.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant, set: &LevelQueueSet, notes: &mut Notes) {
        if let Some(id) = notes.first_started.take() {
            self.started(set, id);
            if !notes.others_started.is_empty() {
                notes.others_started.take().into_iter().for_each(|id| self.started(set, id));
            }
        }
        if let Some(numbers) = notes.blocked.take().and_then(|series| self.numbers(series)) {
            numbers.blocked += 1;
        }
        if let Some(is_clean) = notes.epoch_advanced.take() {
            self.epoch_advances[usize::from(is_clean)] += 1;
        }
        self.take_over(now, set);
    }

    /// Takes over the state that an event led to.
    #[inline]
    pub(crate) fn take_over(&mut self, now: Instant, set: &LevelQueueSet) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.ratios.seats.set(now, set.seats_in_use());
        self.ratios.waiting.set(now, number(set.waiting()));
        self.ratios.executing.set(now, number(set.executing()));
        self.ratios.demand.set(now, set.seats_in_use() + set.seats_waiting());
    }

    #[inline]
    fn started(&mut self, set: &LevelQueueSet, id: RequestId) {
        let Some(request) = set.request(id) else { return };
        let (mark, seats) = (request.payload.mark, i64::from(request.work.max_seats()));
        self.crowd.add(Doing::Executing, mark.access, 1);
        if request.queue.is_some() {
            self.crowd.add(Doing::Waiting, mark.access, -1);
        }
        let is_exempt = set.mode() == Mode::Exempt && request.queue.is_none();
        let waited = request.started.map_or(0, |started| started - request.arrived);
        let Some(numbers) = self.numbers(mark.series) else { return };
        numbers.dispatched += 1;
        numbers.executing += 1;
        numbers.executing_seats += seats;
        if request.queue.is_some() {
            numbers.waiting -= 1;
            // What a request lost when it was narrowed stays behind, as it does in the queue set (FQ-24).
            numbers.waiting_seats -= seats;
        }
        if !is_exempt {
            numbers.wait[1].observe(&DURATIONS, waited);
        }
    }

    /// `None` once the numbers have been handed to another level of the same name.
    #[inline]
    fn numbers(&mut self, series: u32) -> Option<&mut Numbers> {
        self.series.get_mut(series as usize).map(|series| &mut series.numbers)
    }

    /// Hands the numbers to a new level of the same name. What still lingers in the old one is no longer counted.
    pub(crate) fn hand_over(&mut self, set: &LevelQueueSet, now: Instant) -> Self {
        for request in set.requests() {
            self.released(Ending::of(&request));
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
}

// === impl Notes ===

impl Notes {
    #[inline]
    pub(crate) fn note_start(&mut self, id: RequestId) {
        if self.first_started.is_none() {
            self.first_started = Some(id);
        } else {
            self.others_started.push(id);
        }
    }

    /// Whether the event did nothing but start this request.
    #[inline]
    pub(crate) fn tell_only_of(&self, id: RequestId) -> bool {
        self.first_started == Some(id)
            && self.others_started.is_empty()
            && self.blocked.is_none()
            && self.epoch_advanced.is_none()
    }

    fn started(&self) -> impl Iterator<Item = RequestId> {
        self.first_started.into_iter().chain(self.others_started.iter().copied())
    }
}

// === impl Ending ===

impl Ending {
    #[inline]
    pub(crate) fn of(request: &RequestView<'_, Waiter>) -> Self {
        Self {
            phase: request.phase,
            waiter: request.payload.mark,
            seats: i64::from(request.work.max_seats()),
            arrived: request.arrived,
            started: request.started,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether others may have waited for its seats.
    #[inline]
    pub(crate) fn has_seats(&self) -> bool {
        self.seats > 0
    }
}

impl From<&Ended<Waiter>> for Ending {
    fn from(ended: &Ended<Waiter>) -> Self {
        Self {
            phase: ended.phase,
            waiter: ended.payload.mark,
            seats: i64::from(ended.work.max_seats()),
            arrived: ended.arrived,
            started: ended.started,
        }
    }
}
