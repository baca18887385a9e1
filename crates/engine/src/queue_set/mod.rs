//! The queue set of one priority level: which request runs, which waits, and which is rejected (section 5 of the
//! specification).
//!
//! # How it is called
//!
//! Events go in, each with its time, in the order in which they happen: [`arrive`](QueueSet::arrive), then for a
//! request that waits perhaps [`cancel`](QueueSet::cancel), for one that runs [`finish`](QueueSet::finish), and for one
//! that lingers after that [`release`](QueueSet::release); [`configure`](QueueSet::configure) at any time. Effects come
//! out through [`Effects`]: the requests that start because of an event. Queries look at the state without changing
//! it. An event that names a request which is gone, or which is in another phase, changes nothing. A
//! [`Level`](crate::level::Level) has timers too, and calls `cancel` and `release` when their time has come.
//!
//! # Of what it consists
//!
//! The queue set counts seats and keeps the requests; its discipline decides who of those that wait is next. The one of
//! Kubernetes deals shuffle-sharded queues to flows; the other one gives each flow a queue of its own. The configuration names one of
//! them ([`QueuingDiscipline`]), and may name the other one under load.
//!
//! # What it costs
//!
//! This is what shuffle-sharded queues cost; a queue for each flow takes the logarithm of the number of waiting flows. An arrival looks at
//! the hand of queues that is dealt to it; everything else takes the logarithm of the number of
//! queues at most. The sums that the progress depends on are kept up to date as they change. The steps that take time
//! in proportion to the queues are the rare ones: a change of their number, the winding back of the progress meter, and
//! the end of a request that leaves a queue empty while there are more queues than wanted. That queue goes, and those
//! behind it move up: a level that is told under load to have fewer queues pays for each one that goes, once. An event
//! other than an arrival allocates only to add queues. With more than 4096 queues, only those in use are kept, in trees that
//! allocate now and then.
//!
//! ```
//! use evenkeel_engine::WorkEstimate;
//! use evenkeel_engine::queue_set::{Arrival, Finish, Mode, QueueSet, QueueSetConfig};
//! use evenkeel_engine::time::{Instant, MILLISECOND};
//!
//! let at = |ms: i64| Instant::from_nanos(ms * MILLISECOND);
//! let config = QueueSetConfig { mode: Mode::queue(64, 8, 50)?, concurrency_limit: 1 };
//! let mut set = QueueSet::new(config, at(0));
//! let mut started = Vec::new();
//! let mut note = |_id, name: &mut &'static str| started.push(*name);
//!
//! let Arrival::Started { id: first, .. } = set.arrive(at(0), 7, WorkEstimate::ONE_SEAT, "first", &mut note) else { panic!() };
//! assert!(matches!(set.arrive(at(1), 8, WorkEstimate::ONE_SEAT, "second", &mut note), Arrival::Waiting { .. }));
//! assert_eq!(set.finish(at(5), first, &mut note), Some(Finish::Released("first")));
//! assert_eq!(started, ["first", "second"]);
//! # Ok::<(), evenkeel_engine::deal::InvalidDeal>(())
//! ```

mod arrival;
mod completion;
mod config;
mod core;
mod discipline;
mod dispatch;
mod effects;
mod flow_limits;
mod grants;
mod outlook;
mod per_flow;
mod reconfiguration;
mod requests;
mod running;
mod seats;
mod shuffle_sharding;
mod turn_order;
mod view;

pub use config::{Mode, QueueSetConfig, Queuing, QueuingDiscipline};
pub use effects::{Arrival, Effects, Ended, Finish, NoEffects, Rejection};
pub use flow_limits::{FlowLimits, NEWCOMER_WAIT, Recipient};
pub use grants::Head;
pub use outlook::Outlook;
pub use requests::{Phase, RequestId};
pub use shuffle_sharding::SERVICE_TIME_GUESS;
pub use view::{ActiveFlowView, Counters, QueueView, ReadingBounds, RequestView};

use core::Core;
use discipline::Discipline;
use flow_limits::Room;
use per_flow::PerFlow;
use shuffle_sharding::ShuffleSharding;

use crate::borrowing::DemandIntegrator;
use crate::time::Instant;
use crate::{Flow, WorkEstimate};

/// The queue set of one priority level. `T` is what the caller keeps with each request.
#[derive(Debug)]
pub struct QueueSet<T> {
    core: Core<T>,
    discipline: Discipline,
}

// === impl QueueSet ===

impl<T> QueueSet<T> {
    /// A queue set in which nothing has happened yet.
    pub fn new(config: QueueSetConfig, now: Instant) -> Self {
        let discipline = match config.mode {
            Mode::Queue(queuing) => queuing.discipline,
            Mode::Exempt | Mode::Reject | Mode::Closed => QueuingDiscipline::ShuffleSharded,
        };
        let mut set = Self { core: Core::new(config, now), discipline: Discipline::new(discipline, now) };
        set.install(now, config.mode);
        set
    }

    /// The demand for seats over time, which borrowing between levels is decided by.
    pub fn demand_mut(&mut self) -> &mut DemandIntegrator {
        &mut self.core.demand
    }

    /// A request of a flow arrives. Exempt levels, levels without queues and levels with one queue ignore the flow.
    #[inline]
    pub fn arrive<'a>(
        &mut self,
        now: Instant,
        flow: impl Into<Flow<'a>>,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        let core = &mut self.core;
        match &mut self.discipline {
            Discipline::ShuffleSharded(order) => core.arrive(order, now, flow.into(), work, payload, effects),
            Discipline::PerFlow(order) => arrive_per_flow(order, core, now, flow.into(), work, payload, effects),
        }
    }

    /// A request that takes no seat arrives: it starts at once, in front of all that wait, and nobody ever waits for its end.
    /// Only a level that accepts no requests rejects it.
    pub fn start_seatless(&mut self, now: Instant, payload: T, effects: &mut impl Effects<T>) -> Arrival<T> {
        self.core.start_seatless(now, payload, effects)
    }

    /// The handler of an executing request has returned (FQ-30, FQ-31). `None` if the request is not executing.
    #[inline]
    pub fn finish(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<Finish<T>> {
        match &mut self.discipline {
            Discipline::ShuffleSharded(order) => self.core.finish(order, now, id, effects),
            Discipline::PerFlow(order) => finish_per_flow(order, &mut self.core, now, id, effects),
        }
    }

    /// A lingering request gives its seats back (FQ-32). `None` if the request is not lingering.
    pub fn release(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<T> {
        match &mut self.discipline {
            Discipline::ShuffleSharded(order) => self.core.release(order, now, id, effects),
            Discipline::PerFlow(order) => self.core.release(&mut **order, now, id, effects),
        }
    }

    /// A waiting request gives up (FQ-28). `None` if the request is not waiting: it has been started meanwhile, say.
    pub fn cancel(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<T> {
        match &mut self.discipline {
            Discipline::ShuffleSharded(order) => self.core.cancel(order, now, id, effects),
            Discipline::PerFlow(order) => self.core.cancel(&mut **order, now, id, effects),
        }
    }

    /// Brings the virtual time up to now.
    fn advance(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        match &mut self.discipline {
            Discipline::ShuffleSharded(order) => self.core.advance(order, now, effects),
            Discipline::PerFlow(order) => self.core.advance(&mut **order, now, effects),
        }
    }

    /// Starts waiting requests while there are seats for the one that is next.
    fn dispatch(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        match &mut self.discipline {
            Discipline::ShuffleSharded(order) => self.core.dispatch(order, now, effects),
            Discipline::PerFlow(order) => self.core.dispatch(&mut **order, now, effects),
        }
    }
}

/// A function of its own, so that the code of the other discipline is as fast as without this one.
#[inline(never)]
fn arrive_per_flow<T>(
    order: &mut PerFlow,
    core: &mut Core<T>,
    now: Instant,
    flow: Flow<'_>,
    work: WorkEstimate,
    payload: T,
    effects: &mut impl Effects<T>,
) -> Arrival<T> {
    core.arrive(order, now, flow, work, payload, effects)
}

/// The end of a request, in a function of its own for the same reason.
#[inline(never)]
fn finish_per_flow<T>(
    order: &mut PerFlow,
    core: &mut Core<T>,
    now: Instant,
    id: RequestId,
    effects: &mut impl Effects<T>,
) -> Option<Finish<T>> {
    core.finish(order, now, id, effects)
}
