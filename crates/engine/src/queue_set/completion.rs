//! A request ends: it finishes, stops lingering, or gives up waiting (FQ-28 to FQ-34).

use super::core::Core;
use super::requests::{SEATLESS, Stage, is_queue};
use super::turn_order::{Finished, TurnOrder};
use super::{Effects, Ended, Finish, Phase, RequestId};
use crate::time::Instant;

impl<T> Core<T> {
    /// The handler of an executing request has returned (FQ-30, FQ-31). `None` if the request is not executing.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "so that it costs the same wherever the discipline is chosen")]
    pub(super) fn finish(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        id: RequestId,
        effects: &mut impl Effects<T>,
    ) -> Option<Finish<T>> {
        let request = self.requests.get(id)?;
        let Stage::Executing(run) = request.stage else { return None };
        let (queue, work) = (request.queue, request.work);
        self.advance(order, now, effects);
        self.seats.executing -= 1;
        if queue == SEATLESS {
            self.seats.seatless -= 1;
        }
        let lingers = work.additional_latency > 0;
        let finished = Finished { work, run, now, lingers };
        if is_queue(queue) {
            order.finish(queue, finished);
        }
        let end = if lingers {
            if let Some(request) = self.requests.get_mut(id) {
                request.stage = Stage::Lingering(run);
            }
            Some(Finish::Lingering { until: now + work.additional_latency })
        } else {
            let payload = self.requests.remove(id);
            self.free_seats(order, queue, finished);
            payload.map(Finish::Released)
        };
        self.dispatch(order, now, effects);
        end
    }

    /// A lingering request gives its seats back (FQ-32). `None` if the request is not lingering.
    pub(super) fn release(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        id: RequestId,
        effects: &mut impl Effects<T>,
    ) -> Option<T> {
        let request = self.requests.get(id)?;
        let Stage::Lingering(run) = request.stage else { return None };
        let (queue, work) = (request.queue, request.work);
        self.advance(order, now, effects);
        let payload = self.requests.remove(id);
        self.free_seats(order, queue, Finished { work, run, now, lingers: true });
        self.dispatch(order, now, effects);
        payload
    }

    /// A waiting request gives up (FQ-28). `None` if the request is not waiting: it has been started meanwhile, say.
    pub(super) fn cancel(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        id: RequestId,
        effects: &mut impl Effects<T>,
    ) -> Option<T> {
        let request = self.requests.get(id).filter(|request| request.phase() == Some(Phase::Waiting))?;
        let seats = i64::from(request.work.max_seats());
        self.advance(order, now, effects);
        let frees_turn = self.take_out(order, now, id, seats);
        self.totals.cancelled += 1;
        let payload = self.requests.remove(id);
        if frees_turn {
            self.dispatch(order, now, effects);
        }
        payload
    }

    /// A waiting request is rejected, since another one takes its place in a level that is full (PF-7).
    #[cold]
    pub(super) fn displace(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        slot: u32,
        effects: &mut impl Effects<T>,
    ) {
        let Some(id) = self.requests.id_of(slot) else { return };
        let Some(request) = self.requests.get(id).filter(|request| request.phase() == Some(Phase::Waiting)) else {
            return;
        };
        let (work, arrived) = (request.work, request.arrived);
        self.take_out(order, now, id, i64::from(work.max_seats()));
        if let Some(payload) = self.requests.remove(id) {
            effects.displaced(Ended { id, phase: Phase::Waiting, work, arrived, started: None, payload });
        }
    }

    /// Takes a waiting request out of its queue, and tells whether others may be able to start because of that.
    fn take_out(&mut self, order: &mut impl TurnOrder, now: Instant, id: RequestId, seats: i64) -> bool {
        let frees_turn = order.cancel(id.slot_number(), &mut self.requests);
        self.waiting -= 1;
        self.seats_waiting -= seats;
        self.totals.rejected += 1;
        self.signal_demand(now);
        frees_turn
    }

    /// The seats of a request are free (FQ-33).
    fn free_seats(&mut self, order: &mut impl TurnOrder, queue: u32, released: Finished) {
        self.seats.in_use -= i64::from(released.work.max_seats());
        self.signal_demand(released.now);
        if is_queue(queue) {
            order.release(queue, released);
        }
    }
}
