//! Queries: the state of a queue set, for metrics, dumps and dashboards. They change nothing, the progress included.

use super::requests::{Request, Stage};
use super::{Mode, Phase, QueueSet, RequestId, SERVICE_TIME_GUESS};
use crate::time::Instant;
use crate::{SeatSeconds, WorkEstimate};

/// What has happened since the queue set was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests that were started.
    pub dispatched: u64,
    /// Requests that were turned away, those that gave up waiting included.
    pub rejected: u64,
    /// Requests that gave up waiting.
    pub cancelled: u64,
    /// The progress at the last start (FQ-26).
    pub last_dispatch_r: SeatSeconds,
    /// The reading of the queue that was last started from, before it was charged (FQ-26).
    pub last_dispatch_s: SeatSeconds,
}

/// The least and the most that the queues in which something waits read (FQ-26).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingBounds {
    /// Of the progress at which the oldest request would start.
    pub next_r: (SeatSeconds, SeatSeconds),
    /// Of the same, less the guessed work of what the queue has running; below zero it is huge.
    pub discounted: (SeatSeconds, SeatSeconds),
}

/// One queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// One request.
#[derive(Debug, Clone, Copy)]
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

// === impl QueueSet ===

impl<T> QueueSet<T> {
    /// What happens to requests that find no seat.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How many seats may be in use at a time.
    #[inline]
    pub fn concurrency_limit(&self) -> i64 {
        self.limit
    }

    /// How many requests may wait in one queue; kept from before while there are no queues.
    pub fn queue_length_limit(&self) -> i64 {
        self.queue_length_limit
    }

    /// How many requests wait.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many requests are executing; lingering ones are not.
    #[inline]
    pub fn executing(&self) -> usize {
        self.executing
    }

    /// The seats of executing and lingering requests.
    #[inline]
    pub fn seats_in_use(&self) -> i64 {
        self.seats_in_use
    }

    /// The seats that waiting requests ask for, with the surplus of FQ-24.
    #[inline]
    pub fn seats_waiting(&self) -> i64 {
        self.seats_waiting
    }

    /// Whether nothing waits and nothing executes (FQ-34).
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0
    }

    /// The progress as of the last event.
    pub fn r(&self) -> SeatSeconds {
        self.progress.r
    }

    /// The number of the queue that was last dispatched from, or -1 (FQ-36).
    pub fn robin(&self) -> i64 {
        self.robin
    }

    /// How many requests have been given a queue, those turned away afterwards included.
    pub fn placed(&self) -> u64 {
        self.placement.placed()
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The queues, by number. Nothing here depends on how many requests wait.
    pub fn queues(&self) -> impl ExactSizeIterator<Item = QueueView> {
        self.order.iter().zip(&self.waiting_work).map(|(&slot, &work_waiting)| {
            let queue = &self.queues[slot as usize];
            QueueView {
                next_r: queue.next_r,
                waiting: queue.line.len(),
                executing: queue.executing as usize,
                seats_in_use: queue.seats_in_use,
                initial_seats_waiting: queue.initial_seats_waiting,
                max_seats_waiting: queue.seats_waiting,
                work_waiting,
            }
        })
    }

    /// How many requests wait in the queue of that number.
    #[inline]
    pub fn queue_length(&self, queue: usize) -> usize {
        self.order.get(queue).map_or(0, |&slot| self.queues[slot as usize].line.len())
    }

    /// What the queues in which something waits read; `None` if nothing waits.
    #[expect(clippy::cast_precision_loss, reason = "FQ-2 asks for binary64")]
    pub fn reading_bounds(&self) -> Option<ReadingBounds> {
        let waiting = self.order.iter().map(|&slot| &self.queues[slot as usize]).filter(|queue| !queue.line.is_empty());
        let readings = waiting.map(|queue| {
            let discount = SeatSeconds::of(queue.seats_in_use as f64, SERVICE_TIME_GUESS);
            let (plain, discounted) = (queue.next_r, queue.next_r - discount);
            ReadingBounds { next_r: (plain, plain), discounted: (discounted, discounted) }
        });
        let wider = |one: (SeatSeconds, SeatSeconds), other: (SeatSeconds, SeatSeconds)| {
            (one.0.min(other.0), one.1.max(other.1))
        };
        readings.reduce(|one, other| ReadingBounds {
            next_r: wider(one.next_r, other.next_r),
            discounted: wider(one.discounted, other.discounted),
        })
    }

    /// The requests that wait in the queue of that number, oldest first.
    pub fn waiting_in(&self, queue: usize) -> impl Iterator<Item = RequestView<'_, T>> {
        let line = self.order.get(queue).map(|&slot| &self.queues[slot as usize].line);
        line.into_iter()
            .flat_map(|line| line.slots(&self.requests))
            .filter_map(|slot| self.requests.in_slot(slot).map(|(id, request)| self.view(id, request)))
    }

    /// All requests, in no order.
    pub fn requests(&self) -> impl Iterator<Item = RequestView<'_, T>> {
        self.requests.iter().map(|(id, request)| self.view(id, request))
    }

    /// One request, unless it is gone.
    #[inline]
    pub fn request(&self, id: RequestId) -> Option<RequestView<'_, T>> {
        self.requests.get(id).map(|request| self.view(id, request))
    }

    /// What the caller keeps with a request, unless it is gone, to be changed.
    pub fn payload_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.requests.get_mut(id).map(|request| &mut request.payload)
    }

    #[inline]
    fn view<'a>(&'a self, id: RequestId, request: &'a Request<T>) -> RequestView<'a, T> {
        let queue = self.queues.get(request.queue as usize).map(|queue| queue.index as usize);
        RequestView {
            id,
            phase: request.stage.phase(),
            queue: queue.filter(|&index| index < self.order.len()),
            work: request.work,
            arrived: request.arrived,
            started: match request.stage {
                Stage::Waiting(_) => None,
                Stage::Executing { started } | Stage::Lingering { started } => Some(started),
            },
            payload: &request.payload,
        }
    }
}
