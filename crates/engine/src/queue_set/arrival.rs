//! A request arrives (FQ-14 to FQ-19).

use super::dispatch::narrow;
use super::requests::{NO_QUEUE, Request, Stage};
use super::{Arrival, Effects, Mode, QueueSet, Rejection, RequestId, SERVICE_TIME_GUESS};
use crate::time::Instant;
use crate::{SeatSeconds, WorkEstimate};

impl<T> QueueSet<T> {
    /// A request of the flow with that hash arrives. Exempt levels, levels without queues and levels with one queue
    /// make nothing of the hash.
    pub fn arrive(
        &mut self,
        now: Instant,
        hash: u64,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        self.synchronise(now, effects);
        match self.placement.choose(hash, &self.waiting_work) {
            Some(queue) => self.arrive_at_queue(now, queue, work, payload, effects),
            None => self.arrive_without_queues(now, work, payload, effects),
        }
    }

    fn arrive_without_queues(
        &mut self,
        now: Instant,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        if self.mode == Mode::Closed || !self.accommodates(work.max_seats()) {
            self.counters.rejected += 1;
            return Arrival::Rejected { reason: Rejection::ConcurrencyLimit, queue: None, payload };
        }
        let id = self.insert_started(now, NO_QUEUE, work, payload, effects);
        self.take_seats(work);
        self.signal_demand(now);
        Arrival::Started { id, queue: None }
    }

    fn arrive_at_queue(
        &mut self,
        now: Instant,
        index: usize,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        let slot = self.order[index];
        let queue_length = i64::try_from(self.queues[slot as usize].line.len()).unwrap_or(i64::MAX);
        // The length counts only while no seat is free (FQ-18, KW-12).
        if self.seats_in_use >= self.limit && queue_length >= self.queue_length_limit {
            self.counters.rejected += 1;
            if self.queues[slot as usize].forget_old_claims() {
                self.update_ready(slot);
            }
            return Arrival::Rejected { reason: Rejection::QueueFull, queue: Some(index), payload };
        }
        if self.waiting == 0
            && self.seats_in_use < self.limit
            && self.accommodates(work.max_seats())
            && self.would_finish(slot, work)
        {
            let id = self.pass_through(now, slot, work, payload, effects);
            return Arrival::Started { id, queue: Some(index) };
        }
        let id = self.enqueue(now, slot, work, payload);
        self.dispatch(now, effects);
        match self.requests.get(id).map(|request| request.stage) {
            Some(Stage::Waiting(_)) | None => Arrival::Waiting { id, queue: index },
            Some(_) => Arrival::Started { id, queue: Some(index) },
        }
    }

    /// Puts a request into a queue (FQ-19).
    fn enqueue(&mut self, now: Instant, slot: u32, work: WorkEstimate, payload: T) -> RequestId {
        self.wake_queue(slot);
        let (seats, total_work) = (i64::from(work.max_seats()), total_work(work));
        let queue = &mut self.queues[slot as usize];
        let is_head = queue.line.is_empty();
        let place = queue.line.next_place(self.progress.r, total_work);
        let id =
            self.requests.insert(Request { stage: Stage::Waiting(place), queue: slot, work, arrived: now, payload });
        queue.line.push_back(&mut self.requests, id.slot_number());
        queue.seats_waiting += seats;
        queue.initial_seats_waiting += i64::from(work.initial_seats);
        self.waiting_work[queue.index as usize] += total_work;
        self.progress.seats_requested += seats;
        self.waiting += 1;
        self.seats_waiting += seats;
        self.signal_demand(now);
        // Behind others it hardly ever changes when the queue would be served.
        if self.queues[slot as usize].forget_old_claims() || is_head {
            self.update_ready(slot);
        }
        id
    }

    /// What [`enqueue`](Self::enqueue) and a dispatch do together when nobody else waits: the same result without the
    /// way through the queue, which is what an uncontended request is spared.
    fn pass_through(
        &mut self,
        now: Instant,
        slot: u32,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> RequestId {
        self.wake_queue(slot);
        self.demand.set(now, self.seats_in_use + self.seats_waiting + i64::from(work.max_seats()));
        let queue = &mut self.queues[slot as usize];
        queue.next_r = queue.next_r.max(self.progress.r);
        self.robin = i64::from(queue.index);
        let narrowed = narrow(work, self.limit);
        self.seats_waiting += i64::from(work.max_seats()) - i64::from(narrowed.max_seats());
        let id = self.insert_started(now, slot, narrowed, payload, effects);
        self.charge_for_start(slot, narrowed, total_work(work));
        id
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
        self.requests.insert(Request { stage: Stage::Executing { started: now }, queue, work, arrived: now, payload })
    }

    /// Whether a dispatch would choose the request if it were the only one to wait in that queue: what would finish at
    /// the very end of the meter is never chosen (FQ-23).
    #[inline]
    fn would_finish(&self, slot: u32, work: WorkEstimate) -> bool {
        let queue = &self.queues[slot as usize];
        let next_r = if queue.is_active() { queue.next_r.max(self.progress.r) } else { self.progress.r };
        next_r + total_work(work) != SeatSeconds::MAX
    }

    /// A queue that was not active starts from the present progress (FQ-19).
    #[inline]
    fn wake_queue(&mut self, slot: u32) {
        let queue = &mut self.queues[slot as usize];
        if !queue.is_active() {
            queue.next_r = self.progress.r;
            self.progress.active_queues += 1;
        }
    }
}

/// The guess of FQ-5 for one seat, in units of [`SeatSeconds`].
const SERVICE_TIME_GUESS_UNITS: u64 = SERVICE_TIME_GUESS.unsigned_abs() / 10;

/// What a request is charged up front (FQ-6).
#[inline]
fn total_work(work: WorkEstimate) -> SeatSeconds {
    // The same as the product of FQ-2, since the guess is a whole number of units.
    SeatSeconds::from_units(u64::from(work.initial_seats) * SERVICE_TIME_GUESS_UNITS) + final_work(work)
}

/// What a request is charged for lingering (FQ-6).
#[inline]
pub(super) fn final_work(work: WorkEstimate) -> SeatSeconds {
    if work.final_seats == 0 {
        return SeatSeconds::ZERO;
    }
    SeatSeconds::of(f64::from(work.final_seats), work.additional_latency)
}
