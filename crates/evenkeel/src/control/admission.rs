//! A request in its level. It ends when this is dropped, whatever it was doing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::queue_set::{Finish, Phase, Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};

use crate::control::core::LevelCore;
use crate::control::long_running::Counting;
use crate::control::rejected::Rejected;
use crate::control::seat_times::SeatTimes;
use crate::control::snapshot::Destination;
use crate::control::trace;
use crate::control::wakers::Wakers;

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
    /// Whether it has failed, so that its time says little about the service.
    pub(crate) has_failed: AtomicBool,
}

// === impl Admission ===

impl Admission {
    /// What the request is doing. If it waits, whoever is behind the waker is woken when it is started or rejected. `None` if
    /// it has been rejected.
    pub(crate) fn phase_or_wake(&self, waker: &std::task::Waker) -> Option<Phase> {
        // Cloning and dropping a waker may run anything, code that takes this very lock included.
        let mut waker = Some(waker.clone());
        let mut core = self.destination.level.lock();
        let phase = core.queue_set().phase(self.id);
        if phase == Some(Phase::Waiting) {
            std::mem::swap(&mut core.belongings_mut(self.id).waker, &mut waker);
        }
        drop(core);
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
        self.change(|core, now, wakers| core.charge(now, self.id, seat_time, wakers));
    }

    /// The request holds so many seats from now on, if it runs and takes any.
    pub(crate) fn set_seats(&self, seats: u32) {
        if let Some(held) = self.change(|core, now, wakers| core.set_seats(now, self.id, seats, wakers)) {
            self.seats.store(held, Ordering::Relaxed);
        }
    }

    /// Lets something happen to the request, and wakes those whom that concerns.
    fn change<R>(&self, change: impl FnOnce(&mut LevelCore, Instant, &mut Wakers) -> R) -> R {
        let (upkeep, level) = (&self.destination.upkeep, &self.destination.level);
        let mut wakers = Wakers::default();
        let now = upkeep.clock.now();
        upkeep.server.before_event(now);
        let mut core = level.lock_for_event();
        let now = core.at(now);
        let result = change(&mut core, now, &mut wakers);
        let is_batch = core.events.is_batch();
        drop(core);
        wakers.wake();
        level.hand_on_batch(is_batch);
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
        let reason = self.destination.level.lock().take_reason(self.id);
        let advice = self.destination.level.advise();
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
        let has_failed = *self.has_failed.get_mut();
        let mut core = level.lock_for_event();
        let now = core.at(now);
        let start = self.times.as_ref().and_then(|_| core.queue_set().start(self.id));
        let finish = core.finish(now, self.id, has_failed, &mut wakers);
        // Nobody is left to be told, but it counts as a rejected request (FQ-28, HF-12).
        let reason = self.reason_to_leave();
        let cancelled = if finish.is_none() { core.cancel(now, self.id, reason, &mut wakers) } else { None };
        if finish.is_none() && cancelled.is_none() {
            // Nobody asks any more.
            core.take_reason(self.id);
        }
        let has_given_up = cancelled.is_some();
        let is_idle = core.queue_set().is_idle();
        let lingers = matches!(finish, Some((Finish::Lingering { .. }, _)));
        let change = if lingers { core.take_earlier_timeout() } else { None };
        let is_batch = core.events.is_batch();
        drop(core);
        if let Some(times) = &self.times {
            times.note_end(start.map(|(_, started)| started), now);
        }
        // With them goes a waker: see `phase_or_wake`.
        drop((finish, cancelled));
        // Before anybody is woken: a waker that panics must not cost seats.
        if let Some(change) = change {
            upkeep.schedule(level, change, &mut wakers);
        }
        level.note_end(is_idle, upkeep);
        wakers.wake();
        level.hand_on_batch(is_batch);
        if has_given_up {
            trace::gave_up(self.destination.schema(), reason);
        }
    }
}
