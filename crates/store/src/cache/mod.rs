//! The cache from which both stores serve reads and watches: all objects, and the latest writes.
//!
//! There is one writer, the *feeder*: the thread that commits, or the task that watches etcd. A write and its revision
//! become visible together, under one lock; then waiters are woken. A reader holds the lock only while it clones a few
//! pointers, and a watcher never while it waits.

mod history;
mod objects;
mod page;
mod replace;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use evenkeel_api::Kind;
use tokio::sync::watch;

use crate::{Change, Error, Event, Freshness, List, Object};

pub(crate) use history::History;
pub use history::HistoryLimits;
pub(crate) use objects::ObjectMap;
use page::{Undo, page};

/// All objects and the latest writes.
#[derive(Debug)]
pub(crate) struct Cache {
    state: RwLock<CacheState>,
    /// Wakes those who wait for a revision. Sent after `state` has that revision.
    revision: watch::Sender<u64>,
}

#[derive(Debug)]
pub(crate) struct CacheState {
    kinds: [ObjectMap; Kind::ALL.len()],
    pub(crate) history: History,
    /// All writes up to this revision are included.
    pub(crate) revision: u64,
    pub(crate) closed: bool,
    disconnected_since: Option<Instant>,
    /// Why writes are refused, if they are.
    fault: Option<String>,
}

/// A write that has taken place.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) revision: u64,
    pub(crate) kind: Kind,
    pub(crate) name: Box<str>,
    /// The object after the write; `None` if the write deleted it.
    pub(crate) object: Option<Arc<Object>>,
}

// === impl Cache ===

impl Cache {
    /// A cache with the objects of a revision, and the writes that led there.
    pub(crate) fn new(kinds: [ObjectMap; Kind::ALL.len()], history: History, revision: u64) -> Self {
        let state = CacheState { kinds, history, revision, closed: false, disconnected_since: None, fault: None };
        Self { state: RwLock::new(state), revision: watch::Sender::new(revision) }
    }

    /// The state, which must not be held for long.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, CacheState> {
        // A thread that panicked while it held the lock was reading, or at worst left out a write.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, CacheState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives the revision whenever it may have changed, and when the cache is closed.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Takes in writes, in order. Then all writes up to `revision` are included.
    pub(crate) fn apply(&self, writes: impl IntoIterator<Item = Write>, revision: u64) {
        let mut state = self.state_mut();
        for write in writes {
            state.apply(write);
        }
        state.revision = state.revision.max(revision);
        self.tell(state);
    }

    /// Forgets the history up to a revision.
    pub(crate) fn forget(&self, revision: u64) {
        self.state_mut().history.forget(revision);
    }

    /// Ends all watches.
    pub(crate) fn close(&self) {
        let mut state = self.state_mut();
        state.closed = true;
        self.tell(state);
    }

    pub(crate) fn set_connected(&self) {
        self.state_mut().disconnected_since = None;
    }

    pub(crate) fn set_disconnected(&self, now: Instant) {
        self.state_mut().disconnected_since.get_or_insert(now);
    }

    /// Why writes are refused from now on, if they are.
    pub(crate) fn set_fault(&self, fault: Option<String>) {
        self.state_mut().fault = fault;
    }

    /// Why writes are refused, if they are.
    pub(crate) fn fault(&self) -> Option<String> {
        self.state().fault.clone()
    }

    pub(crate) fn get(&self, kind: Kind, name: &str) -> Option<Arc<Object>> {
        self.state().objects(kind).get(name).cloned()
    }

    /// The object as it was at a revision.
    pub(crate) fn get_at(&self, kind: Kind, name: &str, revision: u64) -> Result<Option<Arc<Object>>, Error> {
        let state = self.state();
        state.check(revision)?;
        let mut object = state.objects(kind).get(name).cloned();
        for event in state.history.newest_first(revision) {
            if event.kind() == kind && event.name() == name {
                object = event.previous().cloned();
            }
        }
        Ok(object)
    }

    pub(crate) fn list(&self, kind: Kind, after: Option<&str>, limit: usize) -> List {
        let (objects, revision) = {
            let state = self.state();
            (state.objects(kind).clone(), state.revision)
        };
        let (items, remaining) = page(&objects, &Undo::new(), after, limit);
        List { revision, items, remaining }
    }

    /// The objects as they were at a revision.
    pub(crate) fn list_at(&self, kind: Kind, revision: u64, after: Option<&str>, limit: usize) -> Result<List, Error> {
        let mut undo = Undo::new();
        let objects = {
            let state = self.state();
            state.check(revision)?;
            for event in state.history.newest_first(revision).filter(|event| event.kind() == kind) {
                undo.insert(event.name().into(), event.previous().cloned());
            }
            state.objects(kind).clone()
        };
        let (items, remaining) = page(&objects, &undo, after, limit);
        Ok(List { revision, items, remaining })
    }

    pub(crate) fn freshness(&self) -> Freshness {
        let state = self.state();
        let CacheState { revision, disconnected_since, .. } = *state;
        Freshness { revision, disconnected_since, is_broken: state.fault.is_some() }
    }

    /// Releases the lock, and wakes waiters.
    fn tell(&self, state: RwLockWriteGuard<'_, CacheState>) {
        let revision = state.revision;
        drop(state);
        self.revision.send_replace(revision);
    }
}

// === impl CacheState ===

impl CacheState {
    pub(crate) fn objects(&self, kind: Kind) -> &ObjectMap {
        &self.kinds[kind as usize]
    }

    /// Fails if the state at this revision is unknown.
    pub(crate) fn check(&self, asked: u64) -> Result<(), Error> {
        if asked > self.revision {
            return Err(Error::FutureRevision { asked, current: self.revision });
        }
        self.history.check(asked)
    }

    fn apply(&mut self, write: Write) {
        let Write { revision, kind, name, object } = write;
        let objects = &mut self.kinds[kind as usize];
        let change = match object {
            Some(object) => match objects.put(object.clone()) {
                Some(previous) => Change::Updated { object, previous },
                None => Change::Created { object },
            },
            None => match objects.remove(&name) {
                Some(previous) => Change::Deleted { previous },
                // The object was created and deleted between two known states.
                None => return,
            },
        };
        self.history.push(Arc::new(Event { revision, change }));
        self.revision = self.revision.max(revision);
    }
}
