//! The queue set of one priority level: which request runs, which waits, and which is turned away (section 5 of the
//! specification).
//!
//! # How it is called
//!
//! Events go in, each with its time, in the order in which they happen: [`arrive`](QueueSet::arrive), then for a
//! request that waits perhaps [`cancel`](QueueSet::cancel), for one that runs [`finish`](QueueSet::finish), and for one
//! that lingers after that [`release`](QueueSet::release); [`configure`](QueueSet::configure) at any time. Effects come
//! out through [`Effects`]: the requests that start because of an event. Queries look at the state without changing
//! it. An event that names a request which is gone, or which is in another phase, changes nothing.
//!
//! # What it costs
//!
//! An arrival looks at the hand of queues that is dealt to it; everything else takes the logarithm of the number of
//! queues at most. The sums that the progress depends on are kept up to date as they change. The steps that take time
//! in proportion to the queues are the rare ones: a change of their number, the winding back of the progress meter, and
//! the end of a request that leaves a queue empty while there are more queues than wanted. That queue goes, and those
//! behind it move up: a level that is told under load to have fewer queues pays for each one that goes, once. An event other than an arrival allocates only to add queues.
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
mod dispatch;
mod effects;
mod line;
mod placement;
mod progress;
mod queue;
mod ready;
mod reconfiguration;
mod requests;
mod view;

pub use config::{Mode, QueueSetConfig, Queuing};
pub use effects::{Arrival, Effects, Finish, NoEffects, Rejection};
pub use requests::{Phase, RequestId};
pub use view::{Counters, QueueView, ReadingBounds, RequestView};

use placement::Placement;
use progress::Progress;
use queue::Queue;
use ready::Ready;
use requests::Requests;

use crate::SeatSeconds;
use crate::borrowing::DemandIntegrator;
use crate::time::{Instant, MILLISECOND, Nanos};

/// What every request is taken to need until it has finished (FQ-5).
pub const SERVICE_TIME_GUESS: Nanos = 3 * MILLISECOND;

/// The queue set of one priority level. `T` is what the caller keeps with each request.
#[derive(Debug)]
pub struct QueueSet<T> {
    mode: Mode,
    /// Kept while there are no queues (FQ-37).
    queue_length_limit: i64,
    limit: i64,
    progress: Progress,
    requests: Requests<T>,
    /// Slots of queues. A slot outlives its queue's place among the queues while requests of it linger.
    queues: Vec<Queue>,
    free_queues: Vec<u32>,
    /// The slot of each queue, by its number.
    order: Vec<u32>,
    /// The work that waits in each queue, by its number: all that placing a request looks at.
    waiting_work: Vec<SeatSeconds>,
    ready: Ready,
    placement: Placement,
    /// The number of the queue that was last dispatched from; -1 once that queue was the first and is gone (FQ-36).
    robin: i64,
    waiting: usize,
    executing: usize,
    seats_in_use: i64,
    /// Too large for ever after a request was narrowed at its start (FQ-24).
    seats_waiting: i64,
    demand: DemandIntegrator,
    counters: Counters,
}

// === impl QueueSet ===

impl<T> QueueSet<T> {
    /// A queue set in which nothing has happened yet.
    pub fn new(config: QueueSetConfig, now: Instant) -> Self {
        let mut set = Self {
            mode: Mode::Reject,
            queue_length_limit: 0,
            limit: 0,
            progress: Progress::new(now),
            requests: Requests::new(),
            queues: Vec::new(),
            free_queues: Vec::new(),
            order: Vec::new(),
            waiting_work: Vec::new(),
            ready: Ready::new(1),
            placement: Placement::new(),
            robin: 0,
            waiting: 0,
            executing: 0,
            seats_in_use: 0,
            seats_waiting: 0,
            demand: DemandIntegrator::new(now),
            counters: Counters::default(),
        };
        set.install(config);
        set
    }

    /// The demand for seats through time: what the borrowing between levels goes by.
    pub fn demand_mut(&mut self) -> &mut DemandIntegrator {
        &mut self.demand
    }

    /// Tells the demand what is in use and what is waited for (FQ-39).
    #[inline]
    fn signal_demand(&mut self, now: Instant) {
        self.demand.set(now, self.seats_in_use + self.seats_waiting);
    }

    /// Takes over what changed the head or the charge of a queue.
    #[inline]
    fn update_ready(&mut self, slot: u32) {
        let queue = &self.queues[slot as usize];
        self.ready.set(queue.index as usize, queue.finish());
    }
}
