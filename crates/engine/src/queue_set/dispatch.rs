//! Requests are started (FQ-21 to FQ-25).

use super::arrival::final_work;
use super::requests::Stage;
use super::{Effects, Mode, QueueSet};
use crate::time::Instant;
use crate::{SeatSeconds, WorkEstimate};

impl<T> QueueSet<T> {
    /// Whether that many seats can be taken now (FQ-21). Something too wide for the level runs when nothing else does.
    #[inline]
    pub(super) fn accommodates(&self, seats: u32) -> bool {
        let seats = i64::from(seats);
        match self.mode {
            Mode::Exempt => true,
            _ if seats > self.limit => self.executing == 0,
            _ => self.seats_in_use + seats <= self.limit,
        }
    }

    /// Starts waiting requests while there are seats for the one that is next (FQ-22).
    #[inline]
    pub(super) fn dispatch(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        while self.waiting > 0 && self.seats_in_use < self.limit && self.dispatch_one(now, effects) {}
    }

    /// Starts the request that is next, if there are seats for it (FQ-23).
    fn dispatch_one(&mut self, now: Instant, effects: &mut impl Effects<T>) -> bool {
        let Some(index) = self.ready.first(usize::try_from(self.robin + 1).unwrap_or(0)) else { return false };
        let slot = self.order[index];
        let Some(&head) = self.queues[slot as usize].line.front() else { return false };
        let fits = self.accommodates(head.max_seats);
        let Some((id, request)) = self.requests.in_slot_mut(head.slot) else { return false };
        if !fits {
            effects.blocked(&request.payload);
            if self.robin < 0 {
                self.robin = i64::try_from(self.order.len()).unwrap_or(i64::MAX) - 1;
            }
            return false;
        }
        let Stage::Waiting(place) = request.stage else { return false };
        let work = narrow(request.work, self.limit);
        request.stage = Stage::Executing { started: now };
        request.work = work;
        effects.started(id, &mut request.payload);
        let seats = i64::from(head.max_seats);
        let queue = &mut self.queues[slot as usize];
        queue.line.remove(&mut self.requests, place);
        queue.seats_waiting -= seats;
        queue.initial_seats_waiting -= i64::from(work.initial_seats);
        self.waiting_work[index] -= head.total_work;
        self.progress.seats_requested -= seats;
        self.robin = i64::from(queue.index);
        self.waiting -= 1;
        self.seats_waiting -= i64::from(work.max_seats());
        self.charge_for_start(slot, work, head.total_work);
        self.signal_demand(now);
        self.queues[slot as usize].forget_old_claims();
        self.update_ready(slot);
        true
    }

    /// Takes the seats of a request that starts, and charges its queue (FQ-23, steps 6 and 7).
    #[inline]
    pub(super) fn charge_for_start(&mut self, slot: u32, work: WorkEstimate, charge: SeatSeconds) {
        let seats = i64::from(work.max_seats());
        let queue = &mut self.queues[slot as usize];
        queue.executing += 1;
        queue.seats_in_use += seats;
        self.counters.last_dispatch_r = self.progress.r;
        self.counters.last_dispatch_s = queue.next_r;
        queue.next_r += charge;
        self.progress.seats_requested += seats;
        self.take_seats(work);
    }

    #[inline]
    pub(super) fn take_seats(&mut self, work: WorkEstimate) {
        self.executing += 1;
        self.seats_in_use += i64::from(work.max_seats());
        self.counters.dispatched += 1;
    }
}

/// A request that would linger on more seats than the level has lingers longer on those it has (FQ-23, step 2).
#[inline]
#[expect(clippy::cast_precision_loss, reason = "FQ-3 asks for binary64")]
pub(super) fn narrow(work: WorkEstimate, limit: i64) -> WorkEstimate {
    match u32::try_from(limit) {
        Ok(final_seats) if work.final_seats > final_seats => {
            let additional_latency = final_work(work).span_per_seat(limit as f64);
            WorkEstimate { final_seats, additional_latency, ..work }
        }
        _ => work,
    }
}
