//! The waiting requests of one queue, oldest first.
//!
//! What dispatching needs of a waiting request stands in a ring of its own, so that it walks through memory in order.
//! A request that gives up leaves a gap, which is closed when it comes to the front or when there are too many.

use std::collections::VecDeque;

use crate::SeatSeconds;

/// A request that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Where the rest is known of the request, or [`GAP`].
    pub(super) slot: u32,
    pub(super) max_seats: u32,
    pub(super) arrival_r: SeatSeconds,
    pub(super) total_work: SeatSeconds,
}

/// Waiting requests in the order of arrival.
#[derive(Debug, Clone, Default)]
pub(super) struct Fifo {
    entries: VecDeque<Entry>,
    /// The place of the first entry; the place of a request is told by it when it enters.
    first_place: u32,
    length: u32,
}

const GAP: u32 = u32::MAX;
/// So few entries are never worth closing the gaps.
const ENTRIES_MIN: usize = 32;

// === impl Fifo ===

impl Fifo {
    /// How many requests wait.
    pub(super) fn len(&self) -> usize {
        self.length as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The oldest request.
    #[inline]
    pub(super) fn front(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// Adds the youngest request and tells its place. `moved` is told of requests that get another place by this.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "places wrap; 2^32 requests do not fit into memory")]
    pub(super) fn push_back(&mut self, entry: Entry, moved: impl FnMut(u32, u32)) -> u32 {
        // Before the ring grows, gaps are used up, if they are enough to pay for moving all requests.
        if self.entries.len() == self.entries.capacity() && self.entries.len() > self.len() + self.len() / 4 {
            self.close_gaps(moved);
        }
        let place = self.first_place.wrapping_add(self.entries.len() as u32);
        self.entries.push_back(entry);
        self.length += 1;
        place
    }

    /// Takes the oldest request out.
    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.first_place = self.first_place.wrapping_add(1);
        self.length -= 1;
        self.drop_gaps_in_front();
        Some(entry)
    }

    /// Takes the request at that place out. `moved` is told of requests that get another place by this.
    pub(super) fn remove(&mut self, place: u32, moved: impl FnMut(u32, u32)) -> Option<Entry> {
        let entry = self.entries.get_mut(place.wrapping_sub(self.first_place) as usize)?;
        if entry.slot == GAP {
            return None;
        }
        let taken = *entry;
        entry.slot = GAP;
        self.length -= 1;
        self.drop_gaps_in_front();
        if self.entries.len() > ENTRIES_MIN && self.entries.len() > 2 * self.len() {
            self.close_gaps(moved);
        }
        Some(taken)
    }

    /// The waiting requests, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.slot != GAP)
    }

    /// The waiting requests, oldest first, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().filter(|entry| entry.slot != GAP)
    }

    #[inline]
    fn drop_gaps_in_front(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.slot == GAP) {
            self.entries.pop_front();
            self.first_place = self.first_place.wrapping_add(1);
        }
    }

    #[cold]
    fn close_gaps(&mut self, mut moved: impl FnMut(u32, u32)) {
        self.entries.retain(|entry| entry.slot != GAP);
        for (entry, index) in self.entries.iter().zip(0..) {
            moved(entry.slot, self.first_place.wrapping_add(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Pop,
        Remove(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            5 => Just(Step::Push),
            2 => Just(Step::Pop),
            3 => any::<usize>().prop_map(Step::Remove),
        ];
        proptest::collection::vec(step, 0..400)
    }

    proptest! {
        #[test]
        fn the_ring_holds_what_a_plain_list_holds(steps in steps()) {
            let mut fifo = Fifo { first_place: u32::MAX - 20, ..Fifo::default() };
            let (mut model, mut places, mut slots) = (Vec::new(), HashMap::new(), 0..);
            for step in steps {
                match step {
                    Step::Push => {
                        let slot = slots.next().unwrap();
                        let entry = Entry {
                            slot, max_seats: 1, arrival_r: SeatSeconds::ZERO, total_work: SeatSeconds::ZERO,
                        };
                        let place = fifo.push_back(entry, |slot, place| {
                            places.insert(slot, place);
                        });
                        places.insert(slot, place);
                        model.push(slot);
                    }
                    Step::Pop => {
                        let popped = fifo.pop_front().map(|entry| entry.slot);
                        prop_assert_eq!(popped, (!model.is_empty()).then(|| model.remove(0)));
                    }
                    Step::Remove(index) if !model.is_empty() => {
                        let slot = model.remove(index % model.len());
                        let place = places[&slot];
                        let removed = fifo.remove(place, |slot, place| {
                            places.insert(slot, place);
                        });
                        prop_assert_eq!(removed.unwrap().slot, slot);
                        prop_assert!(fifo.entries.len() <= (2 * model.len()).max(ENTRIES_MIN));
                    }
                    Step::Remove(_) => {
                        let removed = fifo.remove(7, |_, _| {});
                        prop_assert!(removed.is_none());
                    }
                }
                prop_assert_eq!(fifo.iter().map(|entry| entry.slot).collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(fifo.front().map(|entry| entry.slot), model.first().copied());
                prop_assert_eq!((fifo.len(), fifo.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }
}
