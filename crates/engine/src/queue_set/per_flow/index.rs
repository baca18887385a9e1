//! The numbers of flows by their identity: a hash table.

use std::hash::{BuildHasher, RandomState};

/// A hash table with linear probing. A look-up touches one cache line nearly always.
///
/// Clients choose names, and with them identities. Each table has a secret of its own, so that nobody can choose names which
/// are next to each other in it. Nothing that is decided depends on the secret.
#[derive(Debug)]
pub(super) struct FlowIndex {
    /// A power of two of them.
    entries: Vec<IndexEntry>,
    len: usize,
    /// An odd number.
    secret: u64,
    /// 64 less the logarithm of the number of entries.
    shift: u32,
}

/// The identity of a flow, multiplied by the secret, and the number of the flow. No other identity has the same product, since the
/// secret is odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(16))]
struct IndexEntry {
    mixed: u64,
    number: u32,
}

const NOBODY: u32 = u32::MAX;
const EMPTY: IndexEntry = IndexEntry { mixed: 0, number: NOBODY };
const CAPACITY_MIN: usize = 16;

// === impl FlowIndex ===

impl FlowIndex {
    pub(super) fn new() -> Self {
        Self::with_secret(RandomState::new().hash_one(0))
    }

    fn with_secret(secret: u64) -> Self {
        Self { entries: vec![EMPTY; CAPACITY_MIN], len: 0, secret: secret | 1, shift: 64 - CAPACITY_MIN.ilog2() }
    }

    /// The number of the flow of that identity.
    #[inline]
    pub(super) fn get(&self, hash: u64) -> Option<u32> {
        let mixed = self.mix(hash);
        let mut place = self.home(mixed);
        loop {
            let entry = self.entries[place];
            if entry.number == NOBODY {
                return None;
            }
            if entry.mixed == mixed {
                return Some(entry.number);
            }
            place = self.after(place);
        }
    }

    /// Adds a flow that is not in it.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        // A quarter stays empty, so that it is never far to an empty place.
        if 4 * (self.len + 1) > 3 * self.entries.len() {
            self.grow();
        }
        self.len += 1;
        self.put(IndexEntry { mixed: self.mix(hash), number });
    }

    /// Removes a flow that is in it. Those behind it move up, so that no gaps are left.
    #[inline]
    pub(super) fn remove(&mut self, hash: u64, number: u32) {
        let mut gap = self.home(self.mix(hash));
        while self.entries[gap].number != number {
            if self.entries[gap].number == NOBODY {
                return;
            }
            gap = self.after(gap);
        }
        self.len -= 1;
        let mut place = gap;
        loop {
            place = self.after(place);
            let entry = self.entries[place];
            if entry.number == NOBODY {
                break;
            }
            // An entry whose home is behind the gap, or that is in its home already, stays.
            let mask = self.entries.len() - 1;
            let (from_home, from_gap) = (place.wrapping_sub(self.home(entry.mixed)), place.wrapping_sub(gap));
            if from_home & mask >= from_gap & mask {
                self.entries[gap] = entry;
                gap = place;
            }
        }
        self.entries[gap] = EMPTY;
    }

    fn put(&mut self, entry: IndexEntry) {
        let mut place = self.home(entry.mixed);
        while self.entries[place].number != NOBODY {
            place = self.after(place);
        }
        self.entries[place] = entry;
    }

    #[cold]
    fn grow(&mut self) {
        let size = 2 * self.entries.len();
        self.shift -= 1;
        let before = std::mem::replace(&mut self.entries, vec![EMPTY; size]);
        before.into_iter().filter(|entry| entry.number != NOBODY).for_each(|entry| self.put(entry));
    }

    #[inline]
    fn mix(&self, hash: u64) -> u64 {
        hash.wrapping_mul(self.secret)
    }

    /// Where an entry belongs: by its upper bits, which depend on all bits of the identity.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it is less than the number of entries")]
    fn home(&self, mixed: u64) -> usize {
        (mixed >> self.shift) as usize
    }

    #[inline]
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.entries.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Flows come and go. The identities are such that many are at home in the same few places.
        #[test]
        fn a_flow_is_found_from_insertion_to_removal(
            steps in prop::collection::vec((0_u64..60, any::<bool>()), 1..400),
            shift in prop::sample::select(vec![0_u32, 40, 58]),
            secret in prop::sample::select(vec![1_u64, 0x9e37_79b9_7f4a_7c15]),
        ) {
            let mut index = FlowIndex::with_secret(secret);
            let (mut plain, mut numbers) = (BTreeMap::new(), 0..);
            for (identity, is_there) in steps {
                let hash = identity << shift;
                match plain.get(&hash).copied() {
                    None if is_there => {
                        let number = numbers.next().unwrap();
                        index.insert(hash, number);
                        plain.insert(hash, number);
                    }
                    Some(number) if !is_there => {
                        index.remove(hash, number);
                        plain.remove(&hash);
                    }
                    _ => {}
                }
                for identity in 0..60 {
                    let hash = identity << shift;
                    let found = index.get(hash);
                    prop_assert_eq!(found, plain.get(&hash).copied());
                }
                prop_assert_eq!(index.len, plain.len());
            }
        }
    }
}
