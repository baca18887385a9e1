//! A priority level behind its lock, and who waits in it.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

use evenkeel_api::Preset;
use evenkeel_engine::LevelId;
use evenkeel_engine::drain::Advice;
use evenkeel_engine::level;
use evenkeel_engine::queue_set::{Effects, Ended, Mode, Phase, QueueSet, QueueSetConfig, Rejection, RequestId};
use evenkeel_engine::time::Instant;

use crate::control::counts::{Ending, LevelMetrics, Mark, Notes, Readings};
use crate::control::kept_details::KeptDetails;
use crate::control::ledger::{Grant, Handover, LevelGrants};
use crate::control::observers::LevelObserver;
use crate::control::rare_list::RareList;
use crate::control::retry::RetryAdvisor;
use crate::control::upkeep::Upkeep;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};

/// A level. Its lock is held for the length of one decision, tens of nanoseconds.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) id: LevelId,
    /// Whether it goes as soon as it has run out of requests.
    is_quiescing: AtomicBool,
    state: Mutex<LevelState>,
}

/// What the lock of a level guards.
#[derive(Debug)]
pub(crate) struct LevelState {
    pub(crate) level: EngineLevel,
    pub(crate) retry: RetryAdvisor,
    pub(crate) metrics: LevelMetrics,
    /// Its part in the ledger, while levels borrow at once.
    pub(crate) grants: Option<LevelGrants>,
    /// Whether the level is gone: whoever still comes has to be classified anew.
    pub(crate) is_removed: bool,
    /// What the queue set told last, once it is gone too.
    last_readings: Option<Readings>,
    /// The time of the latest event.
    pub(crate) latest: Instant,
    /// When somebody looks at the timers of the level, if anybody does.
    scheduled: Option<Instant>,
    /// Requests that gave way to others while they waited, until their tasks have been told (PF-7).
    displaced: BTreeSet<RequestId>,
}

/// The level as the engine has it.
pub(crate) type EngineLevel = level::Level<Waiter, LevelObserver>;

/// The queue set of a level.
pub(crate) type LevelQueueSet = QueueSet<Waiter>;

/// When to look at the timers of a level, and when that was to be until now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reschedule {
    pub(crate) before: Option<Instant>,
    pub(crate) at: Option<Instant>,
}

/// What is kept with a request.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    /// Who is to be woken when the request starts; nobody if it has started at once.
    pub(crate) waker: Option<Waker>,
    /// What dumps show of it.
    pub(crate) details: Option<KeptDetails>,
    /// How it is counted.
    pub(crate) mark: Mark,
}

/// Collects those to be woken, so that they are woken when the lock has been given back, and what is to be counted before
/// that. The same for seats that go to another level.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// Nearly every event starts one request at most, which needs no memory.
    first: Option<Waker>,
    others: RareList<Waker>,
    /// Requests that have given way to others (PF-7). To be dropped without the lock.
    pub(crate) displaced: RareList<Ended<Waiter>>,
    pub(crate) handover: Handover,
    pub(crate) notes: Notes,
}

/// A queue set that lets nobody in, and takes next to no memory.
const NOTHING: QueueSetConfig = QueueSetConfig { mode: Mode::Reject, concurrency_limit: 0 };

// === impl Level ===

impl Level {
    pub(crate) fn new(
        id: LevelId,
        config: QueueSetConfig,
        observer: LevelObserver,
        preset: Preset,
        now: Instant,
    ) -> Self {
        let state = Mutex::new(LevelState::new(config, observer, preset, now));
        Self { id, is_quiescing: AtomicBool::new(false), state }
    }

    /// A level that has gone, whose requests have to be classified anew.
    pub(crate) fn removed(id: LevelId) -> Self {
        let level = Self::new(id, NOTHING, LevelObserver::default(), Preset::default(), Instant::default());
        level.lock().is_removed = true;
        level
    }

    /// Takes the lock. A panic while it was held, which would be a bug in the engine, does not make the level useless.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, LevelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_quiescing(&self) -> bool {
        self.is_quiescing.load(Ordering::Acquire)
    }

    pub(crate) fn set_quiescing(&self, is_quiescing: bool) {
        self.is_quiescing.store(is_quiescing, Ordering::Release);
    }

    /// A request has ended: if it was the last one of a level that is to go, somebody has to remove the level.
    #[inline]
    pub(crate) fn note_end(&self, is_idle: bool, upkeep: &Upkeep) {
        if is_idle && self.is_quiescing() {
            upkeep.note_idle_level();
        }
    }
}

// === impl LevelState ===

impl LevelState {
    fn new(config: QueueSetConfig, observer: LevelObserver, preset: Preset, now: Instant) -> Self {
        Self {
            level: EngineLevel::with_observer(config, observer, now),
            retry: RetryAdvisor::new(preset, now),
            metrics: LevelMetrics::new(now),
            grants: None,
            is_removed: false,
            last_readings: None,
            latest: now,
            scheduled: None,
            displaced: BTreeSet::new(),
        }
    }

    /// The requests and queues of the level.
    #[inline]
    pub(crate) fn queue_set(&self) -> &LevelQueueSet {
        self.level.queue_set()
    }

    /// The seats that the level may use now. Where levels borrow at once, those that it uses and could use in addition.
    pub(crate) fn current_limit(&self) -> i64 {
        self.grants.as_ref().map_or_else(|| self.queue_set().concurrency_limit(), LevelGrants::usable)
    }

    /// A timer may have been added: says so if somebody has to look at the timers earlier than planned.
    pub(crate) fn take_earlier_timeout(&mut self) -> Option<Reschedule> {
        let next = self.level.next_timeout()?;
        let is_earlier = self.scheduled.is_none_or(|scheduled| next < scheduled);
        is_earlier.then(|| self.reschedule())
    }

    /// The timers of the level have been looked at, or changed: when to look at them again.
    pub(crate) fn reschedule(&mut self) -> Reschedule {
        let at = self.level.next_timeout();
        Reschedule { before: std::mem::replace(&mut self.scheduled, at), at }
    }

    /// Nobody looks at the timers of the level any more.
    pub(crate) fn unschedule(&mut self) {
        self.scheduled = None;
    }

    /// What metrics show of the progress of the queue set.
    pub(crate) fn readings(&self) -> Readings {
        self.last_readings.unwrap_or_else(|| Readings::of(self.level.queue_set()))
    }

    /// Gives up the queues of a level that is gone, once nothing lingers in it any more. Its numbers stay for ever, and
    /// millions of queues need not. To be dropped without the lock.
    pub(crate) fn take_queues(&mut self) -> Option<EngineLevel> {
        let set = self.level.queue_set();
        let is_used = !self.is_removed || !set.is_idle() || set.seats_in_use() != 0 || set.requests().next().is_some();
        if is_used || self.last_readings.is_some() {
            return None;
        }
        self.last_readings = Some(Readings::of(set));
        Some(std::mem::replace(
            &mut self.level,
            EngineLevel::with_observer(NOTHING, LevelObserver::default(), self.latest),
        ))
    }

    /// The time at which an event happens whose thread has read the clock before it took the lock: threads overtake each
    /// other on the way, and to the engine time must not go backwards. One that was overtaken happens right after the latest, so
    /// that the times of events tell their order.
    #[inline]
    pub(crate) fn at(&mut self, now: Instant) -> Instant {
        self.latest = if now < self.latest { self.latest + 1 } else { now };
        self.latest
    }

    /// Takes the wakers of all who wait. They leave them again when they find that they have to wait on.
    pub(crate) fn take_wakers(&mut self, wakers: &mut Wakers) {
        for id in self.requests_in(Phase::Waiting) {
            wakers.extend(self.level.payload_mut(id).and_then(|waiter| waiter.waker.take()));
        }
    }

    /// The requests that are in a phase.
    pub(crate) fn requests_in(&self, phase: Phase) -> Vec<RequestId> {
        let requests = self.queue_set().requests().filter(|request| request.phase == phase);
        requests.map(|request| request.id).collect()
    }

    /// Waiting requests have given way to others, and are rejected (PF-7).
    #[cold]
    pub(crate) fn note_displaced(&mut self, now: Instant, wakers: &mut Wakers) {
        for ended in wakers.displaced.iter_mut() {
            self.displaced.insert(ended.id);
            self.metrics.displaced(now, Ending::from(&*ended));
            let waker = ended.payload.waker.take();
            if wakers.first.is_none() {
                wakers.first = waker;
            } else {
                wakers.others.extend(waker);
            }
        }
    }

    /// Why a request that is gone was rejected while it waited. To be asked once.
    pub(crate) fn take_reason(&mut self, id: RequestId) -> Rejection {
        if self.displaced.remove(&id) { Rejection::QueueFull } else { Rejection::TimeOut }
    }

    /// What the client of a request is told that has just been rejected (HF-12).
    pub(crate) fn advise(&mut self) -> Advice {
        self.retry.advise(self.latest, self.level.queue_set())
    }
}

// === impl Wakers ===

impl Wakers {
    #[inline]
    pub(crate) fn extend(&mut self, waker: Option<Waker>) {
        if self.first.is_none() {
            self.first = waker;
        } else {
            self.others.extend(waker);
        }
    }

    /// Passes seats on to other levels, and wakes everybody. To be called without any lock.
    #[inline]
    pub(crate) fn wake(self) {
        if self.first.is_some() || !self.handover.is_empty() {
            self.wake_somebody();
        }
    }

    #[inline(never)]
    fn wake_somebody(mut self) {
        if !self.handover.is_empty() {
            self.hand_over();
        }
        let Some(first) = self.first else { return };
        if self.others.is_empty() {
            first.wake();
        } else {
            wake_all(std::iter::once(first).chain(self.others));
        }
    }

    /// Starts requests of other levels on the seats that they were granted.
    #[cold]
    fn hand_over(&mut self) {
        while let Some(grant) = self.handover.next() {
            let Grant { level, .. } = &grant;
            level.lock().start_granted(&grant, self);
        }
    }
}

/// Wakes everybody, also if some of them panic. The first panic goes on when all have been woken.
fn wake_all(wakers: impl Iterator<Item = Waker>) {
    let mut panic = None;
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            panic.get_or_insert(payload);
        }
    }
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}

impl Effects<Waiter> for Wakers {
    #[inline]
    fn started(&mut self, id: RequestId, waiter: &mut Waiter) {
        self.notes.note_start(id);
        self.extend(waiter.waker.take());
    }

    fn blocked(&mut self, waiter: &Waiter) {
        self.notes.blocked = Some(waiter.mark.series);
    }

    fn displaced(&mut self, ended: Ended<Waiter>) {
        self.displaced.push(ended);
    }

    fn epoch_advanced(&mut self, clean: bool) {
        self.notes.epoch_advanced = Some(clean);
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::WorkEstimate;
    use evenkeel_engine::level::NewRequest;
    use evenkeel_engine::queue_set::{Arrival, NoEffects};

    use super::*;

    #[test]
    fn time_does_not_go_backwards_when_threads_overtake_each_other() {
        let config = QueueSetConfig { mode: Mode::queue(1, 1, 9).unwrap(), concurrency_limit: 1 };
        let mut state = LevelState::new(config, LevelObserver::default(), Preset::Plain, Instant::from_nanos(0));
        let later = state.at(Instant::from_nanos(1_000));
        let new = NewRequest::new(0, WorkEstimate::ONE_SEAT);
        let arrival = state.level.arrive(later, new, Waiter::default(), &mut NoEffects);
        let Arrival::Started { id, .. } = arrival else { panic!("it waits") };
        let overtaken = state.at(Instant::from_nanos(500));
        assert_eq!(overtaken, Instant::from_nanos(1_001), "it happens after the other one");
        state.level.finish(overtaken, id, &mut NoEffects);
        // A meter that ran below zero would have been wound back from its far end.
        let progress = state.queue_set().virtual_time().units();
        assert!((0..1_000_000).contains(&progress), "{progress}");
        assert_eq!(
            state.at(Instant::from_nanos(1_001)),
            overtaken,
            "what happens at the same time stays at the same time"
        );
    }
}
