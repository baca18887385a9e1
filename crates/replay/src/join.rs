//! Puts the stages of a request together, by its id, in bounded memory.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use evenkeel_engine::work::{WatchCounts, WatchRegistration};

/// A hash of a request's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(u64);

/// The requests of which only a part has been read.
#[derive(Debug, Default)]
pub(crate) struct Join {
    /// Requests that have arrived, in two generations: when the younger one is full, the older one is dropped.
    young: HashSet<RequestKey>,
    old: HashSet<RequestKey>,
    given_up: u64,
    /// Requests that have been replayed when their long responses started.
    started: HashMap<RequestKey, Option<Box<WatchRegistration>>>,
    watches: WatchCounts,
}

/// What follows from the end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// The whole request is to be replayed now.
    Whole,
    /// It was replayed when its response started.
    Replayed,
}

/// This many requests are remembered in each generation, and this many long ones.
const REMEMBERED: usize = 1 << 18;

// === impl RequestKey ===

impl RequestKey {
    /// The key of an id.
    pub fn new(id: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        Self(hasher.finish())
    }
}

// === impl Join ===

impl Join {
    /// A request has arrived.
    pub(crate) fn received(&mut self, key: RequestKey) {
        if self.young.len() >= REMEMBERED {
            let full = std::mem::take(&mut self.young);
            self.given_up += std::mem::replace(&mut self.old, full).len() as u64;
        }
        self.young.insert(key);
    }

    /// The response of a request has started, and the request is replayed now. The closure counts it if it is a watch.
    pub(crate) fn started(
        &mut self,
        key: RequestKey,
        register: impl FnOnce(&mut WatchCounts) -> Option<WatchRegistration>,
    ) {
        self.forget_arrival(key);
        if self.started.len() < REMEMBERED {
            let registration = register(&mut self.watches).map(Box::new);
            self.started.insert(key, registration);
        }
    }

    /// A request has ended.
    pub(crate) fn completed(&mut self, key: RequestKey) -> Completion {
        match self.started.remove(&key) {
            Some(registration) => {
                if let Some(registration) = registration {
                    self.watches.forget(*registration);
                }
                Completion::Replayed
            }
            None => {
                self.forget_arrival(key);
                Completion::Whole
            }
        }
    }

    /// The watches under way.
    pub(crate) fn watches(&self) -> &WatchCounts {
        &self.watches
    }

    /// How many requests have arrived and never ended.
    pub(crate) fn unfinished(&self) -> u64 {
        self.given_up + (self.young.len() + self.old.len()) as u64
    }

    fn forget_arrival(&mut self, key: RequestKey) {
        if !self.young.remove(&key) {
            self.old.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_of_a_request() {
        let mut join = Join::default();
        let [get, watch, lost] = ["get", "watch", "lost"].map(RequestKey::new);
        join.received(get);
        join.received(watch);
        join.received(lost);
        join.started(watch, |_| None);
        assert_eq!(join.completed(get), Completion::Whole);
        assert_eq!(join.completed(watch), Completion::Replayed);
        assert_eq!(join.completed(RequestKey::new("received before the log")), Completion::Whole);
        assert_eq!(join.unfinished(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut join = Join::default();
        let count = 3 * REMEMBERED;
        for number in 0..count {
            join.received(RequestKey(number as u64));
        }
        assert!(join.young.len() + join.old.len() <= 2 * REMEMBERED);
        assert_eq!(join.unfinished(), count as u64);
    }
}
