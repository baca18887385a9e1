//! A request arrives (FQ-14 to FQ-19).

use super::requests::{NO_QUEUE, Stage};
use super::{Arrival, Discipline, Effects, Mode, Phase, Place, QueueSet, Rejection, RequestId};
use crate::time::Instant;
use crate::{Flow, WorkEstimate};

impl<T, D: Discipline> QueueSet<T, D> {
    /// A request of a flow arrives. Exempt levels, levels without queues and levels with one queue make nothing of the
    /// flow.
    #[inline]
    pub fn arrive<'a>(
        &mut self,
        now: Instant,
        flow: impl Into<Flow<'a>>,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        self.arrive_of(now, flow.into(), work, payload, effects)
    }

    fn arrive_of(
        &mut self,
        now: Instant,
        flow: Flow<'_>,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        self.advance(now, effects);
        match self.discipline.place(flow, work, self.seats.are_taken()) {
            Place::Queue(queue) => self.arrive_at_queue(now, queue, work, payload, effects),
            Place::Full(queue) => {
                self.totals.rejected += 1;
                Arrival::Rejected { reason: Rejection::QueueFull, queue: self.discipline.number_of(queue), payload }
            }
            Place::Instead { queue, slot } => {
                self.displace(now, slot, effects);
                self.arrive_at_queue(now, queue, work, payload, effects)
            }
            Place::Nowhere => self.arrive_without_queues(now, work, payload, effects),
        }
    }

    /// The id that the next request gets, if it is not rejected.
    pub(crate) fn next_id(&mut self) -> RequestId {
        self.requests.next_id()
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

    #[inline]
    fn arrive_at_queue(
        &mut self,
        now: Instant,
        queue: u32,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        let number = self.discipline.number_of(queue);
        if self.waiting == 0
            && !self.seats.are_taken()
            && self.seats.accommodate(self.mode, work.max_seats())
            && self.discipline.would_choose(queue, work)
        {
            let id = self.pass_through(now, queue, work, payload, effects);
            return Arrival::Started { id, queue: number };
        }
        let id = self.enqueue(now, queue, work, payload);
        self.dispatch(now, effects);
        match self.phase(id) {
            Some(Phase::Waiting) | None => Arrival::Waiting { id, queue: number.unwrap_or_default() },
            Some(_) => Arrival::Started { id, queue: number },
        }
    }

    /// Puts a request into a queue (FQ-19).
    fn enqueue(&mut self, now: Instant, queue: u32, work: WorkEstimate, payload: T) -> RequestId {
        let stage = Stage::Waiting(self.discipline.enqueue(queue, work));
        let id = self.requests.insert(stage, queue, work, now, payload);
        self.discipline.push(queue, id.slot_number(), &mut self.requests);
        self.waiting += 1;
        self.seats_waiting += i64::from(work.max_seats());
        self.signal_demand(now);
        id
    }

    /// What [`enqueue`](Self::enqueue) and a dispatch do together when nobody else waits: the same result without the
    /// way through the queue.
    fn pass_through(
        &mut self,
        now: Instant,
        queue: u32,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> RequestId {
        self.demand.set(now, self.seats.in_use + self.seats_waiting + i64::from(work.max_seats()));
        let narrowed = self.seats.fit(work);
        self.seats_waiting += i64::from(work.max_seats()) - i64::from(narrowed.max_seats());
        self.discipline.pass(queue, work, narrowed);
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
        self.requests.insert(Stage::Executing { started: now }, queue, work, now, payload)
    }
}
