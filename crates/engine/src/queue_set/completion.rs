//! A request ends: it finishes, stops lingering, or gives up waiting (FQ-28 to FQ-36).

use super::queue::DETACHED;
use super::requests::{NO_QUEUE, Stage};
use super::{Effects, Finish, QueueSet, RequestId, SERVICE_TIME_GUESS};
use crate::SeatSeconds;
use crate::time::Instant;

impl<T> QueueSet<T> {
    /// The handler of an executing request has returned (FQ-30, FQ-31). `None` if the request is not executing.
    pub fn finish(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<Finish<T>> {
        let request = self.requests.get(id)?;
        let Stage::Executing { started } = request.stage else { return None };
        let (slot, work, executed) = (request.queue, request.work, now - started);
        self.synchronise(now, effects);
        self.executing -= 1;
        let lingers = work.additional_latency > 0;
        if slot != NO_QUEUE {
            let queue = &mut self.queues[slot as usize];
            queue.executing -= 1;
            queue.lingering += u32::from(lingers);
            // The guess that was charged up front gives way to the time that it really took.
            let guessed_too_much = SERVICE_TIME_GUESS.saturating_sub(executed);
            queue.next_r -= SeatSeconds::of(f64::from(work.initial_seats), guessed_too_much);
            queue.forget_old_claims();
            if !queue.is_active() {
                self.progress.active_queues -= 1;
            } else if !queue.line.is_empty() {
                self.update_ready(slot);
            }
        }
        let end = if lingers {
            if let Some(request) = self.requests.get_mut(id) {
                request.stage = Stage::Lingering { started };
            }
            Some(Finish::Lingering { until: now + work.additional_latency })
        } else {
            self.free_seats(now, id).map(Finish::Released)
        };
        self.dispatch(now, effects);
        end
    }

    /// A lingering request gives its seats back (FQ-32). `None` if the request is not lingering.
    pub fn release(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<T> {
        let request = self.requests.get(id).filter(|request| matches!(request.stage, Stage::Lingering { .. }))?;
        let slot = request.queue;
        self.synchronise(now, effects);
        if slot != NO_QUEUE {
            self.queues[slot as usize].lingering -= 1;
        }
        let payload = self.free_seats(now, id);
        self.dispatch(now, effects);
        payload
    }

    /// A waiting request gives up (FQ-28). `None` if the request is not waiting: it has been started meanwhile, say.
    pub fn cancel(&mut self, now: Instant, id: RequestId, effects: &mut impl Effects<T>) -> Option<T> {
        self.requests.get(id).filter(|request| matches!(request.stage, Stage::Waiting(_)))?;
        self.synchronise(now, effects);
        let request = self.requests.remove(id)?;
        let Stage::Waiting(place) = request.stage else { return None };
        let (slot, seats) = (request.queue, i64::from(request.work.max_seats()));
        let queue = &mut self.queues[slot as usize];
        queue.line.remove(&mut self.requests, place);
        queue.seats_waiting -= seats;
        queue.initial_seats_waiting -= i64::from(request.work.initial_seats);
        self.waiting_work[queue.index as usize] -= place.total_work;
        self.progress.seats_requested -= seats;
        self.waiting -= 1;
        self.seats_waiting -= seats;
        self.counters.rejected += 1;
        self.counters.cancelled += 1;
        queue.forget_old_claims();
        if !queue.is_active() {
            self.progress.active_queues -= 1;
        }
        self.update_ready(slot);
        self.signal_demand(now);
        Some(request.payload)
    }

    /// Gives back the seats of a request and lets it go (FQ-33).
    fn free_seats(&mut self, now: Instant, id: RequestId) -> Option<T> {
        let request = self.requests.remove(id)?;
        let seats = i64::from(request.work.max_seats());
        self.seats_in_use -= seats;
        self.signal_demand(now);
        if request.queue != NO_QUEUE {
            let queue = &mut self.queues[request.queue as usize];
            queue.seats_in_use -= seats;
            if queue.index != DETACHED {
                self.progress.seats_requested -= seats;
            }
            self.remove_if_surplus(request.queue);
        }
        Some(request.payload)
    }

    /// A queue that has become empty goes if there are more queues than wanted (FQ-36).
    ///
    /// The reference looks a second time when another request of a queue that has gone stops lingering, and then takes
    /// an innocent queue away (KW-15). Here a queue that has gone stays gone.
    #[inline]
    fn remove_if_surplus(&mut self, slot: u32) {
        let queue = &self.queues[slot as usize];
        if queue.index == DETACHED {
            if queue.lingering == 0 {
                self.free_queues.push(slot);
            }
        } else if self.order.len() > self.mode.queues() && !queue.is_active() {
            self.remove_queue(slot);
        }
    }

    #[cold]
    fn remove_queue(&mut self, slot: u32) {
        let queue = &mut self.queues[slot as usize];
        let index = std::mem::replace(&mut queue.index, DETACHED) as usize;
        self.progress.seats_requested -= queue.seats_in_use;
        if queue.lingering == 0 {
            self.free_queues.push(slot);
        }
        self.order.remove(index);
        self.waiting_work.remove(index);
        for &later in &self.order[index..] {
            self.queues[later as usize].index -= 1;
        }
        if usize::try_from(self.robin).is_ok_and(|robin| robin >= index) {
            self.robin -= 1;
        }
        self.rebuild_ready();
    }
}
