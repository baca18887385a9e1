//! The connections of the admin endpoint. When there are too many, the least useful one is closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Slots {
    open: Mutex<BTreeMap<u64, Occupant>>,
    /// Counts connections and requests: the one with a lower number is older.
    events: AtomicU64,
}

/// One connection. Its slot is free when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    number: u64,
    asked: Arc<LastRequest>,
}

/// The number of a connection's last request; zero if the head of the first one has not arrived in full.
#[derive(Debug, Default)]
struct LastRequest(AtomicU64);

#[derive(Debug)]
struct Occupant {
    asked: Arc<LastRequest>,
    /// `None` until its task has been started.
    task: Option<AbortHandle>,
}

// === impl Slots ===

impl Slots {
    /// A slot for another connection. If there are `max` already, one of them is closed: the oldest that has not sent a
    /// whole head yet, or else the one that has not sent a request for the longest time.
    pub(super) fn take(self: &Arc<Self>, max: usize) -> Slot {
        while self.lock().len() >= max && self.evict() {}
        let number = self.next();
        let asked = Arc::<LastRequest>::default();
        self.lock().insert(number, Occupant { asked: Arc::clone(&asked), task: None });
        Slot { slots: Arc::clone(self), number, asked }
    }

    /// Closes a connection; whether there was one.
    pub(super) fn evict(&self) -> bool {
        let mut open = self.lock();
        let age = |number: u64, occupant: &Occupant| (occupant.asked.0.load(Ordering::Relaxed), number);
        let oldest = open.iter().min_by_key(|(number, occupant)| age(**number, occupant));
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        let evicted = open.remove(&number);
        drop(open);
        if let Some(task) = evicted.and_then(|occupant| occupant.task) {
            task.abort();
        }
        true
    }

    fn next(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Occupant>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Slot ===

impl Slot {
    /// The slot is that of this task.
    pub(super) fn set_task(slots: &Slots, number: u64, task: AbortHandle) {
        match slots.lock().get_mut(&number) {
            Some(occupant) => occupant.task = Some(task),
            // The request had to make way before it had begun, or has ended already.
            None => task.abort(),
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The connection has sent the head of a request.
    pub(super) fn note_request(&self) {
        self.asked.0.store(self.slots.next(), Ordering::Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_sent_heads_make_way_first_and_then_those_that_are_idle_for_longest() {
        let slots = Arc::<Slots>::default();
        let [first, second, third, fourth] = [(); 4].map(|()| slots.take(4));
        for slot in [&second, &fourth, &first] {
            slot.note_request();
        }
        let numbers = || slots.lock().keys().copied().collect::<Vec<_>>();
        let fifth = slots.take(4);
        assert_eq!(numbers(), [&first, &second, &fourth, &fifth].map(Slot::number), "the third had sent no head");
        fifth.note_request();
        let sixth = slots.take(4);
        assert_eq!(numbers(), [&first, &fourth, &fifth, &sixth].map(Slot::number), "the second was idle for longest");
        drop((first, second, third, fourth, fifth, sixth));
        assert_eq!(numbers(), [0; 0]);
        assert!(!slots.evict());
    }
}
