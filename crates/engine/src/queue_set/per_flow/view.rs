//! Queries about this discipline: its flows and its virtual time, for metrics, dumps and dashboards.

use super::super::discipline::Look;
use super::super::requests::{NO_QUEUE, NO_SLOT, Requests};
use super::super::{QueueView, ReadingBounds};
use super::PerFlow;
use crate::SeatSeconds;

/// How many units of a key make a unit of seat-seconds.
const KEYS_PER_UNIT: i64 = 160;

// === impl PerFlow ===

impl<K: Copy + Default + std::fmt::Debug> Look for PerFlow<K> {
    type Ticket = K;

    fn queue_length_limit(&self) -> i64 {
        self.queue_length_limit
    }

    fn r(&self) -> SeatSeconds {
        seat_seconds(self.virtual_time)
    }

    fn placed(&self) -> u64 {
        self.placed
    }

    fn last_start(&self) -> (SeatSeconds, SeatSeconds) {
        (seat_seconds(self.last_start.0), seat_seconds(self.last_start.1))
    }

    fn queue_count(&self) -> usize {
        self.flows.numbers_end()
    }

    fn queue(&self, number: usize) -> QueueView {
        let Some(flow) = self.flows.find(number) else { return QueueView::default() };
        let seats_waiting = i64::try_from(flow.seats_waiting).unwrap_or(i64::MAX);
        let expected = flow.estimate.saturating_mul(u64::from(flow.waiting)) / 10;
        QueueView {
            next_r: seat_seconds(flow.key(self.now)),
            waiting: flow.waiting as usize,
            executing: flow.running as usize,
            seats_in_use: i64::try_from(flow.seats).unwrap_or(i64::MAX),
            initial_seats_waiting: seats_waiting,
            max_seats_waiting: seats_waiting,
            work_waiting: SeatSeconds::from_units(expected),
        }
    }

    fn queue_length(&self, number: usize) -> usize {
        self.flows.waiting_of(number)
    }

    fn first_in(&self, number: usize) -> Option<u32> {
        self.flows.find(number).map(|flow| flow.first).filter(|&first| first != NO_SLOT)
    }

    fn behind<T>(&self, slot: u32, _requests: &Requests<T, K>) -> Option<u32> {
        self.waiting.behind(slot)
    }

    #[inline]
    fn number_of(&self, queue: u32) -> Option<usize> {
        (queue != NO_QUEUE).then_some(queue as usize)
    }

    fn reading_bounds(&self) -> Option<ReadingBounds> {
        let keys = self.ready.flows().map(|queue| seat_seconds(self.flows.get(queue).key(self.now)));
        let bounds = keys.map(|key| (key, key)).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
        Some(ReadingBounds { next_r: bounds, discounted: bounds })
    }
}

/// A key of weight 1 as an amount. What is behind the point from which keys are counted shows as nothing.
fn seat_seconds(key: i64) -> SeatSeconds {
    SeatSeconds::from_units(u64::try_from(key / KEYS_PER_UNIT).unwrap_or(0))
}
