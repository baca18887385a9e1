//! One priority level with its timers: what a single-threaded [`Engine`](crate::Engine) keeps in a table, and what a server of
//! many threads keeps behind a short lock for each level.
//!
//! It is a [`QueueSet`] and the times at which something is due in it: the ends of lingering, and the wait limits of requests
//! in queues. Nothing happens by itself. [`next_timeout`](Level::next_timeout) says when something is due, and
//! [`handle_timeout`](Level::handle_timeout) does it; to call that too early or too often does no harm.
//!
//! ```
//! use evenkeel_engine::level::{Level, NewRequest};
//! use evenkeel_engine::queue_set::{Arrival, Effects, Ended, Mode, QueueSetConfig, RequestId};
//! use evenkeel_engine::time::{Instant, SECOND};
//! use evenkeel_engine::{Flow, WorkEstimate};
//!
//! /// Keeps the requests whose time is over.
//! #[derive(Default)]
//! struct TimedOut(Vec<&'static str>);
//!
//! impl Effects<&'static str> for TimedOut {
//!     fn started(&mut self, _id: RequestId, _name: &mut &'static str) {}
//!
//!     fn timed_out(&mut self, ended: Ended<&'static str>) {
//!         self.0.push(ended.payload);
//!     }
//! }
//!
//! let at = |seconds| Instant::from_nanos(seconds * SECOND);
//! let config = QueueSetConfig { mode: Mode::queue(64, 8, 50)?, concurrency_limit: 1 };
//! let mut level: Level<&str> = Level::new(config, at(0));
//! let mut told = TimedOut::default();
//!
//! let request = |tenant| NewRequest::new(Flow::new("tenants", tenant), WorkEstimate::ONE_SEAT).wait_until(at(15));
//! assert!(matches!(level.arrive(at(0), request("a"), "first", &mut told), Arrival::Started { .. }));
//! assert!(matches!(level.arrive(at(0), request("b"), "second", &mut told), Arrival::Waiting { .. }));
//!
//! assert_eq!(level.next_timeout(), Some(at(15)));
//! level.handle_timeout(at(15), &mut told);
//! assert_eq!(told.0, ["second"]);
//! assert_eq!(level.next_timeout(), None);
//! # Ok::<(), evenkeel_engine::deal::InvalidDeal>(())
//! ```

mod grants;
mod long_running;
mod observer;
mod timers;

pub use grants::{Account, LedgerAccount};
pub use observer::{ObserveLevels, Observer};

use long_running::LongRunning;
use observer::Observed;
use timers::Timers;

use crate::borrowing::DemandPeriod;
use crate::queue_set::{Arrival, Effects, Ended, Finish, Phase, QueueSet, QueueSetConfig, Rejection, RequestId};
use crate::time::{Instant, Nanos};
use crate::{Flow, WorkEstimate};

/// A priority level: its queue set, its timers, and its observer. `T` is what the caller keeps with each request.
#[derive(Debug)]
pub struct Level<T, O = ()> {
    queue_set: QueueSet<T>,
    timers: Timers,
    long_running: LongRunning,
    observer: O,
}

/// A request that arrives at a level.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct NewRequest<'a> {
    /// The flow that it belongs to.
    pub flow: Flow<'a>,
    /// The seats that it takes.
    pub work: WorkEstimate,
    /// When it is rejected if it still waits then; `None`: it waits until it starts or is cancelled.
    pub wait_until: Option<Instant>,
    /// Whether it holds its seats for long, as an upgraded connection does: such requests never hold more than the nominal seats of the level
    /// (LB-5).
    pub is_long_running: bool,
    /// Whether it takes no seat: it starts at once, and nobody waits for its end.
    pub is_seatless: bool,
}

// === impl NewRequest ===

impl<'a> NewRequest<'a> {
    /// A request that waits without a limit.
    pub fn new(flow: impl Into<Flow<'a>>, work: WorkEstimate) -> Self {
        Self { flow: flow.into(), work, wait_until: None, is_long_running: false, is_seatless: false }
    }

    /// The same, but it waits until that time at most.
    #[must_use]
    pub fn wait_until(self, until: Instant) -> Self {
        Self { wait_until: Some(until), ..self }
    }

    /// The same, but it holds its seats for long: see [`is_long_running`](Self::is_long_running).
    #[must_use]
    pub fn long_running(self) -> Self {
        Self { is_long_running: true, ..self }
    }

    /// The same, but it takes no seat: see [`is_seatless`](Self::is_seatless).
    #[must_use]
    pub fn seatless(self) -> Self {
        Self { is_seatless: true, work: WorkEstimate::NO_SEAT, ..self }
    }
}

// === impl Level ===

impl<T> Level<T> {
    /// A level in which nothing has happened yet, and that nobody observes.
    pub fn new(config: QueueSetConfig, now: Instant) -> Self {
        Self::with_observer(config, (), now)
    }
}

impl<T, O: Observer> Level<T, O> {
    /// A level in which nothing has happened yet.
    pub fn with_observer(config: QueueSetConfig, observer: O, now: Instant) -> Self {
        let (queue_set, timers) = (QueueSet::new(config, now), Timers::default());
        Self { queue_set, timers, long_running: LongRunning::default(), observer }
    }

    /// A request arrives.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "so that the request is not copied on its way to the queue set")]
    pub fn arrive(
        &mut self,
        now: Instant,
        request: NewRequest<'_>,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        let observed = self.observer.is_active().then(|| self.queue_set.next_id());
        if let Some(id) = observed {
            self.observer.arrived(now, id, &request);
        }
        let NewRequest { flow, work, wait_until, is_long_running, is_seatless } = request;
        let mut effects = Observed::new(now, &mut self.observer, &mut self.long_running, effects);
        let arrival = if is_seatless {
            self.queue_set.start_seatless(now, payload, &mut effects)
        } else {
            self.queue_set.arrive(now, flow, work, payload, &mut effects)
        };
        match &arrival {
            Arrival::Waiting { id, .. } => {
                self.observer.queued(now, *id);
                if is_long_running {
                    self.long_running.wait(*id, work.max_seats());
                }
                if let Some(until) = wait_until {
                    self.timers.wait(until, *id, &self.queue_set);
                }
            }
            Arrival::Rejected { reason, .. } => {
                if let Some(id) = observed {
                    self.observer.rejected(now, id, *reason);
                }
            }
            Arrival::Started { id, .. } if is_long_running => self.long_running.start(*id, work.max_seats()),
            Arrival::Started { .. } => {}
        }
        arrival
    }

    /// The handler of an executing request has returned. `None` if the request is not executing. If the request lingers, its
    /// seats are free at a later timeout.
    #[inline]
    pub fn finish(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<Finish<T>> {
        if self.observer.is_active() {
            self.observe_end(now, id, Phase::Executing);
        }
        let mut effects = Observed::new(now, &mut self.observer, &mut self.long_running, effects);
        let finish = self.queue_set.finish(now, id, &mut effects)?;
        match &finish {
            Finish::Lingering { until } => self.timers.linger(*until, id),
            Finish::Released(_) => self.long_running.ended(id),
        }
        Some(finish)
    }

    /// The flow of an executing request is charged more or less: see [`QueueSet::charge`].
    pub fn charge(&mut self, now: Instant, id: RequestId, seat_time: Nanos, effects: &mut impl Effects<T>) -> bool {
        self.queue_set.charge(now, id, seat_time, effects)
    }

    /// An executing request holds so many seats from now on: see [`QueueSet::set_seats`].
    pub fn set_seats(&mut self, now: Instant, id: RequestId, seats: u32, effects: &mut impl Effects<T>) -> Option<u32> {
        let request = self.queue_set.request(id)?;
        if request.phase != Phase::Executing || request.work.is_seatless() {
            return None;
        }
        let seats = seats.max(1);
        // Before those that start on seats that this leaves free.
        self.observer.resized(now, id, seats);
        self.long_running.resize(id, seats);
        let mut effects = Observed::new(now, &mut self.observer, &mut self.long_running, effects);
        self.queue_set.set_seats(now, id, seats, &mut effects)
    }

    /// A lingering request gives its seats back before its time. `None` if the request is not lingering.
    pub fn release(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<T> {
        if self.observer.is_active() {
            self.observe_end(now, id, Phase::Lingering);
        }
        let mut effects = Observed::new(now, &mut self.observer, &mut self.long_running, effects);
        let payload = self.queue_set.release(now, id, &mut effects)?;
        self.long_running.ended(id);
        Some(payload)
    }

    /// A waiting request gives up. `None` if the request is not waiting: it has been started meanwhile, say.
    pub fn cancel(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<T> {
        self.leave_queue(now, id, Rejection::Cancelled, effects)
    }

    fn leave_queue(
        &mut self,
        now: Instant,
        id: RequestId,
        reason: Rejection,
        effects: &mut impl Effects<T>,
    ) -> Option<T> {
        let mut effects = Observed::new(now, &mut self.observer, &mut self.long_running, effects);
        let payload = self.queue_set.cancel(now, id, &mut effects)?;
        self.long_running.ended(id);
        self.observer.rejected(now, id, reason);
        Some(payload)
    }

    /// The seats that long-running requests hold now.
    pub fn long_running_seats(&self) -> i64 {
        self.long_running.seats()
    }

    /// Changes the configuration: see [`QueueSet::configure`].
    pub fn configure(&mut self, now: Instant, config: QueueSetConfig, effects: &mut impl Effects<T>) {
        let mut effects = Observed::new(now, &mut self.observer, &mut self.long_running, effects);
        self.queue_set.configure(now, config, &mut effects);
    }

    /// When something is due in the level, if nothing else happens before.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        self.timers.next(&self.queue_set)
    }

    /// Does what is due by now, in the order in which it has become due: seats of requests that have lingered are free, and
    /// requests that have waited as long as they may are rejected. [`Effects::timed_out`] is told of both.
    pub fn handle_timeout(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        while let Some(id) = self.timers.take_due(now, &self.queue_set) {
            let Some(request) = self.queue_set.request(id) else { continue };
            let (phase, work, arrived, started) = (request.phase, request.work, request.arrived, request.started);
            let payload = match phase {
                Phase::Waiting => self.leave_queue(now, id, Rejection::TimeOut, effects),
                Phase::Lingering => self.release(now, id, effects),
                Phase::Executing => None,
            };
            if let Some(payload) = payload {
                effects.timed_out(Ended { id, phase, work, arrived, started, payload });
            }
        }
    }

    /// Tells the observer of the end of a request in that phase, before it hears of those that get its seats.
    fn observe_end(&mut self, now: Instant, id: RequestId, phase: Phase) {
        let Some(request) = self.queue_set.request(id).filter(|request| request.phase == phase) else { return };
        let lingers = request.work.additional_latency > 0;
        if phase == Phase::Executing {
            self.observer.finished(now, id);
        }
        if phase == Phase::Lingering || !lingers {
            self.observer.released(now, id);
        }
    }

    /// Ends a period in which the demand for seats was observed, and starts the next.
    pub fn end_demand_period(&mut self, now: Instant) -> DemandPeriod {
        self.queue_set.demand_mut().read_and_reset(now)
    }

    /// What the caller keeps with a request, unless it is gone, to be changed.
    pub fn payload_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.queue_set.payload_mut(id)
    }

    /// The requests and queues of the level.
    #[inline]
    pub fn queue_set(&self) -> &QueueSet<T> {
        &self.queue_set
    }

    /// The observer of the level.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer of the level, to be changed.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
}
