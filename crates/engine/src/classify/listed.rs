//! Which clauses list a text (FM-10).

use super::clause_set::{ClauseSet, EMPTY};
use super::factor::Factor;
use super::names::Names;

/// The one entry of a list that lists every text.
const EVERY: &str = "*";

/// For one attribute of requests: which clauses list which of its values.
#[derive(Debug, Default)]
pub(super) struct Listed {
    names: Names,
    by_name: Vec<ClauseSet>,
    every: ClauseSet,
}

/// Whether a list lists every text: it must have one entry only, which is `*` (FM-10).
pub(super) fn lists_every(list: &[String]) -> bool {
    matches!(list, [only] if only == EVERY)
}

/// The set at an index, which is made first if need be.
pub(super) fn set_at(sets: &mut Vec<ClauseSet>, index: usize) -> Option<&mut ClauseSet> {
    if sets.len() <= index {
        sets.resize_with(index + 1, ClauseSet::default);
    }
    sets.get_mut(index)
}

// === impl Listed ===

impl Listed {
    /// Adds the texts that a clause lists.
    pub(super) fn add(&mut self, list: &[String], clause: usize) {
        if lists_every(list) {
            self.every.push(clause);
            return;
        }
        for text in list {
            self.add_one(text, clause);
        }
    }

    /// Adds one text that a clause lists; `*` is a text like any other here.
    pub(super) fn add_one(&mut self, text: &str, clause: usize) {
        let number = self.names.add(0, text);
        if let Some(set) = set_at(&mut self.by_name, number) {
            set.push(clause);
        }
    }

    /// The clauses that list that text by name.
    #[inline]
    pub(super) fn by_name(&self, text: &str) -> Option<&ClauseSet> {
        self.by_name.get(self.names.get(0, text)?)
    }

    /// The clauses that list that text in one way or the other.
    #[inline]
    pub(super) fn factor<'a>(&'a self, text: &'a str) -> Factor<'a, impl FnOnce() -> &'a ClauseSet> {
        Factor::new(&self.every, move || self.by_name(text).unwrap_or(&EMPTY))
    }

    /// The same, except that for the empty text it is the given clauses, and no others.
    #[inline]
    pub(super) fn factor_unless_empty<'a>(
        &'a self,
        text: &'a str,
        if_empty: &'a ClauseSet,
    ) -> Factor<'a, impl FnOnce() -> &'a ClauseSet> {
        let every = if text.is_empty() { if_empty } else { &self.every };
        Factor::new(every, move || match text {
            "" => &EMPTY,
            _ => self.by_name(text).unwrap_or(&EMPTY),
        })
    }
}
