//! A request in its level. It ends when this is dropped, whatever it was doing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::queue_set::{Finish, Phase, Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};

use crate::control::level::{LevelState, Wakers};
use crate::control::long_running::Counting;
use crate::control::rejected::Rejected;
use crate::control::seat_times::SeatTimes;
use crate::control::snapshot::Destination;
use crate::control::trace;

/// A request that has arrived, and the way to everything that concerns it.
///
/// Dropping it ends the request: one that waits leaves its queue, one that runs finishes. So no seat is ever lost,
/// wherever a future is dropped and whatever panics.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) destination: Arc<Destination>,
    pub(crate) id: RequestId,
    /// The seats that it takes.
    pub(crate) seats: AtomicU32,
    /// The queue that it was put into, if there are queues.
    pub(crate) queue: Option<u32>,
    /// Whether it counts among the long-running requests.
    pub(crate) counting: Counting,
    /// Where its times are noted, if anybody wants to know them.
    pub(crate) times: Option<Arc<SeatTimes>>,
    /// Whether the caller gives it up because its time is over, and not because its client has left.
    pub(crate) has_expired: bool,
}

// === impl Admission ===

impl Admission {
    /// What the request is doing. If it waits, whoever is behind the waker is woken when it is started or rejected. `None` if
    /// it has been rejected.
    pub(crate) fn phase_or_wake(&self, waker: &std::task::Waker) -> Option<Phase> {
        // Cloning and dropping a waker may run anything, code that takes this very lock included.
        let mut waker = Some(waker.clone());
        let mut state = self.destination.level.lock();
        let phase = state.queue_set().phase(self.id);
        if phase == Some(Phase::Waiting)
            && let Some(waiter) = state.level.payload_mut(self.id)
        {
            std::mem::swap(&mut waiter.waker, &mut waker);
        }
        drop(state);
        drop(waker);
        phase
    }

    /// How long the request waited, if it has started.
    pub(crate) fn waited(&self) -> Duration {
        let start = self.destination.level.lock().queue_set().start(self.id);
        start.map_or(Duration::ZERO, |(arrived, started)| Duration::from_nanos((started - arrived).unsigned_abs()))
    }

    /// The flow of the request is charged that much more seat-time, or less; nothing happens unless it runs.
    pub(crate) fn charge(&self, seat_time: Nanos) {
        self.change(|state, now, wakers| state.charge(now, self.id, seat_time, wakers));
    }

    /// The request holds so many seats from now on, if it runs and takes any.
    pub(crate) fn set_seats(&self, seats: u32) {
        if let Some(held) = self.change(|state, now, wakers| state.set_seats(now, self.id, seats, wakers)) {
            self.seats.store(held, Ordering::Relaxed);
        }
    }

    /// Lets something happen to the request, and wakes those whom that concerns.
    fn change<R>(&self, change: impl FnOnce(&mut LevelState, Instant, &mut Wakers) -> R) -> R {
        let (upkeep, level) = (&self.destination.upkeep, &self.destination.level);
        let mut wakers = Wakers::default();
        let now = upkeep.clock.now();
        upkeep.server.before_event(now);
        let mut state = level.lock();
        let now = state.at(now);
        let result = change(&mut state, now, &mut wakers);
        drop(state);
        wakers.wake();
        result
    }

    /// What the request is doing, once everything that is due in its level has been done.
    pub(crate) fn phase_after_timeouts(&self) -> Option<Phase> {
        let mut wakers = Wakers::default();
        self.destination.upkeep.handle_timeout(&self.destination.level, &mut wakers);
        let phase = self.destination.level.lock().queue_set().phase(self.id);
        wakers.wake();
        phase
    }

    /// How the request is counted if it is dropped now; `None` if it does not wait.
    pub(crate) fn reason_if_dropped(&self) -> Option<Rejection> {
        let phase = self.destination.level.lock().queue_set().phase(self.id);
        (phase == Some(Phase::Waiting)).then(|| self.reason_to_leave())
    }

    /// Why the request leaves its queue when it is dropped. Kubernetes does not tell who gives a request up (OB-2).
    fn reason_to_leave(&self) -> Rejection {
        match self.destination.preset() {
            Preset::Plain if !self.has_expired => Rejection::Cancelled,
            Preset::Plain | Preset::Kubernetes => Rejection::TimeOut,
        }
    }

    /// The request is gone: it has waited as long as it may, or it has given way to another.
    pub(crate) fn rejected(&self) -> Rejected {
        let mut state = self.destination.level.lock();
        let (reason, advice) = (state.take_reason(self.id), state.advise());
        drop(state);
        trace::gave_up(self.destination.schema(), reason);
        Rejected::new(reason, advice, self.seats.load(Ordering::Relaxed), self.queue, &self.destination)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.counting.end(&self.destination.long_running);
        let (upkeep, level) = (&self.destination.upkeep, &self.destination.level);
        let mut wakers = Wakers::default();
        let now = upkeep.clock.now();
        upkeep.server.before_event(now);
        let mut state = level.lock();
        let now = state.at(now);
        let start = self.times.as_ref().and_then(|_| state.queue_set().start(self.id));
        let finish = state.finish(now, self.id, &mut wakers);
        let reason = self.reason_to_leave();
        let cancelled = if finish.is_none() { state.cancel(now, self.id, reason, &mut wakers) } else { None };
        if finish.is_none() && cancelled.is_none() {
            // Nobody asks any more.
            state.take_reason(self.id);
        }
        let has_given_up = cancelled.is_some();
        if has_given_up {
            // Nobody is left to be told, but it counts as a rejected request (FQ-28, HF-12).
            state.retry.record_drop(|| upkeep.clock.unix_second());
        }
        let is_idle = state.queue_set().is_idle();
        let lingers = matches!(finish, Some(Finish::Lingering { .. }));
        let change = if lingers { state.take_earlier_timeout() } else { None };
        drop(state);
        if let Some(times) = &self.times {
            times.note_end(start.map(|(_, started)| started), now);
        }
        // With it goes its waker: see `phase_or_wake`.
        drop(cancelled);
        // Before anybody is woken: a waker that panics must not cost seats.
        if let Some(change) = change {
            upkeep.schedule(level, change, &mut wakers);
        }
        level.note_end(is_idle, upkeep);
        wakers.wake();
        if has_given_up {
            trace::gave_up(self.destination.schema(), reason);
        }
    }
}
