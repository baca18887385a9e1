//! A request in its level. It ends when this is dropped, whatever it was doing.

use std::sync::Arc;

use evenkeel_engine::queue_set::{Finish, Phase, Rejection, RequestId};

use crate::control::level::Wakers;
use crate::control::rejected::Rejected;
use crate::control::snapshot::Destination;
use crate::observe::trace;

/// A request that has arrived, and the way to everything that concerns it.
///
/// Dropping it ends the request: one that waits leaves its queue, one that runs finishes. So no seat is ever lost,
/// wherever a future is dropped and whatever panics.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) destination: Arc<Destination>,
    pub(crate) id: RequestId,
}

// === impl Admission ===

impl Admission {
    /// Whether the request has been started. If not, whoever is behind the waker is woken when it is.
    pub(crate) fn is_started_or_wake(&self, waker: &std::task::Waker) -> bool {
        // Cloning and dropping a waker may run anything, code that takes this very lock included.
        let mut waker = Some(waker.clone());
        let mut state = self.destination.level.lock();
        let is_waiting = state.queue_set.request(self.id).is_some_and(|request| request.phase == Phase::Waiting);
        if is_waiting && let Some(waiter) = state.queue_set.payload_mut(self.id) {
            std::mem::swap(&mut waiter.waker, &mut waker);
        }
        drop(state);
        drop(waker);
        !is_waiting
    }

    /// Rejects a waiting request. `None` if it has been started just now.
    pub(crate) fn reject(&self, reason: Rejection) -> Option<Rejected> {
        let clock = &self.destination.upkeep.clock;
        let (mut wakers, now) = (Wakers::default(), clock.now());
        self.destination.upkeep.server.before_event(now);
        let level = &self.destination.level;
        let mut state = level.lock();
        let now = state.at(now);
        let waiter = state.cancel(now, self.id, &mut wakers)?;
        let retry_after = state.record_drop(clock.unix_second());
        let is_idle = state.queue_set.is_idle();
        drop(state);
        // With it goes its waker: see `is_started_or_wake`.
        drop(waiter);
        level.note_end(is_idle, &self.destination.upkeep);
        wakers.wake();
        trace::gave_up(self.destination.schema(), reason);
        Some(Rejected::new(reason, retry_after, &self.destination))
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let (upkeep, level) = (&self.destination.upkeep, &self.destination.level);
        let mut wakers = Wakers::default();
        let now = upkeep.clock.now();
        upkeep.server.before_event(now);
        let mut state = level.lock();
        let now = state.at(now);
        let finish = state.finish(now, self.id, &mut wakers);
        let cancelled = if finish.is_none() { state.cancel(now, self.id, &mut wakers) } else { None };
        let has_given_up = cancelled.is_some();
        if has_given_up {
            // Nobody is left to be told, but it counts as a rejected request (FQ-28, HF-12).
            state.record_drop(upkeep.clock.unix_second());
        }
        let is_idle = state.queue_set.is_idle();
        drop(state);
        // With it goes its waker: see `is_started_or_wake`.
        drop(cancelled);
        // Before anybody is woken: a waker that panics must not cost seats.
        if let Some(Finish::Lingering { until }) = finish {
            upkeep.release_at(until, Arc::clone(level), self.id, &mut wakers);
        }
        level.note_end(is_idle, upkeep);
        wakers.wake();
        if has_given_up {
            trace::gave_up(self.destination.schema(), Rejection::TimeOut);
        }
    }
}
