//! Who uses a level, and who delays whom (AT-1 to AT-3), in bounded memory.
//!
//! [`Attribution`] is an [`Observer`] of a level. It keeps the heaviest flows of the last minute by seat-time, by waiting time
//! and by rejections; and for flows that wait, whose requests they wait behind: when a request has to wait, one running seat
//! is drawn at random, and the flow that has it is blamed for the whole wait. On average that is exact, since every seat that
//! is taken is as much to blame as every other.
//!
//! ```
//! use evenkeel_engine::attribution::Attribution;
//! use evenkeel_engine::level::{Level, NewRequest};
//! use evenkeel_engine::queue_set::{Arrival, Mode, NoEffects, QueueSetConfig};
//! use evenkeel_engine::time::{Instant, SECOND};
//! use evenkeel_engine::{Flow, WorkEstimate};
//!
//! let at = |seconds| Instant::from_nanos(seconds * SECOND);
//! let config = QueueSetConfig { mode: Mode::queue(64, 8, 50)?, concurrency_limit: 1 };
//! let mut level: Level<(), _> = Level::with_observer(config, Attribution::new(7), at(0));
//! let request = |tenant| NewRequest::new(Flow::new("tenants", tenant), WorkEstimate::ONE_SEAT);
//! for second in 0..3 {
//!     let Arrival::Started { id, .. } = level.arrive(at(8 * second), request("batch"), (), &mut NoEffects) else { panic!() };
//!     let Arrival::Waiting { id: other, .. } = level.arrive(at(8 * second), request("web"), (), &mut NoEffects) else { panic!() };
//!     level.finish(at(8 * second + 6), id, &mut NoEffects);
//!     level.finish(at(8 * second + 8), other, &mut NoEffects);
//! }
//! let usage = level.observer_mut().usage(at(24), 20);
//! let names: Vec<_> = usage.seat_time.flows.iter().map(|(flow, time)| (usage.name(*flow).unwrap().distinguisher, *time)).collect();
//! assert_eq!(names, [("batch", 18 * SECOND as u64), ("web", 6 * SECOND as u64)]);
//! let delay = &usage.delays.pairs[0];
//! let name = |flow| usage.name(flow).unwrap().distinguisher;
//! assert_eq!((name(delay.delayed), delay.behind.map(name), delay.wait), ("web", Some("batch"), 18 * SECOND as u64));
//! # Ok::<(), evenkeel_engine::deal::InvalidDeal>(())
//! ```

mod flow_key;
mod heavy_hitters;
mod names;
mod random;
mod usage;
mod wanted_names;
mod window;

pub use flow_key::FlowKey;
pub use names::FlowName;
pub use usage::{Delay, Delays, FlowCost, FlowNow, LevelUsage, Ranking};
pub use wanted_names::WantedNames;

use std::sync::Arc;

use flow_key::{FlowPair, FlowUnit};
use names::Names;
use random::Random;
use window::Window;

use crate::Flow;
use crate::level::{NewRequest, Observer};
use crate::queue_set::{Rejection, RequestId};
use crate::time::{Instant, Nanos, SECOND};

/// Observes who uses a level, and who delays whom.
///
/// Its tables take [at most 64 KiB](Self::bytes), however many flows there are. Beside them it keeps 40 bytes for each request
/// that is in the level, and 4 for each that runs.
#[derive(Debug)]
pub struct Attribution {
    /// The requests, by their slots.
    requests: Vec<Tracked>,
    /// The slots of requests that have seats, in no order.
    running: Vec<u32>,
    /// The most seats that a request of late has had.
    seats_max: u32,
    seat_time: Window<FlowKey>,
    waiting: Window<FlowKey>,
    rejections: Window<FlowKey>,
    delays: Window<FlowPair>,
    /// What requests cost that have ended, and what they were expected to cost.
    costs: Window<FlowUnit>,
    expected_costs: Window<FlowUnit>,
    names: Names,
    /// When the last two halves of a minute began, and when the next one does.
    previous_start: Instant,
    start: Instant,
    end: Instant,
    random: Random,
    seed: u64,
}

/// A request of the level, as the attribution knows it.
#[derive(Debug, Clone, Copy)]
struct Tracked {
    flow: FlowKey,
    /// The time of its arrival while it waits. While it runs, the time up to which its seat-time has been counted.
    since: Instant,
    seats: u32,
    stage: RequestStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestStage {
    Arrived,
    /// The request waits, and this flow is to blame; none if no request of the level has a seat.
    Waiting(Option<FlowKey>),
    /// The request has seats, and this place in the list of those that have.
    Running(u32),
    /// The request is gone.
    Ended,
}

/// How long a half of the window is.
const HALF: Nanos = 30 * SECOND;
/// The sizes of the tables. Most levels have far fewer flows that wait or are rejected than flows.
const SEAT_TIME_SLOTS: usize = 1024;
const WAITING_SLOTS: usize = 256;
const REJECTION_SLOTS: usize = 256;
const DELAY_SLOTS: usize = 512;
const COST_SLOTS: usize = 128;
/// How often a seat is drawn anew when a request with fewer seats than others was drawn.
const DRAWS_MAX: usize = 16;

// === impl Attribution ===

impl Attribution {
    /// Nothing has happened yet. The seed should differ from level to level, and be unknown to clients.
    pub fn new(seed: u64) -> Self {
        let start = Instant::default();
        Self {
            requests: Vec::new(),
            running: Vec::new(),
            seats_max: 1,
            seat_time: Window::new(SEAT_TIME_SLOTS),
            waiting: Window::new(WAITING_SLOTS),
            rejections: Window::new(REJECTION_SLOTS),
            delays: Window::new(DELAY_SLOTS),
            costs: Window::new(COST_SLOTS),
            expected_costs: Window::new(COST_SLOTS),
            names: Names::new(seed),
            previous_start: start,
            start,
            end: start,
            random: Random::new(seed),
            seed,
        }
    }

    /// The bytes of its tables (AT-3).
    pub fn bytes(&self) -> usize {
        let flows = self.seat_time.bytes() + self.waiting.bytes() + self.rejections.bytes();
        let costs = self.costs.bytes() + self.expected_costs.bytes();
        flows + costs + self.delays.bytes() + self.names.bytes() + size_of::<Self>()
    }

    /// A request is rejected before the level sees it, as one too many of those that run long. It counts among the rejections
    /// of its flow.
    pub fn rejected_on_arrival(&mut self, now: Instant, flow: &Flow<'_>) {
        self.advance(now);
        self.add_rejection(FlowKey::new(flow, self.seed));
    }

    /// A request arrives, of a flow whose name need not be given: see [`learn_name`](Self::learn_name).
    #[inline]
    pub fn arrived_unnamed(&mut self, now: Instant, id: RequestId, flow: &Flow<'_>, seats: u32) {
        self.advance(now);
        let tracked = Tracked { flow: FlowKey::new(flow, self.seed), since: now, seats, stage: RequestStage::Arrived };
        match self.requests.get_mut(id.slot()) {
            Some(place) => *place = tracked,
            None => self.requests.resize(id.slot() + 1, tracked),
        }
    }

    /// A request that runs, or has just ended, has cost so much in a unit that has this number, and was expected to cost so much.
    pub fn costed(&mut self, now: Instant, id: RequestId, unit: u8, cost: u64, expected: u64) {
        self.advance(now);
        let Some(request) = self.tracked(id) else { return };
        let key = FlowUnit { flow: request.flow, unit };
        if self.costs.add(key, cost, &mut self.random) {
            self.names.want(key.flow);
        }
        self.expected_costs.add(key, expected, &mut self.random);
    }

    /// The flows whose names are wanted. It is the same object for as long as the attribution lives.
    pub fn wanted_names(&self) -> Arc<WantedNames> {
        Arc::clone(&self.names.wanted)
    }

    /// A request of that flow has arrived, or arrives now: remembers its name if it is wanted.
    #[inline]
    pub fn learn_name(&mut self, flow: &Flow<'_>) {
        let key = FlowKey::new(flow, self.seed);
        if self.names.may_want(key) {
            self.learn_wanted_name(key, flow);
        }
    }

    /// Begins another half of the window if it is time.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if now >= self.end {
            self.turn(now);
        }
    }

    #[cold]
    fn turn(&mut self, now: Instant) {
        self.seats_max = 1;
        if self.end == Instant::default() {
            self.previous_start = now;
        } else if now - self.end >= HALF {
            // No event for so long that both halves are over. Requests that still run have run all the time.
            self.each_window(Window::clear, Window::clear, Window::clear);
            self.previous_start = now + -HALF;
            self.count_running(now, self.previous_start);
            self.each_window(Window::turn, Window::turn, Window::turn);
        } else {
            self.count_running(now, self.start);
            self.each_window(Window::turn, Window::turn, Window::turn);
            self.previous_start = self.start;
        }
        self.names.turn();
        self.start = now;
        self.end = now + HALF;
    }

    fn each_window(
        &mut self,
        flows: fn(&mut Window<FlowKey>),
        pairs: fn(&mut Window<FlowPair>),
        units: fn(&mut Window<FlowUnit>),
    ) {
        [&mut self.seat_time, &mut self.waiting, &mut self.rejections].into_iter().for_each(flows);
        pairs(&mut self.delays);
        [&mut self.costs, &mut self.expected_costs].into_iter().for_each(units);
    }

    /// Counts the seat-time of requests that run, from the later of that time and when they were counted last.
    fn count_running(&mut self, now: Instant, from: Instant) {
        for place in 0..self.running.len() {
            let request = &mut self.requests[self.running[place] as usize];
            let since = request.since.max(from);
            request.since = now;
            let (flow, seats) = (request.flow, request.seats);
            self.seats_max = self.seats_max.max(seats);
            self.add_seat_time(flow, seats, now - since);
        }
    }

    #[inline]
    fn add_seat_time(&mut self, flow: FlowKey, seats: u32, time: Nanos) {
        let weight = u64::from(seats).saturating_mul(u64::try_from(time).unwrap_or_default());
        if self.seat_time.add(flow, weight, &mut self.random) {
            self.names.want(flow);
        }
    }

    /// Adds the wait of a request that starts or is rejected.
    fn add_wait(&mut self, flow: FlowKey, behind: Option<FlowKey>, wait: Nanos) {
        let wait = u64::try_from(wait).unwrap_or_default();
        if self.waiting.add(flow, wait, &mut self.random) {
            self.names.want(flow);
        }
        self.delays.add(FlowPair { delayed: flow, behind }, wait, &mut self.random);
    }

    fn add_rejection(&mut self, flow: FlowKey) {
        if self.rejections.add(flow, 1, &mut self.random) {
            self.names.want(flow);
        }
    }

    /// The flow of a seat that is drawn at random among those that are taken (AT-2).
    fn draw(&mut self) -> Option<FlowKey> {
        let mut drawn = None;
        for _ in 0..DRAWS_MAX {
            let place = usize::try_from(self.random.below(self.running.len() as u64)).unwrap_or_default();
            let request = self.requests.get(*self.running.get(place)? as usize)?;
            drawn = Some(request.flow);
            // A request with many seats is as many times as likely.
            if self.seats_max == 1 || self.random.below(self.seats_max.into()) < u64::from(request.seats) {
                break;
            }
        }
        drawn
    }

    #[cold]
    fn learn_wanted_name(&mut self, key: FlowKey, flow: &Flow<'_>) {
        let Self { names, seat_time, waiting, rejections, .. } = self;
        // Nanoseconds and rejections are not the same; a rejection is worth some milliseconds of somebody's time.
        let weight = |key| seat_time.weight(key) + waiting.weight(key) + (rejections.weight(key) << 22);
        names.learn(key, flow, weight);
    }

    #[inline]
    fn tracked(&mut self, id: RequestId) -> Option<&mut Tracked> {
        self.requests.get_mut(id.slot())
    }
}

impl Observer for Attribution {
    #[inline]
    fn arrived(&mut self, now: Instant, id: RequestId, request: &NewRequest<'_>) {
        self.arrived_unnamed(now, id, &request.flow, request.work.max_seats());
        self.learn_name(&request.flow);
    }

    fn queued(&mut self, _now: Instant, id: RequestId) {
        let behind = self.draw();
        if let Some(request) = self.tracked(id) {
            request.stage = RequestStage::Waiting(behind);
        }
    }

    #[inline]
    fn started(&mut self, now: Instant, id: RequestId) {
        let place = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
        let Some(request) = self.tracked(id) else { return };
        let Tracked { flow, since, seats, stage } = *request;
        // A request without seats makes no other request wait.
        if seats > 0 {
            (request.since, request.stage) = (now, RequestStage::Running(place));
            self.running.push(u32::try_from(id.slot()).unwrap_or(u32::MAX));
            self.seats_max = self.seats_max.max(seats);
        }
        if let RequestStage::Waiting(behind) = stage {
            self.advance(now);
            self.add_wait(flow, behind, now - since);
        }
    }

    fn resized(&mut self, now: Instant, id: RequestId, seats: u32) {
        self.advance(now);
        let Some(request) = self.tracked(id) else { return };
        let Tracked { flow, since, seats: before, stage } = *request;
        (request.since, request.seats) = (now, seats);
        if let RequestStage::Running(_) = stage {
            self.seats_max = self.seats_max.max(seats);
            self.add_seat_time(flow, before, now - since);
        }
    }

    #[inline]
    fn released(&mut self, now: Instant, id: RequestId) {
        self.advance(now);
        let Some(Tracked { flow, since, seats, stage: RequestStage::Running(place) }) = self.tracked(id).copied()
        else {
            return;
        };
        let place = place as usize;
        self.running.swap_remove(place);
        if let Some(moved) = self.running.get(place)
            && let Some(moved) = self.requests.get_mut(*moved as usize)
        {
            moved.stage = RequestStage::Running(u32::try_from(place).unwrap_or(u32::MAX));
        }
        if let Some(request) = self.tracked(id) {
            request.stage = RequestStage::Ended;
        }
        self.add_seat_time(flow, seats, now - since);
    }

    fn rejected(&mut self, now: Instant, id: RequestId, _reason: Rejection) {
        self.advance(now);
        let Some(request) = self.tracked(id) else { return };
        let Tracked { flow, since, stage, .. } = *request;
        request.stage = RequestStage::Ended;
        if let RequestStage::Waiting(behind) = stage {
            self.add_wait(flow, behind, now - since);
        }
        self.add_rejection(flow);
    }
}
