//! `FlowControl::reading`: the counters of every level, as a structure for tools that look again and again.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_api::annotations::Rate;
use evenkeel_engine::Schema;
use evenkeel_engine::controller::{Borrowing, ControlledLevel, Dangling};
use evenkeel_engine::queue_set::{Mode, Queuing, QueuingDiscipline, Rejection};
use evenkeel_engine::time::Instant;

use crate::control::core::LevelCore;
use crate::control::counts::SEAT_UTILIZATION;
use crate::control::counts::series::DURATIONS;
use crate::control::flow_control::FlowControl;
use crate::control::level::Level;
use crate::observe::status::SeatLimits;

/// The counters of a flow control at one moment. Counters only grow, so that two readings tell what happened between them.
/// Made by [`FlowControl::reading`](crate::FlowControl::reading).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reading {
    /// The time of the reading, on a clock that never goes backwards.
    pub at_ns: i64,
    /// The seats that all levels share.
    pub concurrency: i64,
    /// How levels borrow seats from each other.
    pub borrowing: Borrowing,
    /// All levels, in ascending byte order of their names.
    pub levels: Vec<LevelReading>,
    /// The flow schemas that are not used because their levels are missing.
    pub dangling: Vec<Dangling>,
}

/// The counters and the state of one level.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LevelReading {
    /// The name of the level.
    pub name: Arc<str>,
    /// Whether its object is gone, and it stays only until its last request has ended.
    pub is_quiescing: bool,
    /// What happens to requests that find no seat.
    pub queuing: LevelQueuing,
    /// The seats that its configuration gives it.
    pub limits: SeatLimits,
    /// The seats of requests that run or linger.
    pub seats_in_use: i64,
    /// The seats that are kept at present for clients of which nothing runs.
    pub kept_seats: i64,
    /// How many requests wait.
    pub waiting: usize,
    /// How many long-running requests wait or run, those that take no seat included.
    pub long_running: u32,
    /// How many there may be; `None` if there is no limit.
    pub max_long_running: Option<u32>,
    /// The seats of long-running requests that have not begun to respond.
    pub long_running_seats: i64,
    /// How many requests were started.
    pub dispatched: u64,
    /// How many requests were rejected, by reason.
    pub rejected: [(Rejection, u64); 6],
    /// How many requests were ended because another level needed its own seats.
    pub revoked: u64,
    /// How long requests waited that were started or gave up.
    pub waits: DurationCounts,
    /// How long requests ran, without watches.
    pub executions: DurationCounts,
    /// How much of its seats the level used through time.
    pub utilisation: RatioCounts,
    /// The flow schemas that lead to it, in the order in which they are tried.
    pub schemas: Vec<SchemaReading>,
}

/// What happens to requests that find no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LevelQueuing {
    /// Requests run all the same.
    Exempt,
    /// Requests are rejected.
    Reject,
    /// Requests wait in queues that flows share.
    ShuffleSharded,
    /// Requests wait in the queue of their flow.
    PerFlow,
}

/// How many durations were in each range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DurationCounts {
    /// How many were above the bound before and at most the bound of the same index; the last is for those above all.
    pub counts: [u64; 14],
    /// All of them added up.
    pub sum_ns: i128,
}

/// How long a ratio was in each range.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct RatioCounts {
    /// For how long it was above the bound before and at most the bound of the same index; the last is for all above.
    pub spans_ns: [u64; 14],
    /// The integral of the ratio over time.
    pub sum_ns: f64,
    /// The denominator of the ratio now.
    pub denominator: i64,
}

/// The counters of a flow schema in its level.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaReading {
    /// The name of the flow schema.
    pub name: Arc<str>,
    /// How many requests it has matched.
    pub hits: u64,
    /// The rate of its flows, if they have one.
    pub rate: Option<RateReading>,
}

/// The rate of the flows of a flow schema, and the requests that wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateReading {
    /// The rate of each flow.
    pub rate: Rate,
    /// How many requests have waited for it.
    pub delayed: u64,
    /// How many wait for it now. They take no seat.
    pub waiting: u64,
}

// === impl FlowControl ===

impl FlowControl {
    /// The counters of every level. It takes the lock of one level after the other, each only to add up a few numbers.
    ///
    /// ```
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// let flow = FlowControl::builder().drive_by_hand().build();
    /// let (user, request) = (User::default(), RequestInfo::default());
    /// drop(flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT));
    /// let reading = flow.reading();
    /// let level = reading.level("everyone").unwrap();
    /// assert_eq!((level.dispatched, level.schemas[0].hits), (1, 1));
    /// ```
    pub fn reading(&self) -> Reading {
        let shared = self.shared();
        let dangling = shared.dangling();
        let (controller, snapshot) = shared.controlled();
        let now = shared.upkeep().clock.now();
        let (concurrency, borrowing) = (controller.server_limit(), controller.borrowing());
        let mut schemas: HashMap<_, Vec<&Schema>> = HashMap::new();
        for schema in snapshot.configuration.schemas() {
            schemas.entry(schema.level.id).or_default().push(schema);
        }
        let levels = controller.levels().filter_map(|(name, controlled)| {
            let (level, id) = (snapshot.levels.get(controlled.id())?, controlled.id());
            let schemas = schemas.get(&id).map_or(&[][..], Vec::as_slice);
            Some(LevelReading::take(name, controlled, level, schemas, now))
        });
        Reading { at_ns: now.as_nanos(), concurrency, borrowing, levels: levels.collect(), dangling }
    }
}

// === impl Reading ===

impl Reading {
    /// The level of this name.
    pub fn level(&self, name: &str) -> Option<&LevelReading> {
        let found = self.levels.binary_search_by(|level| level.name.as_bytes().cmp(name.as_bytes()));
        found.ok().map(|index| &self.levels[index])
    }
}

// === impl LevelReading ===

impl LevelReading {
    fn take(name: &str, controlled: &ControlledLevel, level: &Level, schemas: &[&Schema], now: Instant) -> Self {
        let queuing = LevelQueuing::of(controlled.mode());
        let look = |core: &mut LevelCore| {
            let set = core.queue_set();
            let seats = (core.current_limit(), set.seats_in_use(), set.kept_seats(), core.level.long_running_seats());
            (set.waiting(), seats)
        };
        let (mut listeners, (waiting, (current, seats_in_use, kept_seats, long_running_seats))) =
            level.listeners_and(look);
        listeners.metrics.ratios.account(now);
        let metrics = &listeners.metrics;
        let mut hits = Vec::with_capacity(metrics.series.len());
        let (mut dispatched, mut rejected) = (0, [0; 5]);
        let (mut waits, mut executions) = (DurationCounts::default(), DurationCounts::default());
        for series in &metrics.series {
            let numbers = &series.numbers;
            dispatched += numbers.dispatched;
            rejected.iter_mut().zip(numbers.rejected).for_each(|(sum, more)| *sum += more);
            numbers.wait[1].add_to(&mut waits.counts, &mut waits.sum_ns);
            numbers.execution[0].add_to(&mut executions.counts, &mut executions.sum_ns);
            hits.push((Arc::clone(&series.schema), numbers.seats.count()));
        }
        let (spans_ns, sum_ns, denominator) = metrics.ratios.seats.spans();
        let (long_running, long_running_rejected) = (metrics.long_running.running(), metrics.long_running.rejected());
        let revoked = metrics.revoked;
        drop(listeners);
        let hits: HashMap<_, _> = hits.into_iter().collect();
        let reasons = [
            Rejection::QueueFull,
            Rejection::ConcurrencyLimit,
            Rejection::TimeOut,
            Rejection::Cancelled,
            Rejection::RateLimit,
        ];
        let [full, limit, time_out, cancelled, rate] = reasons.map(|reason| (reason, rejected[reason as usize]));
        let schemas = schemas.iter().map(|schema| {
            let rate = RateReading::take(level, schema);
            match hits.get_key_value(&*schema.name) {
                Some((name, hits)) => SchemaReading { name: Arc::clone(name), hits: *hits, rate },
                None => SchemaReading { name: Arc::from(&*schema.name), hits: 0, rate },
            }
        });
        Self {
            name: name.into(),
            is_quiescing: controlled.is_quiescing(),
            queuing,
            limits: SeatLimits { current, ..SeatLimits::new(controlled) },
            seats_in_use,
            kept_seats,
            waiting,
            long_running,
            max_long_running: controlled.max_long_running(),
            long_running_seats,
            dispatched,
            revoked,
            rejected: [full, limit, time_out, cancelled, rate, (Rejection::TooManyLongRunning, long_running_rejected)],
            waits,
            executions,
            utilisation: RatioCounts { spans_ns, sum_ns, denominator },
            schemas: schemas.collect(),
        }
    }
}

// === impl RateReading ===

impl RateReading {
    fn take(level: &Level, schema: &Schema) -> Option<Self> {
        let rate = schema.terms.as_deref()?.rate?.rate;
        let counts = level.accounts.rate_counts(&schema.name);
        Some(Self { rate, delayed: counts.delayed, waiting: counts.waiting })
    }
}

// === impl LevelQueuing ===

impl LevelQueuing {
    fn of(mode: Mode) -> Self {
        match mode {
            Mode::Exempt => Self::Exempt,
            Mode::Reject | Mode::Closed => Self::Reject,
            Mode::Queue(Queuing { discipline: QueuingDiscipline::ShuffleSharded, .. }) => Self::ShuffleSharded,
            Mode::Queue(Queuing { discipline: QueuingDiscipline::PerFlow, .. }) => Self::PerFlow,
        }
    }
}

// === impl DurationCounts ===

impl DurationCounts {
    /// The bounds of the ranges, which are those of the metrics.
    pub const BOUNDS_NS: [i64; 13] = DURATIONS.values;
}

// === impl RatioCounts ===

impl RatioCounts {
    /// The bounds of the ranges, which are those of the metrics.
    pub const BOUNDS: [f64; 13] = SEAT_UTILIZATION;
}
