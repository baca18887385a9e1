//! A table of names that gives each a small number.

use super::text_hash::{is_same, text_hash};

/// Names and their numbers, counted from 0 in the order in which they were added.
///
/// A name lives in a scope, so that one table can hold the children of every node of a tree.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Open addressing with linear probing; a power of two in length, at most half full. Each slot has some bits of the
    /// hash, so that a name that is not there is told by the slots alone, and the number of an entry plus one.
    slots: Vec<Slot>,
    entries: Vec<NameEntry>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u64,
    entry: usize,
}

#[derive(Debug)]
struct NameEntry {
    scope: usize,
    text: Box<str>,
}

// === impl Names ===

impl Names {
    /// The number of a name.
    #[inline]
    pub(super) fn get(&self, scope: usize, text: &str) -> Option<usize> {
        // Without names there is nothing to hash for.
        let last = self.slots.len().checked_sub(1)?;
        let hash = text_hash(scope, text);
        let mut place = first_place(hash, last);
        loop {
            let slot = self.slots.get(place)?;
            let number = slot.entry.checked_sub(1)?;
            if slot.hash == hash {
                let entry = self.entries.get(number)?;
                if entry.scope == scope && is_same(&entry.text, text) {
                    return Some(number);
                }
            }
            place = (place + 1) & last;
        }
    }

    /// The number of a name, which is added if it is new.
    pub(super) fn add(&mut self, scope: usize, text: &str) -> usize {
        if let Some(number) = self.get(scope, text) {
            return number;
        }
        let number = self.entries.len();
        self.entries.push(NameEntry { scope, text: text.into() });
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        } else {
            self.place(number);
        }
        number
    }

    fn grow(&mut self) {
        self.slots = vec![Slot::default(); (self.slots.len() * 2).max(8)];
        for number in 0..self.entries.len() {
            self.place(number);
        }
    }

    fn place(&mut self, number: usize) {
        let (Some(last), Some(entry)) = (self.slots.len().checked_sub(1), self.entries.get(number)) else { return };
        let hash = text_hash(entry.scope, &entry.text);
        let mut place = first_place(hash, last);
        while let Some(slot) = self.slots.get_mut(place) {
            if slot.entry == 0 {
                *slot = Slot { hash, entry: number + 1 };
                return;
            }
            place = (place + 1) & last;
        }
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
fn first_place(hash: u64, last: usize) -> usize {
    hash as usize & last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_and_in_order() {
        let mut names = Names::default();
        assert_eq!(names.get(0, "a"), None);
        let texts: Vec<String> = (0..1000).map(|number| format!("name-{number}")).collect();
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(names.add(number % 3, text), number);
        }
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(names.add(number % 3, text), number);
            assert_eq!(names.get(number % 3, text), Some(number));
            assert_eq!(names.get(number % 3 + 1, text), None, "another scope");
        }
        assert_eq!(names.get(0, "name-1000"), None);
    }
}
