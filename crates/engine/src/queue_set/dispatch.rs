//! Requests are started (FQ-22 to FQ-25).

use super::requests::Stage;
use super::{Discipline, Effects, QueueSet};
use crate::time::Instant;

impl<T, D: Discipline> QueueSet<T, D> {
    /// Starts waiting requests while there are seats for the one that is next (FQ-22).
    #[inline]
    pub(super) fn dispatch(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        while self.waiting > 0 && !self.seats.are_taken() && self.dispatch_one(now, effects) {}
    }

    /// Starts the request that is next, if there are seats for it (FQ-23).
    fn dispatch_one(&mut self, now: Instant, effects: &mut impl Effects<T>) -> bool {
        let Some(next) = self.discipline.next(now) else { return false };
        let fits = self.seats.accommodate(self.mode, next.max_seats);
        let Some(id) = self.requests.id_of(next.slot) else { return false };
        let Some(request) = self.requests.slot_mut(next.slot) else { return false };
        if !fits {
            if let Some(payload) = request.payload() {
                effects.blocked(payload);
            }
            self.discipline.blocked(next);
            return false;
        }
        let work = self.seats.fit(request.work);
        request.stage = Stage::Executing { started: now };
        request.work = work;
        if let Some(payload) = request.payload_mut() {
            effects.started(id, payload);
        }
        self.discipline.start(next, work, &mut self.requests);
        self.waiting -= 1;
        self.seats_waiting -= i64::from(work.max_seats());
        self.seats.take(work);
        self.totals.dispatched += 1;
        self.signal_demand(now);
        true
    }
}
