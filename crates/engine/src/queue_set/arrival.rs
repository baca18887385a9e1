//! A request arrives (FQ-14 to FQ-19).

use super::core::Core;
use super::requests::{NO_QUEUE, Request, Run, SEATLESS, Stage};
use super::turn_order::{QueueChoice, TurnOrder};
use super::{Arrival, Effects, Mode, Phase, Rejection, RequestId};
use crate::time::Instant;
use crate::{Flow, WorkEstimate};

impl<T> Core<T> {
    /// A request of a flow arrives: see [`QueueSet::arrive`](super::QueueSet::arrive).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "so that it costs the same wherever the discipline is chosen")]
    pub(super) fn arrive(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        flow: Flow<'_>,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        self.advance(order, now, effects);
        let queue = match order.place(flow, work, self.seats.are_taken()) {
            QueueChoice::Queue(queue) => queue,
            QueueChoice::Instead { queue, slot } => {
                self.displace(order, now, slot, effects);
                queue
            }
            QueueChoice::Full(queue) => {
                self.totals.rejected += 1;
                return Arrival::Rejected { reason: Rejection::QueueFull, queue: order.number_of(queue), payload };
            }
            QueueChoice::Nowhere => return self.arrive_without_queues(now, work, payload, effects),
        };
        self.arrive_at_queue(order, now, flow, queue, work, payload, effects)
    }

    fn arrive_without_queues(
        &mut self,
        now: Instant,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        if self.mode == Mode::Closed || !self.seats.accommodate(self.mode, work.max_seats()) {
            self.totals.rejected += 1;
            return Arrival::Rejected { reason: Rejection::ConcurrencyLimit, queue: None, payload };
        }
        let id = self.insert_started(now, NO_QUEUE, work, payload, effects);
        self.signal_demand(now);
        Arrival::Started { id, queue: None }
    }

    /// A request that takes no seat starts at once, whatever waits: see
    /// [`QueueSet::start_seatless`](super::QueueSet::start_seatless).
    pub(super) fn start_seatless(&mut self, now: Instant, payload: T, effects: &mut impl Effects<T>) -> Arrival<T> {
        if self.mode == Mode::Closed {
            self.totals.rejected += 1;
            return Arrival::Rejected { reason: Rejection::ConcurrencyLimit, queue: None, payload };
        }
        self.seats.seatless += 1;
        let id = self.insert_started(now, SEATLESS, WorkEstimate::NO_SEAT, payload, effects);
        Arrival::Started { id, queue: None }
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "what arrives, and what it changes")]
    fn arrive_at_queue(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        flow: Flow<'_>,
        queue: u32,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        let number = order.number_of(queue);
        if self.waiting == 0
            && !self.seats.are_taken()
            && self.seats.accommodate(self.mode, work.max_seats())
            && order.would_choose(queue, work, self.seats.room())
        {
            let id = self.pass_through(order, now, queue, work, payload, effects);
            return Arrival::Started { id, queue: number };
        }
        let id = self.enqueue(order, now, flow, queue, work, payload);
        self.dispatch(order, now, effects);
        match self.requests.get(id).and_then(Request::phase) {
            Some(Phase::Waiting) | None => Arrival::Waiting { id, queue: number.unwrap_or_default() },
            Some(_) => Arrival::Started { id, queue: number },
        }
    }

    /// Puts a request into a queue (FQ-19).
    fn enqueue(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        flow: Flow<'_>,
        queue: u32,
        work: WorkEstimate,
        payload: T,
    ) -> RequestId {
        let arrival_r = order.enqueue(queue, work);
        let stage = self.requests.begin_waiting(arrival_r, flow.hash(), flow.weight());
        let id = self.requests.insert(stage, queue, work, now, payload);
        order.push(queue, id.slot_number(), &mut self.requests);
        self.waiting += 1;
        self.seats_waiting += i64::from(work.max_seats());
        self.signal_demand(now);
        id
    }

    /// Does what [`enqueue`](Self::enqueue) and a dispatch do together when no other request waits, without the way through the
    /// queue.
    fn pass_through(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        queue: u32,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> RequestId {
        self.demand.set(now, self.seats.in_use + self.seats_waiting + i64::from(work.max_seats()));
        let narrowed = self.seats.fit(work);
        self.seats_waiting += i64::from(work.max_seats()) - i64::from(narrowed.max_seats());
        order.pass(queue, work, narrowed);
        self.insert_started(now, queue, narrowed, payload, effects)
    }

    /// Takes in a request that runs at once.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `Requests::insert`")]
    fn insert_started(
        &mut self,
        now: Instant,
        queue: u32,
        work: WorkEstimate,
        mut payload: T,
        effects: &mut impl Effects<T>,
    ) -> RequestId {
        effects.started(self.requests.next_id(), &mut payload);
        self.seats.take(work);
        self.totals.dispatched += 1;
        self.requests.insert(Stage::Executing(Run::starting(now)), queue, work, now, payload)
    }
}
