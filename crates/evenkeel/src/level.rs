//! A priority level behind its lock, and who waits in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use evenkeel_engine::LevelId;
use evenkeel_engine::queue_set::{Effects, QueueSet, QueueSetConfig, RequestId};
use evenkeel_engine::retry_after::RetryAfter;
use evenkeel_engine::time::Instant;

use crate::metrics::{LevelMetrics, Mark, Notes};
use crate::request::Details;
use crate::upkeep::Upkeep;

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
    pub(crate) queue_set: QueueSet<Waiter>,
    pub(crate) retry_after: RetryAfter,
    pub(crate) metrics: LevelMetrics,
    /// Whether the level is gone: whoever still comes has to be classified anew.
    pub(crate) is_removed: bool,
}

/// What is kept with a request.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    /// Who is to be woken when the request starts; nobody if it has started at once.
    pub(crate) waker: Option<Waker>,
    /// What dumps show of it.
    pub(crate) details: Option<Details>,
    /// How it is counted.
    pub(crate) mark: Mark,
}

/// Collects those to be woken, so that they are woken when the lock has been given back, and what is to be counted
/// before that.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// Nearly every event starts one request at most, which needs no memory.
    first: Option<Waker>,
    others: Vec<Waker>,
    pub(crate) notes: Notes,
}

// === impl Level ===

impl Level {
    pub(crate) fn new(id: LevelId, config: QueueSetConfig, now: Instant) -> Self {
        let queue_set = QueueSet::new(config, now);
        let metrics = LevelMetrics::new(now);
        let state = LevelState { queue_set, retry_after: RetryAfter::default(), metrics, is_removed: false };
        Self { id, is_quiescing: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Takes the lock. A panic while it was held, which would be a bug in the engine, does not make the level useless.
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
        if is_idle && self.is_quiescing.load(Ordering::Acquire) {
            upkeep.note_idle_level();
        }
    }
}

// === impl LevelState ===

impl LevelState {
    /// Counts a request that was turned away, and tells how long its client is to wait (HF-12).
    pub(crate) fn record_drop(&mut self, unix_second: i64) -> Duration {
        self.retry_after.record_drop(unix_second);
        Duration::from_secs(u64::from(self.retry_after.seconds()))
    }
}

// === impl Wakers ===

impl Wakers {
    /// Wakes everybody. To be called without any lock.
    pub(crate) fn wake(self) {
        self.first.into_iter().chain(self.others).for_each(Waker::wake);
    }
}

impl Effects<Waiter> for Wakers {
    #[inline]
    fn started(&mut self, id: RequestId, waiter: &mut Waiter) {
        self.notes.note_start(id);
        if let Some(waker) = waiter.waker.take() {
            if self.first.is_none() {
                self.first = Some(waker);
            } else {
                self.others.push(waker);
            }
        }
    }

    fn blocked(&mut self, waiter: &Waiter) {
        self.notes.blocked = Some(waiter.mark.series);
    }

    fn epoch_advanced(&mut self, clean: bool) {
        self.notes.epoch_advanced = Some(clean);
    }
}
