//! A few sets of clauses at a time, collected without allocation.

use super::clause_set::{ClauseSet, EMPTY};

const CAPACITY: usize = 8;

/// Collects sets, and hands them on whenever it is full and at the end.
///
/// A search for the first clause may be split like this: the first clause in a union of sets is the first one over all
/// parts of the union.
pub(super) struct SomeSets<'a, F> {
    sets: [&'a ClauseSet; CAPACITY],
    length: usize,
    each: F,
}

// === impl SomeSets ===

impl<'a, F: FnMut(&[&'a ClauseSet])> SomeSets<'a, F> {
    #[inline]
    pub(super) fn new(each: F) -> Self {
        Self { sets: [&EMPTY; CAPACITY], length: 0, each }
    }

    #[inline]
    pub(super) fn push(&mut self, set: Option<&'a ClauseSet>) {
        let Some(set) = set.filter(|set| !set.is_empty()) else { return };
        if self.length == CAPACITY {
            self.hand_on();
        }
        if let Some(place) = self.sets.get_mut(self.length) {
            *place = set;
            self.length += 1;
        }
    }

    #[inline]
    pub(super) fn finish(&mut self) {
        if self.length > 0 {
            self.hand_on();
        }
    }

    #[inline]
    fn hand_on(&mut self) {
        if let Some(sets) = self.sets.get(..self.length) {
            (self.each)(sets);
        }
        self.length = 0;
    }
}
