//! What one attribute of a request leaves of the clauses that are still possible.

use std::cell::LazyCell;

use super::clause_set::{BitmapPlace, ClauseSet};

/// The clauses that list the value of one attribute: because they list every value, or because they list it by name.
///
/// The value is looked up only when some clause that is still possible lists some values by name.
pub(super) struct Factor<'a, F> {
    every: &'a ClauseSet,
    by_name: LazyCell<&'a ClauseSet, F>,
}

// === impl Factor ===

impl<'a, F: FnOnce() -> &'a ClauseSet> Factor<'a, F> {
    #[inline]
    pub(super) fn new(every: &'a ClauseSet, look_up: F) -> Self {
        Self { every, by_name: LazyCell::new(look_up) }
    }

    /// The bits at a place that list the value.
    #[inline]
    pub(super) fn narrow(&self, place: BitmapPlace, bits: u64) -> u64 {
        // Both for the words of a block and for the clauses of a word: what lists every value needs no look-up.
        let every = bits & self.every.at(place);
        if every == bits { bits } else { every | bits & self.by_name.at(place) }
    }
}
