//! Seats that are granted one request at a time, by a ledger that knows what the other levels use (LB-1).
//!
//! Between two events a queue set has no seats but those in use, so that nothing starts by itself. The ledger's side looks at the
//! [head](QueueSet::head), [grants](QueueSet::grant) its seats, lets the event happen, and [closes](QueueSet::close) the grant.

use super::discipline::Discipline;
use super::turn_order::TurnOrder;
use super::{Effects, QueueSet, Recipient, RequestId, Room};
use crate::time::Instant;
use crate::{Flow, WorkEstimate};

/// The request that is next in a queue set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The request.
    pub id: RequestId,
    /// The seats that it needs.
    pub seats: i64,
    /// The seats that have to stay free for newcomers if it starts (PF-10).
    pub kept: i64,
}

impl<T> QueueSet<T> {
    /// From now on requests start only by a grant. A request that asks for more seats than the widest is narrowed.
    pub fn begin_grants(&mut self, now: Instant, widest: i64, effects: &mut impl Effects<T>) {
        self.advance(now, effects);
        self.core.seats.begin_grants(widest);
    }

    /// Seats are no longer granted. Nothing starts until the set is [configured](QueueSet::configure) with a limit.
    pub fn end_grants(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        if self.core.seats.are_granted() {
            self.advance(now, effects);
            self.core.seats.end_grants();
        }
    }

    /// The request that is next for those seats, if any is that waits.
    pub fn head(&mut self, now: Instant, recipient: Recipient) -> Option<Head> {
        if self.core.waiting == 0 {
            return None;
        }
        let horizon = match recipient {
            Recipient::Anybody => Room::ALL,
            Recipient::Newcomer => Room::OPEN,
        };
        let room = self.core.seats.room_up_to(horizon);
        let next = match &mut self.discipline {
            Discipline::ShuffleSharded(order) => order.next(now, room),
            Discipline::PerFlow(order) => order.next(now, room),
        }?;
        let (id, seats) = (self.core.requests.id_of(next.slot)?, self.core.seats.width(next.max_seats));
        Some(Head { id, seats, kept: next.kept })
    }

    /// How many seats have to stay free for newcomers if a request of a flow starts now (PF-10); `None` if its flow holds as many
    /// seats as it may (PF-11).
    #[inline]
    pub fn kept_from(&mut self, flow: Flow<'_>, work: WorkEstimate) -> Option<i64> {
        match &mut self.discipline {
            Discipline::ShuffleSharded(_) => Some(0),
            Discipline::PerFlow(order) => order.kept_from(flow, work),
        }
    }

    /// The work of a request on as many seats as one request may be granted.
    #[inline]
    pub fn fitted(&self, work: WorkEstimate) -> WorkEstimate {
        self.core.seats.fitted(work)
    }

    /// Requests may take that many seats, until the grant is closed.
    #[inline]
    pub fn grant(&mut self, seats: i64, to: Recipient) {
        self.core.seats.grant(seats, to);
    }

    /// Starts waiting requests on the seats that are granted.
    pub fn start_granted(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        self.advance(now, effects);
        self.dispatch(now, effects);
    }

    /// Ends the grant; seats that are left of it are void.
    #[inline]
    pub fn close(&mut self) {
        self.core.seats.close();
    }
}
