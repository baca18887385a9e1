//! Sets of clauses, and the search for the first clause that is in all of some sets.
//!
//! A *clause* is one resource rule or non-resource rule of a flow schema together with the subjects of its rule. Clauses
//! are numbered in match order, so the first clause that a request fits belongs to the flow schema that it goes to.
//!
//! A set is a bitmap of which only the words that are not zero are kept. Sixty-four words make a block, and one word for
//! each block says which of its words are kept: one `and` over these rules out up to 4,096 clauses at once.

/// Bits in a word, and words in a block.
const WIDTH: usize = 64;

/// A set of clauses, in ascending order.
#[derive(Debug, Default)]
pub(super) struct ClauseSet {
    /// The first word of the first block: for most configurations there is no other, and it decides most requests.
    start: u64,
    /// Most sets lie in one block.
    first: Block,
    further: Vec<Block>,
    words: Vec<u64>,
}

/// The words of a set that lie in one block.
#[derive(Debug, Default)]
struct Block {
    number: usize,
    /// Bit `i` is set if word `i` of the block is not zero.
    occupied: u64,
    /// Where the words of this block start.
    words_from: usize,
}

/// The set of no clause.
pub(super) static EMPTY: ClauseSet = ClauseSet {
    start: 0,
    first: Block { number: 0, occupied: 0, words_from: 0 },
    further: Vec::new(),
    words: Vec::new(),
};

/// Where to look in a set: at the first word of all, at the words that one block has, or at one of its words.
#[derive(Debug, Clone, Copy)]
pub(super) enum BitmapPlace {
    Start,
    Block(usize),
    Word(usize, u32),
}

/// The first clause that is in one of the sets and that `narrow` lets through.
///
/// `narrow` is given a place and the bits there that are still possible, and takes away those that are not. It is asked
/// about the first word of all, and after that about whole blocks. Blocks and words in which the sets have no clause
/// cost nothing.
#[inline]
pub(super) fn first_of(sets: &[&ClauseSet], narrow: impl Fn(BitmapPlace, u64) -> u64 + Copy) -> Option<usize> {
    let start = union_at(sets, BitmapPlace::Start);
    let bits = if start == 0 { 0 } else { narrow(BitmapPlace::Start, start) };
    if bits != 0 { Some(bits.trailing_zeros() as usize) } else { first_in_blocks(sets, narrow) }
}

fn first_in_blocks(sets: &[&ClauseSet], narrow: impl Fn(BitmapPlace, u64) -> u64) -> Option<usize> {
    let mut from = 0;
    while let Some(block) = sets.iter().filter_map(|set| set.next_block(from)).min() {
        let place = BitmapPlace::Block(block);
        let mut occupied = union_at(sets, place);
        // With one word to look at, looking at the block first is of no use.
        if !occupied.is_power_of_two() {
            occupied = narrow(place, occupied);
        }
        while occupied != 0 {
            let word = occupied.trailing_zeros();
            let place = BitmapPlace::Word(block, word);
            let bits = narrow(place, union_at(sets, place));
            if bits != 0 {
                let (word, bit) = (word as usize, bits.trailing_zeros() as usize);
                return Some((block * WIDTH + word) * WIDTH + bit);
            }
            occupied &= occupied - 1;
        }
        from = block + 1;
    }
    None
}

/// The bits that at least one of the sets has at a place.
#[inline]
pub(super) fn union_at(sets: &[&ClauseSet], place: BitmapPlace) -> u64 {
    sets.iter().fold(0, |any, set| any | set.at(place))
}

// === impl ClauseSet ===

impl ClauseSet {
    /// Adds a clause, which must not precede the last one.
    pub(super) fn push(&mut self, clause: usize) {
        let (word, bit) = (clause / WIDTH, clause % WIDTH);
        if word == 0 {
            self.start |= 1 << bit;
        }
        let (number, word) = (word / WIDTH, word % WIDTH);
        if self.is_empty() {
            self.first.number = number;
        }
        if self.further.last().unwrap_or(&self.first).number != number {
            self.further.push(Block { number, occupied: 0, words_from: self.words.len() });
        }
        let block = self.further.last_mut().unwrap_or(&mut self.first);
        let mask = 1 << word;
        if block.occupied & mask == 0 {
            block.occupied |= mask;
            self.words.push(0);
        }
        if let Some(last) = self.words.last_mut() {
            *last |= 1 << bit;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The first block from that one on in which there are clauses.
    #[inline]
    fn next_block(&self, from: usize) -> Option<usize> {
        if self.first.number >= from {
            return Some(self.first.number).filter(|_| !self.is_empty());
        }
        let index = self.further.partition_point(|block| block.number < from);
        self.further.get(index).map(|block| block.number)
    }

    #[inline]
    fn block(&self, number: usize) -> Option<&Block> {
        if self.first.number == number {
            return Some(&self.first);
        }
        let index = self.further.binary_search_by_key(&number, |block| block.number).ok()?;
        self.further.get(index)
    }

    /// The bits of the set at a place.
    #[inline]
    pub(super) fn at(&self, place: BitmapPlace) -> u64 {
        match place {
            BitmapPlace::Start => self.start,
            BitmapPlace::Block(block) => self.block(block).map_or(0, |block| block.occupied),
            BitmapPlace::Word(block, word) => self.word(block, word),
        }
    }

    #[inline]
    fn word(&self, block: usize, word: u32) -> u64 {
        let Some(block) = self.block(block) else { return 0 };
        let mask = 1 << word;
        if block.occupied & mask == 0 {
            return 0;
        }
        let before = (block.occupied & (mask - 1)).count_ones() as usize;
        self.words.get(block.words_from + before).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(clauses: &[usize]) -> ClauseSet {
        let mut set = ClauseSet::default();
        for clause in clauses {
            set.push(*clause);
        }
        set
    }

    /// The first clause that is in at least one set of each union.
    fn first_in_all(unions: &[Vec<&ClauseSet>]) -> Option<usize> {
        first_of(&unions[0], |place, bits| unions.iter().fold(bits, |bits, union| bits & union_at(union, place)))
    }

    #[test]
    fn the_first_clause_that_all_unions_have() {
        let (a, b, c) = (set(&[1, 70, 5000, 9000]), set(&[70, 9000]), set(&[2, 9000, 9001]));
        assert_eq!(first_in_all(&[vec![&a]]), Some(1));
        assert_eq!(first_in_all(&[vec![&a], vec![&b]]), Some(70));
        assert_eq!(first_in_all(&[vec![&a], vec![&b], vec![&c]]), Some(9000));
        assert_eq!(first_in_all(&[vec![&a], vec![&b, &c]]), Some(70));
        assert_eq!(first_in_all(&[vec![&b], vec![&EMPTY]]), None);
        assert_eq!(first_in_all(&[vec![], vec![&b]]), None);
    }

    #[test]
    fn a_clause_may_be_added_twice() {
        assert_eq!(set(&[3, 3, 200, 200]).words, [8, 1 << 8]);
    }

    proptest! {
        #[test]
        fn agrees_with_sets_of_the_standard_library(
            unions in prop::collection::vec(
                prop::collection::vec(prop::collection::btree_set(0_usize..20_000, 0..400), 1..4), 3
            ),
        ) {
            let built: Vec<Vec<ClauseSet>> = unions.iter().map(|union| {
                union.iter().map(|set| self::set(&set.iter().copied().collect::<Vec<_>>())).collect()
            }).collect();
            let refs: Vec<Vec<&ClauseSet>> = built.iter().map(|union| union.iter().collect()).collect();
            let plain: Vec<BTreeSet<usize>> = unions.iter().map(|union| union.iter().flatten().copied().collect()).collect();
            let expected = plain[0].iter().copied().find(|clause| plain.iter().all(|set| set.contains(clause)));
            prop_assert_eq!(first_in_all(&refs), expected);
        }
    }
}
