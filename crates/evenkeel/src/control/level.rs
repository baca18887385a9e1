//! A priority level: its core and its listeners, each behind a lock of its own.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use evenkeel_engine::LevelId;
use evenkeel_engine::attribution::WantedNames;
use evenkeel_engine::drain::{Advice, Ahead};
use evenkeel_engine::queue_set::QueueSetConfig;
use evenkeel_engine::time::Instant;

use crate::control::accounts::LevelAccounts;
use crate::control::core::{LevelCore, NOTHING};
use crate::control::level_listeners::LevelListeners;
use crate::control::upkeep::Upkeep;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};

/// A level. The lock of its core is held for the length of one decision, tens of nanoseconds. A thread that takes both locks
/// takes that of the listeners first.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) id: LevelId,
    /// Whether it goes as soon as it has run out of requests.
    is_quiescing: AtomicBool,
    /// The flows whose names the attribution of the level wants, if there is one.
    pub(crate) wanted_names: Option<Arc<WantedNames>>,
    /// The accounts of the flow schemas that lead to the level.
    pub(crate) accounts: LevelAccounts,
    core: OwnCacheLines<Mutex<LevelCore>>,
    listeners: OwnCacheLines<Mutex<LevelListeners>>,
}

/// Keeps data that different threads use at the same time out of each other's cache lines. (Processors fetch two lines at a
/// time.)
#[derive(Debug)]
#[repr(align(128))]
struct OwnCacheLines<T>(T);

/// The core of a level, locked.
pub(crate) type CoreGuard<'a> = MutexGuard<'a, LevelCore>;

/// The listeners of a level, locked. They have been told of everything that had happened when the lock was taken.
#[derive(Debug)]
pub(crate) struct ListenersGuard<'a>(MutexGuard<'a, LevelListeners>);

// === impl Level ===

impl Level {
    pub(crate) fn new(id: LevelId, config: QueueSetConfig, listeners: LevelListeners, now: Instant) -> Self {
        let mut core = LevelCore::new(config, now);
        core.events.hear_costs = listeners.hear_costs();
        Self {
            id,
            is_quiescing: AtomicBool::new(false),
            wanted_names: listeners.wanted_names(),
            accounts: LevelAccounts::default(),
            core: OwnCacheLines(Mutex::new(core)),
            listeners: OwnCacheLines(Mutex::new(listeners)),
        }
    }

    /// A level that has gone, whose requests have to be classified anew.
    pub(crate) fn removed(id: LevelId, listeners: LevelListeners) -> Self {
        let level = Self::new(id, NOTHING, listeners, Instant::default());
        level.lock().is_removed = true;
        level
    }

    /// Takes the lock of the core. A panic while it was held, which would be a bug in the engine, does not make the level useless.
    #[inline]
    pub(crate) fn lock(&self) -> CoreGuard<'_> {
        self.core.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for an event: waits until there is room for it in the buffer.
    #[inline]
    pub(crate) fn lock_for_event(&self) -> CoreGuard<'_> {
        let core = self.lock();
        if core.events.is_full() { self.lock_with_room(core) } else { core }
    }

    #[cold]
    fn lock_with_room<'a>(&'a self, core: CoreGuard<'a>) -> CoreGuard<'a> {
        drop(core);
        drop(self.listeners());
        // Other threads may have filled the buffer again. They wait for the listeners too, so that this ends; and one event more
        // does no harm.
        self.lock()
    }

    /// Takes the lock of the listeners, and tells them what has happened.
    pub(crate) fn listeners(&self) -> ListenersGuard<'_> {
        self.listeners_and(|_| ()).0
    }

    /// The same, with a look at the core at that very moment.
    pub(crate) fn listeners_and<R>(&self, look: impl FnOnce(&mut LevelCore) -> R) -> (ListenersGuard<'_>, R) {
        let listeners = self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.hand_on(listeners, look)
    }

    /// Hands events on if there are enough, unless another thread does so already. To be called without any lock.
    #[inline]
    pub(crate) fn hand_on_batch(&self, is_batch: bool) {
        if is_batch {
            self.try_hand_on();
        }
    }

    #[cold]
    fn try_hand_on(&self) {
        if let Ok(listeners) = self.listeners.0.try_lock() {
            drop(self.hand_on(listeners, |_| ()));
        }
    }

    fn hand_on<'a, R>(
        &'a self,
        mut listeners: MutexGuard<'a, LevelListeners>,
        look: impl FnOnce(&mut LevelCore) -> R,
    ) -> (ListenersGuard<'a>, R) {
        let empty = listeners.take_spare();
        let mut core = self.lock();
        let events = core.events.take(empty);
        let seen = look(&mut core);
        drop(core);
        listeners.hear(events);
        (ListenersGuard(listeners), seen)
    }

    /// The advice for the client of a request that has just been rejected (HF-12), and how many requests wait.
    pub(crate) fn advise(&self) -> (Advice, usize) {
        let (mut listeners, (now, ahead)) = self.listeners_and(|core| (core.latest, Ahead::of(core.queue_set())));
        (listeners.retry.advise(now, ahead), ahead.waiting)
    }

    /// How many requests there are of each kind, in the order of [`CROWD_KINDS`](crate::control::counts::CROWD_KINDS).
    pub(crate) fn crowd(&self) -> [i64; 4] {
        self.lock().crowd()
    }

    pub(crate) fn is_quiescing(&self) -> bool {
        self.is_quiescing.load(Ordering::Acquire)
    }

    pub(crate) fn set_quiescing(&self, is_quiescing: bool) {
        self.is_quiescing.store(is_quiescing, Ordering::Release);
    }

    /// A request has ended: if it was the last one of a quiescing level, the upkeep has to remove the level.
    #[inline]
    pub(crate) fn note_end(&self, is_idle: bool, upkeep: &Upkeep) {
        if is_idle && self.is_quiescing() {
            upkeep.note_idle_level();
        }
    }
}

// === impl ListenersGuard ===

impl Deref for ListenersGuard<'_> {
    type Target = LevelListeners;

    fn deref(&self) -> &LevelListeners {
        &self.0
    }
}

impl DerefMut for ListenersGuard<'_> {
    fn deref_mut(&mut self) -> &mut LevelListeners {
        &mut self.0
    }
}
