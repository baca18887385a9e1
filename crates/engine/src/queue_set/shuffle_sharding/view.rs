//! Queries about this discipline: its queues and its virtual time, for metrics, dumps and dashboards.

use super::super::{QueueSet, RequestView};
use super::{SERVICE_TIME_GUESS, ShuffleSharding};
use crate::SeatSeconds;

/// What has happened since the queue set was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

// === impl QueueSet ===

impl<T> QueueSet<T, ShuffleSharding> {
    /// How many requests may wait in one queue; kept from before while there are no queues.
    pub fn queue_length_limit(&self) -> i64 {
        self.discipline.queue_length_limit
    }

    /// The progress as of the last event.
    pub fn r(&self) -> SeatSeconds {
        self.discipline.meter.r()
    }

    /// The number of the queue that was last dispatched from, or -1 (FQ-36).
    pub fn robin(&self) -> i64 {
        self.discipline.robin
    }

    /// How many requests have been given a queue, those rejected afterwards included.
    pub fn placed(&self) -> u64 {
        self.discipline.placement.placed()
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        let (last_dispatch_r, last_dispatch_s) = self.discipline.meter.last_start;
        let super::super::Totals { dispatched, rejected, cancelled } = self.totals;
        Counters { dispatched, rejected, cancelled, last_dispatch_r, last_dispatch_s }
    }

    /// The queues, by number. Nothing here depends on how many requests wait.
    pub fn queues(&self) -> impl ExactSizeIterator<Item = QueueView> {
        let ShuffleSharding { order, waiting_work, queues, .. } = &self.discipline;
        order.iter().zip(waiting_work).map(|(&slot, &work_waiting)| {
            let queue = &queues[slot as usize];
            QueueView {
                next_r: queue.reading.next_r,
                waiting: queue.waiting as usize,
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
        let ShuffleSharding { order, queues, .. } = &self.discipline;
        order.get(queue).map_or(0, |&slot| queues[slot as usize].waiting as usize)
    }

    /// What the queues in which something waits read; `None` if nothing waits.
    #[expect(clippy::cast_precision_loss, reason = "FQ-2 asks for binary64")]
    pub fn reading_bounds(&self) -> Option<ReadingBounds> {
        let ShuffleSharding { order, queues, .. } = &self.discipline;
        let waiting = order.iter().map(|&slot| &queues[slot as usize]).filter(|queue| queue.waiting > 0);
        let readings = waiting.map(|queue| {
            let discount = SeatSeconds::of(queue.seats_in_use as f64, SERVICE_TIME_GUESS);
            let (plain, discounted) = (queue.reading.next_r, queue.reading.next_r - discount);
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
        let ShuffleSharding { order, queues, .. } = &self.discipline;
        let line = order.get(queue).map(|&slot| &queues[slot as usize].line);
        let slots = line.into_iter().flat_map(|line| line.slots(&self.requests));
        slots.filter_map(|slot| self.request(self.requests.id_of(slot)?))
    }
}
