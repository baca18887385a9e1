//! Queries: the state of a queue set, whatever its discipline. They change nothing, the virtual time included.

use super::core::Totals;
use super::discipline::Discipline;
use super::requests::Request;
use super::{Mode, Phase, QueueSet, RequestId};
use crate::time::Instant;
use crate::{SeatSeconds, WorkEstimate};

/// One request.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RequestView<'a, T> {
    /// The request.
    pub id: RequestId,
    /// What it is doing.
    pub phase: Phase,
    /// The number of its queue, if it came through one that is still there.
    pub queue: Option<usize>,
    /// How many seats it takes, and for how long it lingers.
    pub work: WorkEstimate,
    /// When it arrived.
    pub arrived: Instant,
    /// When it started, if it has.
    pub started: Option<Instant>,
    /// What the caller keeps with it.
    pub payload: &'a T,
}

/// Counters of a queue set since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Requests that were started.
    pub dispatched: u64,
    /// Requests that were rejected, those that gave up waiting included.
    pub rejected: u64,
    /// Requests that gave up waiting.
    pub cancelled: u64,
    /// The progress at the last start (FQ-26).
    pub last_dispatch_r: SeatSeconds,
    /// The reading of the queue that was last started from, before it was charged (FQ-26).
    pub last_dispatch_s: SeatSeconds,
}

/// The least and the most that the queues in which something waits read (FQ-26).
///
/// Not `#[non_exhaustive]`: it is two pairs of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingBounds {
    /// The bounds of the progress at which the oldest request of a queue would start.
    pub next_r: (SeatSeconds, SeatSeconds),
    /// The bounds of the same, less the guessed work of what the queue has running; a value below zero wraps and is huge.
    pub discounted: (SeatSeconds, SeatSeconds),
}

/// One queue.
///
/// Not `#[non_exhaustive]`: a model of a queue set can be compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueView {
    /// The progress at which its oldest request would start.
    pub next_r: SeatSeconds,
    /// How many requests wait in it.
    pub waiting: usize,
    /// How many of its requests are executing.
    pub executing: usize,
    /// The seats of its executing and lingering requests.
    pub seats_in_use: i64,
    /// The seats that its waiting requests take at first.
    pub initial_seats_waiting: i64,
    /// The most seats that its waiting requests take.
    pub max_seats_waiting: i64,
    /// The work that waits in it.
    pub work_waiting: SeatSeconds,
}

/// A flow with waiting or running requests, where each flow has a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveFlowView {
    /// What tells it from other flows.
    pub hash: u64,
    /// Its weight.
    pub weight: u16,
    /// The seats that its requests hold.
    pub seats_in_use: u64,
    /// The seats that its waiting requests ask for.
    pub seats_waiting: u64,
}

// === impl QueueSet ===

impl<T> QueueSet<T> {
    /// What happens to requests that find no seat.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.core.mode
    }

    /// How many seats may be in use at a time.
    #[inline]
    pub fn concurrency_limit(&self) -> i64 {
        self.core.seats.limit
    }

    /// How many requests wait.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.core.waiting
    }

    /// How many requests have been started that had waited.
    #[inline]
    pub fn dispatched_late(&self) -> u64 {
        self.core.totals.dispatched_late
    }

    /// How many requests are executing; lingering ones are not.
    #[inline]
    pub fn executing(&self) -> usize {
        self.core.seats.executing
    }

    /// How many of the executing requests [take no seat](Self::start_seatless).
    #[inline]
    pub fn seatless(&self) -> usize {
        self.core.seats.seatless
    }

    /// The seats of executing and lingering requests.
    #[inline]
    pub fn seats_in_use(&self) -> i64 {
        self.core.seats.in_use
    }

    /// The seats that waiting requests ask for, with the surplus of FQ-24.
    #[inline]
    pub fn seats_waiting(&self) -> i64 {
        self.core.seats_waiting
    }

    /// Whether nothing waits and nothing executes (FQ-34).
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.core.waiting == 0 && self.core.seats.executing == 0
    }

    /// All requests, in no order.
    pub fn requests(&self) -> impl Iterator<Item = RequestView<'_, T>> {
        self.core.requests.iter().filter_map(|(id, request)| self.view(id, request))
    }

    /// One request, unless it is gone.
    #[inline]
    pub fn request(&self, id: RequestId) -> Option<RequestView<'_, T>> {
        self.view(id, self.core.requests.get(id)?)
    }

    /// What a request is doing, unless it is gone.
    #[inline]
    pub fn phase(&self, id: RequestId) -> Option<Phase> {
        self.core.requests.get(id)?.phase()
    }

    /// When a request arrived and when it started, unless it is gone or still waits.
    #[inline]
    pub fn start(&self, id: RequestId) -> Option<(Instant, Instant)> {
        let request = self.core.requests.get(id)?;
        Some((request.arrived, request.started()?))
    }

    /// What the caller keeps with a request, unless it is gone, to be changed.
    pub fn payload_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.core.requests.get_mut(id)?.payload_mut()
    }

    /// How many requests may wait in one queue, by the configuration; kept from before while there are no queues.
    pub fn queue_length_limit(&self) -> i64 {
        self.discipline.inspect().queue_length_limit()
    }

    /// The id that the next request gets, if it is not rejected.
    pub(crate) fn next_id(&mut self) -> RequestId {
        self.core.requests.next_id()
    }

    /// The virtual time as of the last event: the progress of shuffle-sharded queues, or the least that a waiting flow has
    /// used.
    pub fn virtual_time(&self) -> SeatSeconds {
        self.discipline.inspect().virtual_time()
    }

    /// The number of the shuffle-sharded queue that was last dispatched from, or -1 (FQ-36); `None` if each flow has a queue.
    pub fn robin(&self) -> Option<i64> {
        match &self.discipline {
            Discipline::ShuffleSharded(order) => Some(order.robin()),
            Discipline::PerFlow(_) => None,
        }
    }

    /// Keeps an index of the shuffle-sharded queues in use, as it does for many queues, instead of a table of all: so that tests can
    /// compare the two. It decides the same.
    #[doc(hidden)]
    pub fn index_used_queues(&mut self) {
        if let Discipline::ShuffleSharded(order) = &mut self.discipline {
            order.index_used_queues();
        }
    }

    /// How many requests have been given a queue, those rejected afterwards included.
    pub fn placed(&self) -> u64 {
        self.discipline.inspect().placed()
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        let (last_dispatch_r, last_dispatch_s) = self.discipline.inspect().last_start();
        let Totals { dispatched, rejected, cancelled, dispatched_late: _ } = self.core.totals;
        Counters { dispatched, rejected, cancelled, last_dispatch_r, last_dispatch_s }
    }

    /// The queues, by number. Nothing here depends on how many requests wait. Where each flow has a queue, a number that no
    /// flow has at present shows as an empty queue.
    pub fn queues(&self) -> impl ExactSizeIterator<Item = QueueView> {
        let queues = self.discipline.inspect();
        (0..queues.queue_count()).map(|number| queues.queue(number))
    }

    /// The flows of which something waits or runs, in no order; none where flows share queues.
    pub fn active_flows(&self) -> impl Iterator<Item = ActiveFlowView> {
        let per_flow = match &self.discipline {
            Discipline::PerFlow(order) => Some(order),
            Discipline::ShuffleSharded(_) => None,
        };
        per_flow.into_iter().flat_map(|order| order.active_flows())
    }

    /// How many requests wait in the queue of that number.
    #[inline]
    pub fn queue_length(&self, queue: usize) -> usize {
        self.discipline.queue_length(queue)
    }

    /// What the queues in which something waits read; `None` if nothing waits.
    pub fn reading_bounds(&self) -> Option<ReadingBounds> {
        self.discipline.inspect().reading_bounds()
    }

    /// The seats that are kept for newcomers at present (PF-10): flows that hold seats, and whose requests are not known to be
    /// quick, do not take them. None while such flows would not take them.
    pub fn kept_seats(&self) -> i64 {
        self.discipline.inspect().kept_seats()
    }

    /// The requests that wait in the queue of that number, oldest first.
    pub fn waiting_in(&self, queue: usize) -> impl Iterator<Item = RequestView<'_, T>> {
        let (queues, links) = (self.discipline.inspect(), self.core.requests.all_links());
        let slots = std::iter::successors(queues.first_in(queue), |&slot| queues.behind(slot, links));
        slots.filter_map(|slot| self.request(self.core.requests.id_of(slot)?))
    }

    #[inline]
    fn view<'a>(&'a self, id: RequestId, request: &'a Request<T>) -> Option<RequestView<'a, T>> {
        Some(RequestView {
            id,
            phase: request.phase()?,
            queue: self.discipline.number_of(request.queue),
            work: request.work,
            arrived: request.arrived,
            started: request.started(),
            payload: request.payload()?,
        })
    }
}
