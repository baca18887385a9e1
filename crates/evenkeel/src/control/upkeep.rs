//! `Upkeep`: the work that is due from time to time: timers of the levels, dividing seats among them, removing levels that have
//! run out of requests.
//!
//! The engine says what is due and when. This module has the list of the levels by when that is, so that no thread has to take
//! the locks of all levels to find out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use evenkeel_engine::LevelId;
use evenkeel_engine::queue_set::Phase;
use evenkeel_engine::time::Instant;
use tokio::sync::Notify;

use crate::control::clock::Clock;
use crate::control::core::Reschedule;
use crate::control::counts::ServerMetrics;
#[cfg(feature = "fleet")]
use crate::control::fleet::StartGate;
use crate::control::level::Level;
use crate::control::limit::Pulse;
use crate::control::revocation::Revoker;
use crate::control::wakers::Wakers;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};

/// The list of the work that is due, shared by all who add to it.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(crate) clock: Clock,
    pub(crate) server: ServerMetrics,
    schedule: Mutex<Schedule>,
    wants_reapply: AtomicBool,
    /// Whether a task looks at the timers. Without one, requests that wait look at the time themselves.
    has_keeper: AtomicBool,
    /// Notified when something is due earlier than before.
    pub(crate) news: Arc<Notify>,
    /// Whether the fleet allows requests to start.
    #[cfg(feature = "fleet")]
    pub(crate) gate: StartGate,
    /// How often the limit that finds itself is looked at.
    pub(crate) pulse: Arc<Pulse>,
    /// The requests that may be told to end.
    pub(crate) revoker: Revoker,
    /// The wakers to call at a time for which there is no timer, since the clock is set by hand.
    wakers: Mutex<Vec<(Instant, Waker)>>,
}

/// The levels in which something is due, by when.
#[derive(Debug, Default)]
struct Schedule {
    levels: BTreeMap<(Instant, LevelId), Arc<Level>>,
    /// Whether no task looks at the schedule any more.
    is_closed: bool,
}

/// Says that a task looks at the timers, until it is dropped: when the task has ended, or its runtime has.
#[derive(Debug)]
pub(crate) struct Keeper(Arc<Upkeep>);

// === impl Upkeep ===

impl Upkeep {
    pub(crate) fn new(clock: Clock) -> Self {
        let server = ServerMetrics::new(clock.now());
        let news = Arc::new(Notify::new());
        let pulse = Arc::new(Pulse::new(Arc::clone(&news)));
        let revoker = Revoker::new(Arc::clone(&news));
        Self {
            clock,
            server,
            schedule: Mutex::new(Schedule::default()),
            wants_reapply: AtomicBool::new(false),
            has_keeper: AtomicBool::new(false),
            news,
            #[cfg(feature = "fleet")]
            gate: StartGate::new(),
            pulse,
            revoker,
            wakers: Mutex::default(),
        }
    }

    /// Something is about to happen in a level. To be called without any lock.
    #[inline]
    pub(crate) fn before_event(&self, now: Instant) {
        self.server.before_event(now);
        #[cfg(feature = "fleet")]
        self.gate.check(now, &self.clock);
    }

    /// Something is due in a level earlier than before. If the flow control is gone, nothing lingers any more.
    pub(crate) fn schedule(&self, level: &Arc<Level>, change: Reschedule, wakers: &mut Wakers) {
        let Some(at) = change.at else { return };
        let mut schedule = self.lock();
        if schedule.is_closed {
            drop(schedule);
            self.abandon(level, wakers);
            return;
        }
        let is_next = schedule.levels.first_key_value().is_none_or(|((next, _), _)| at < *next);
        schedule.update(level, change);
        drop(schedule);
        if is_next {
            self.news.notify_one();
        }
    }

    /// Registers a waker, which is called at the first look after that time.
    pub(crate) fn wake_at(&self, at: Instant, waker: &Waker) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|(known_at, known)| *known_at == at && known.will_wake(waker)) {
            wakers.push((at, waker.clone()));
        }
        drop(wakers);
        self.news.notify_one();
    }

    /// Calls the wakers whose time has come. Returns the time of the next one.
    fn wake_due(&self) -> Option<Instant> {
        let now = self.clock.now();
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        let due: Vec<_> = wakers.extract_if(.., |(at, _)| *at <= now).collect();
        let next = wakers.iter().map(|(at, _)| *at).min();
        drop(wakers);
        for (_, waker) in due {
            waker.wake();
        }
        next
    }

    /// Does what is due, and tells when something is due next.
    pub(crate) fn handle_timeouts(&self) -> Option<Instant> {
        let next_waker = self.wake_due();
        self.handle_level_timeouts().into_iter().chain(next_waker).min()
    }

    /// Does what is due in the levels, and tells when something is due next in them.
    fn handle_level_timeouts(&self) -> Option<Instant> {
        loop {
            // Not in the head of the `match`, which would hold the lock for its arms.
            let due = self.lock().next_due(self.clock.now());
            match due {
                Ok(level) => {
                    let mut wakers = Wakers::default();
                    self.handle_timeout(&level, &mut wakers);
                    wakers.wake();
                }
                Err(next) => return next,
            }
        }
    }

    /// Does what is due in a level.
    pub(crate) fn handle_timeout(&self, level: &Arc<Level>, wakers: &mut Wakers) {
        let now = self.clock.now();
        self.before_event(now);
        let mut core = level.lock_for_event();
        let now = core.at(now);
        let ended = core.handle_timeout(now, wakers);
        let change = core.reschedule();
        let is_idle = core.queue_set().is_idle();
        let queues = core.take_queues();
        let is_batch = core.events.is_batch();
        drop(core);
        level.hand_on_batch(is_batch);
        // Dropping them may run any code: see `Admission::phase_or_wake`.
        drop((ended, queues));
        let mut schedule = self.lock();
        let is_closed = schedule.is_closed;
        if !is_closed {
            schedule.update(level, change);
        }
        drop(schedule);
        if is_closed {
            self.abandon(level, wakers);
        }
        level.note_end(is_idle, self);
    }

    /// The flow control is gone. No task looks at timers any more, so nothing lingers from now on, and waiting requests have to
    /// look at the time themselves.
    pub(crate) fn close(&self) {
        self.has_keeper.store(false, Ordering::Release);
        let mut schedule = self.lock();
        schedule.is_closed = true;
        let levels = std::mem::take(&mut schedule.levels);
        drop(schedule);
        let mut wakers = Wakers::default();
        for level in levels.values() {
            self.abandon(level, &mut wakers);
        }
        // The keeper ends at once, and not when it would have had something to do.
        self.news.notify_one();
        wakers.wake();
    }

    /// Ends the upkeep of a level: frees the seats of all requests that linger in it, and wakes those that
    /// wait, so that they look at the time themselves.
    fn abandon(&self, level: &Level, wakers: &mut Wakers) {
        let now = self.clock.now();
        self.before_event(now);
        let mut core = level.lock_for_event();
        let now = core.at(now);
        core.unschedule();
        let lingering = core.requests_in(Phase::Lingering);
        let released: Vec<_> = lingering.into_iter().map(|id| core.release(now, id, wakers)).collect();
        core.take_wakers(wakers);
        let queues = core.take_queues();
        drop(core);
        drop((released, queues));
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a task looks at the timers.
    pub(crate) fn has_keeper(&self) -> bool {
        self.has_keeper.load(Ordering::Acquire)
    }

    /// Notes that a level which is to be removed may have run out of requests.
    pub(crate) fn note_idle_level(&self) {
        if !self.wants_reapply.swap(true, Ordering::AcqRel) {
            self.news.notify_one();
        }
    }

    /// Whether a level may have run out of requests since the last time this was asked.
    pub(crate) fn take_idle_note(&self) -> bool {
        self.wants_reapply.swap(false, Ordering::AcqRel)
    }
}

// === impl Schedule ===

impl Schedule {
    fn update(&mut self, level: &Arc<Level>, change: Reschedule) {
        if let Some(before) = change.before {
            self.levels.remove(&(before, level.id));
        }
        if let Some(at) = change.at {
            self.levels.insert((at, level.id), Arc::clone(level));
        }
    }

    /// A level in which something is due by now, and if there is none, when there is.
    fn next_due(&mut self, now: Instant) -> Result<Arc<Level>, Option<Instant>> {
        match self.levels.first_key_value() {
            Some(((at, _), _)) if *at <= now => self.levels.pop_first().map(|(_, level)| level).ok_or(None),
            next => Err(next.map(|((at, _), _)| *at)),
        }
    }
}

// === impl Keeper ===

impl Keeper {
    pub(crate) fn new(upkeep: Arc<Upkeep>) -> Self {
        upkeep.has_keeper.store(true, Ordering::Release);
        Self(upkeep)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.has_keeper.store(false, Ordering::Release);
        let mut wakers = Wakers::default();
        let levels: Vec<_> = self.0.lock().levels.values().cloned().collect();
        for level in levels {
            level.lock().take_wakers(&mut wakers);
        }
        wakers.wake();
    }
}
