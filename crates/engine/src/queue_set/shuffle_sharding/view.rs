//! Queries about this discipline: its queues and its virtual time, for metrics, dumps and dashboards.

use super::super::discipline::Look;
use super::super::requests::{NO_SLOT, Requests};
use super::super::{QueueSet, QueueView, ReadingBounds};
use super::{DETACHED, SERVICE_TIME_GUESS, ShuffleSharding, Ticket};
use crate::SeatSeconds;

// === impl QueueSet ===

impl<T> QueueSet<T, ShuffleSharding> {
    /// The number of the queue that was last dispatched from, or -1 (FQ-36).
    pub fn robin(&self) -> i64 {
        self.discipline.robin
    }
}

// === impl ShuffleSharding ===

impl Look for ShuffleSharding {
    type Ticket = Ticket;

    fn queue_length_limit(&self) -> i64 {
        self.queue_length_limit
    }

    fn r(&self) -> SeatSeconds {
        self.meter.r()
    }

    fn placed(&self) -> u64 {
        self.placement.placed()
    }

    fn last_start(&self) -> (SeatSeconds, SeatSeconds) {
        self.meter.last_start
    }

    fn queue_count(&self) -> usize {
        self.order.len()
    }

    fn queue(&self, number: usize) -> QueueView {
        let queue = &self.queues[self.order[number] as usize];
        QueueView {
            next_r: queue.reading.next_r,
            waiting: queue.waiting as usize,
            executing: queue.executing as usize,
            seats_in_use: queue.seats_in_use,
            initial_seats_waiting: queue.initial_seats_waiting,
            max_seats_waiting: queue.seats_waiting,
            work_waiting: self.waiting_work[number],
        }
    }

    #[inline]
    fn queue_length(&self, number: usize) -> usize {
        self.order.get(number).map_or(0, |&slot| self.queues[slot as usize].waiting as usize)
    }

    fn first_in(&self, number: usize) -> Option<u32> {
        self.queues[*self.order.get(number)? as usize].line.front().map(|front| front.slot)
    }

    fn behind<T>(&self, slot: u32, requests: &Requests<T, Ticket>) -> Option<u32> {
        requests.links(slot).map(|links| links.next).filter(|&next| next != NO_SLOT)
    }

    #[inline]
    fn number_of(&self, queue: u32) -> Option<usize> {
        let index = self.queues.get(queue as usize)?.index;
        (index != DETACHED).then_some(index as usize)
    }

    #[expect(clippy::cast_precision_loss, reason = "FQ-2 asks for binary64")]
    fn reading_bounds(&self) -> Option<ReadingBounds> {
        let Self { order, queues, .. } = self;
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
}
