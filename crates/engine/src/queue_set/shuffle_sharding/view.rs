//! Queries about this discipline: its queues and its virtual time, for metrics, dumps and dashboards.

use super::super::requests::{Links, NO_SLOT};
use super::super::turn_order::InspectQueues;
use super::super::{Outlook, QueueView, ReadingBounds};
use super::queue::Queue;
use super::{DETACHED, SERVICE_TIME_GUESS, ShuffleSharding};
use crate::{Flow, SeatSeconds};

// === impl ShuffleSharding ===

impl ShuffleSharding {
    /// The number of the queue that was last dispatched from, or -1 (FQ-36).
    pub(in crate::queue_set) fn robin(&self) -> i64 {
        self.robin
    }

    /// What a request of this flow would find; `None` if there are no queues.
    ///
    /// Queues take turns, and each turn moves a queue on by the service time of a request. A queue that is behind has some
    /// more turns first.
    pub(in crate::queue_set) fn outlook(&self, flow: Flow<'_>, service_seconds: f64) -> Option<Outlook> {
        let chosen = self.placement.clone().choose(flow.hash(), |number| self.numbers.waiting_work(number))?;
        let unused = Queue::new(DETACHED);
        let own = self.queue_of(chosen).unwrap_or(&unused);
        let reading = |queue: &Queue| queue.reading.next_r.as_f64();
        let r = self.meter.r().as_f64();
        let own_reading = if own.is_active() { reading(own) } else { reading(own).max(r) };
        let others = self.queues.iter().filter(|queue| queue.waiting > 0 && queue.index as usize != chosen);
        let before = |other: &Queue| {
            let behind = (own_reading - reading(other)) / service_seconds;
            (f64::from(own.waiting) + behind).ceil().clamp(0.0, f64::from(other.waiting))
        };
        Some(Outlook {
            queue: Some(chosen),
            in_queue: own.waiting as usize,
            in_queue_max: u64::try_from(self.queue_length_limit).unwrap_or(0),
            ahead: f64::from(own.waiting) + others.map(before).sum::<f64>(),
            ..Outlook::default()
        })
    }
}

impl ShuffleSharding {
    /// The queue of that number, if anything is known of it.
    fn queue_of(&self, number: usize) -> Option<&Queue> {
        self.numbers.slot(number).map(|slot| &self.queues[slot as usize])
    }
}

impl InspectQueues for ShuffleSharding {
    fn queue_length_limit(&self) -> i64 {
        self.queue_length_limit
    }

    fn virtual_time(&self) -> SeatSeconds {
        self.meter.r()
    }

    fn placed(&self) -> u64 {
        self.placement.placed()
    }

    fn last_start(&self) -> (SeatSeconds, SeatSeconds) {
        self.meter.last_start
    }

    fn queue_count(&self) -> usize {
        self.numbers.count()
    }

    fn queue(&self, number: usize) -> QueueView {
        let unused = Queue::new(DETACHED);
        let queue = self.queue_of(number).unwrap_or(&unused);
        QueueView {
            next_r: queue.reading.next_r,
            waiting: queue.waiting as usize,
            executing: queue.executing as usize,
            seats_in_use: queue.seats_in_use,
            initial_seats_waiting: queue.initial_seats_waiting,
            max_seats_waiting: queue.seats_waiting,
            work_waiting: self.numbers.waiting_work(number),
        }
    }

    #[inline]
    fn queue_length(&self, number: usize) -> usize {
        self.queue_of(number).map_or(0, |queue| queue.waiting as usize)
    }

    fn first_in(&self, number: usize) -> Option<u32> {
        self.queue_of(number)?.line.front().map(|front| front.slot)
    }

    fn behind(&self, slot: u32, links: &[Links]) -> Option<u32> {
        links.get(slot as usize).map(|links| links.next).filter(|&next| next != NO_SLOT)
    }

    #[inline]
    fn number_of(&self, queue: u32) -> Option<usize> {
        let index = self.queues.get(queue as usize)?.index;
        (index != DETACHED).then_some(index as usize)
    }

    #[expect(clippy::cast_precision_loss, reason = "FQ-2 asks for binary64")]
    fn reading_bounds(&self) -> Option<ReadingBounds> {
        let waiting = self.queues.iter().filter(|queue| queue.waiting > 0);
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
