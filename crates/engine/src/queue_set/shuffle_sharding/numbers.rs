//! The queues by their numbers: where each is, the work that waits in it, and when its oldest request would finish.
//!
//! A table of all queues is fastest and takes about 120 bytes for each of them. Of many queues only those in use are kept, so
//! that memory follows the requests that wait or run and not a number in an object. Both decide the same.

use std::collections::{BTreeMap, BTreeSet};

use super::ready::Ready;
use crate::SeatSeconds;

/// Up to so many queues there is a table of all of them.
pub(super) const TABLE_MAX: usize = 4096;

/// The queues by their numbers.
#[derive(Debug)]
pub(super) enum Numbers {
    /// All of them.
    All(AllQueues),
    /// Queues in which a request waits, runs or lingers, and the queue that was chosen last.
    Used(UsedQueues),
}

/// A table of all queues.
#[derive(Debug)]
pub(super) struct AllQueues {
    /// The slot of each queue.
    pub(super) order: Vec<u32>,
    /// The work that waits in each queue: all that placing a request looks at.
    pub(super) waiting_work: Vec<SeatSeconds>,
    pub(super) ready: Ready,
}

/// An index of the queues in use.
#[derive(Debug)]
pub(super) struct UsedQueues {
    /// How many queues there are, used or not.
    pub(super) count: usize,
    used: BTreeMap<u32, UsedQueue>,
    /// The queues in which something waits, by the finish of the oldest request and by number.
    ready: BTreeSet<(SeatSeconds, u32)>,
    /// The slot of the queue that was chosen last, if it was not in use before: it may not have come to that.
    pub(super) chosen: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct UsedQueue {
    slot: u32,
    waiting_work: SeatSeconds,
    finish: Option<SeatSeconds>,
}

// === impl Numbers ===

impl Numbers {
    /// How many queues there are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        match self {
            Self::All(all) => all.order.len(),
            Self::Used(used) => used.count,
        }
    }

    /// The slot of a queue, if it has one.
    #[inline]
    pub(super) fn slot(&self, number: usize) -> Option<u32> {
        match self {
            Self::All(all) => all.order.get(number).copied(),
            Self::Used(used) => used.get(number).map(|queue| queue.slot),
        }
    }

    /// The work that waits in a queue.
    #[inline]
    pub(super) fn waiting_work(&self, number: usize) -> SeatSeconds {
        match self {
            Self::All(all) => all.waiting_work[number],
            Self::Used(used) => used.waiting_work(number),
        }
    }

    /// The same to be changed, of a queue that has a slot.
    #[inline]
    pub(super) fn change_waiting_work(&mut self, number: u32, change: impl FnOnce(&mut SeatSeconds)) {
        match self {
            Self::All(all) => change(&mut all.waiting_work[number as usize]),
            Self::Used(used) => {
                if let Some(queue) = used.used.get_mut(&number) {
                    change(&mut queue.waiting_work);
                }
            }
        }
    }

    /// The oldest request of a queue would finish then; `None` if nothing waits in it.
    #[inline]
    pub(super) fn set_finish(&mut self, number: u32, finish: Option<SeatSeconds>) {
        match self {
            Self::All(all) => all.ready.set(number as usize, finish),
            Self::Used(used) => used.set_finish(number, finish),
        }
    }

    /// The slot of the queue with the smallest finish; among equals the first from `start` on, cyclically.
    #[inline]
    pub(super) fn first(&self, start: usize) -> Option<u32> {
        match self {
            Self::All(all) => all.ready.first(start).map(|number| all.order[number]),
            Self::Used(used) => used.first(start),
        }
    }
}

// === impl AllQueues ===

impl AllQueues {
    pub(super) fn new() -> Self {
        Self { order: Vec::new(), waiting_work: Vec::new(), ready: Ready::new(1) }
    }
}

// === impl UsedQueues ===

impl UsedQueues {
    /// The numbers of that many queues, none of them in use.
    pub(super) fn new(count: usize) -> Self {
        Self { count, used: BTreeMap::new(), ready: BTreeSet::new(), chosen: None }
    }

    pub(super) fn waiting_work(&self, number: usize) -> SeatSeconds {
        self.get(number).map_or(SeatSeconds::ZERO, |queue| queue.waiting_work)
    }

    /// From now on the queue is in that slot.
    pub(super) fn insert(&mut self, number: u32, slot: u32) {
        self.used.insert(number, UsedQueue { slot, waiting_work: SeatSeconds::ZERO, finish: None });
    }

    /// The queue is not in use any more, or gone.
    pub(super) fn remove(&mut self, number: u32) {
        self.set_finish(number, None);
        self.used.remove(&number);
    }

    /// The numbers and slots of the queues in use, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.used.iter().map(|(number, queue)| (*number, queue.slot))
    }

    /// Each queue behind that number moves up by one.
    pub(super) fn move_up(&mut self, number: u32) {
        self.count -= 1;
        let behind = self.used.split_off(&number);
        self.ready.retain(|(_, ready)| *ready < number);
        for (later, queue) in behind {
            self.used.insert(later - 1, queue);
            self.ready.extend(queue.finish.map(|finish| (finish, later - 1)));
        }
    }

    fn get(&self, number: usize) -> Option<&UsedQueue> {
        self.used.get(&u32::try_from(number).ok()?)
    }

    fn set_finish(&mut self, number: u32, finish: Option<SeatSeconds>) {
        // A request that would finish at the end of time is never chosen (FQ-23).
        let finish = finish.filter(|finish| *finish != SeatSeconds::MAX);
        let Some(queue) = self.used.get_mut(&number) else { return };
        let before = std::mem::replace(&mut queue.finish, finish);
        if before != finish {
            if let Some(before) = before {
                self.ready.remove(&(before, number));
            }
            self.ready.extend(finish.map(|finish| (finish, number)));
        }
    }

    fn first(&self, start: usize) -> Option<u32> {
        let &(smallest, leftmost) = self.ready.first()?;
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        let found =
            if leftmost >= start { None } else { self.ready.range((smallest, start)..=(smallest, u32::MAX)).next() };
        let number = found.map_or(leftmost, |(_, number)| *number);
        self.used.get(&number).map(|queue| queue.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Both kinds of index choose the same queue, also after queues have gone (FQ-23, FQ-36).
        #[test]
        fn fq_23_an_index_of_used_queues_chooses_what_a_table_chooses(
            queues in 2_u32..200,
            changes in prop::collection::vec((any::<u32>(), prop::option::of(0_u64..6), any::<usize>(), 0_u8..20), 1..200),
        ) {
            let mut all = AllQueues::new();
            all.order = (0..queues).collect();
            let mut finishes = vec![None; queues as usize];
            all.ready.rebuild(finishes.iter().copied());
            let mut used = UsedQueues::new(queues as usize);
            for number in 0..queues {
                used.insert(number, number);
            }
            let (mut all, mut used) = (Numbers::All(all), Numbers::Used(used));
            for (number, finish, robin, chance) in changes {
                let number = number % u32::try_from(finishes.len()).unwrap();
                let finish = finish.map(|units| SeatSeconds::from_units(if units == 5 { u64::MAX } else { units }));
                finishes[number as usize] = finish;
                all.set_finish(number, finish);
                used.set_finish(number, finish);
                let start = robin % (finishes.len() + 1);
                prop_assert_eq!(all.first(start), used.first(start));
                if chance == 0 && finishes.len() > 2 {
                    finishes.remove(number as usize);
                    if let (Numbers::All(all), Numbers::Used(used)) = (&mut all, &mut used) {
                        all.order.remove(number as usize);
                        all.ready.rebuild(finishes.iter().copied());
                        used.remove(number);
                        used.move_up(number);
                    }
                }
                prop_assert_eq!(all.count(), used.count());
            }
        }
    }
}
