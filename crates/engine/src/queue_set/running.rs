//! Changes of running requests that cost more or less than was expected (CO-4).

use super::core::Core;
use super::discipline::Discipline;
use super::requests::{Stage, is_queue};
use super::turn_order::{Resized, TurnOrder};
use super::{Effects, QueueSet, RequestId};
use crate::WorkEstimate;
use crate::time::{Instant, Nanos};

// === impl QueueSet ===

impl<T> QueueSet<T> {
    /// The flow of an executing request is charged that much more seat-time, so that its next turn comes later; or less, if that is below
    /// zero. Nothing starts or ends by it. Tells whether the request is executing.
    pub fn charge(&mut self, now: Instant, id: RequestId, seat_time: Nanos, effects: &mut impl Effects<T>) -> bool {
        match &mut self.discipline {
            Discipline::ShuffleSharded(order) => self.core.charge(order, now, id, seat_time, effects),
            Discipline::PerFlow(order) => self.core.charge(&mut **order, now, id, seat_time, effects),
        }
    }

    /// An executing request holds so many seats from now on, at least one. It gets more whatever is free: nothing else starts
    /// then until enough requests have ended. Fewer serve others at once. Tells how many it held; `None` if it is not executing, or
    /// [takes no seat](Self::start_seatless).
    pub fn set_seats(&mut self, now: Instant, id: RequestId, seats: u32, effects: &mut impl Effects<T>) -> Option<u32> {
        match &mut self.discipline {
            Discipline::ShuffleSharded(order) => self.core.set_seats(order, now, id, seats, effects),
            Discipline::PerFlow(order) => self.core.set_seats(&mut **order, now, id, seats, effects),
        }
    }
}

// === impl Core ===

impl<T> Core<T> {
    fn charge(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        id: RequestId,
        seat_time: Nanos,
        effects: &mut impl Effects<T>,
    ) -> bool {
        let Some(request) = self.requests.get(id) else { return false };
        let (Stage::Executing(_), queue) = (request.stage, request.queue) else { return false };
        self.advance(order, now, effects);
        if is_queue(queue) {
            order.charge(queue, seat_time);
        }
        true
    }

    fn set_seats(
        &mut self,
        order: &mut impl TurnOrder,
        now: Instant,
        id: RequestId,
        seats: u32,
        effects: &mut impl Effects<T>,
    ) -> Option<u32> {
        let request = self.requests.get(id)?;
        let (queue, before) = (request.queue, request.work);
        let Stage::Executing(run) = request.stage else { return None };
        if before.is_seatless() {
            return None;
        }
        let after = before.resized(seats.max(1));
        self.advance(order, now, effects);
        if let Some(request) = self.requests.get_mut(id) {
            request.work = after;
            if let Stage::Executing(run) = &mut request.stage {
                run.resized = now;
            }
        }
        self.seats.in_use += i64::from(after.max_seats()) - i64::from(before.max_seats());
        self.signal_demand(now);
        if is_queue(queue) {
            order.resize_request(queue, Resized { before, after, since: run.resized, now });
        }
        self.dispatch(order, now, effects);
        Some(before.max_seats())
    }
}

// === impl WorkEstimate ===

impl WorkEstimate {
    /// The same estimate on so many seats, while the request runs and while it lingers, if it does.
    fn resized(self, seats: u32) -> Self {
        let final_seats = if self.additional_latency > 0 { seats } else { 0 };
        Self { initial_seats: seats, final_seats, ..self }
    }
}
