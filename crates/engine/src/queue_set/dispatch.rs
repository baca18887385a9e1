//! Requests are started (FQ-22 to FQ-25).

use super::Effects;
use super::core::Core;
use super::requests::{Run, Stage};
use super::turn_order::TurnOrder;
use crate::time::Instant;

impl<T> Core<T> {
    /// Starts waiting requests while there are seats for the one that is next (FQ-22).
    #[inline]
    pub(super) fn dispatch(&mut self, order: &mut impl TurnOrder, now: Instant, effects: &mut impl Effects<T>) {
        while self.waiting > 0 && !self.seats.are_taken() && self.dispatch_one(order, now, effects) {}
    }

    /// Starts the request that is next, if there are seats for it (FQ-23).
    fn dispatch_one(&mut self, order: &mut impl TurnOrder, now: Instant, effects: &mut impl Effects<T>) -> bool {
        let Some(next) = order.next(now, self.seats.room()) else { return false };
        let fits = self.seats.accommodate(self.mode, next.max_seats);
        let Some(id) = self.requests.id_of(next.slot) else { return false };
        let Some(request) = self.requests.slot_mut(next.slot) else { return false };
        if !fits {
            if let Some(payload) = request.payload() {
                effects.blocked(payload);
            }
            order.blocked(next);
            return false;
        }
        // A request that starts in the moment of its arrival has not waited, even if others do.
        self.totals.dispatched_late += u64::from(request.arrived < now);
        let work = self.seats.fit(request.work);
        request.stage = Stage::Executing(Run::starting(now));
        request.work = work;
        if let Some(payload) = request.payload_mut() {
            effects.started(id, payload);
        }
        order.start(next, work, &mut self.requests);
        self.waiting -= 1;
        self.seats_waiting -= i64::from(work.max_seats());
        self.seats.take(work);
        self.totals.dispatched += 1;
        self.signal_demand(now);
        true
    }
}
