//! A memory of the hashes of recent flows.
//!
//! The same few flows come again and again, and SHA-256 is slow beside a comparison. What is remembered is a pure
//! function of the whole key, so the result is always the same as without it, whatever the configuration. Every
//! thread has a memory of its own, of a fixed size: there is nothing to share, to lock or to clear. A client that makes
//! its names collide only makes its own hashes be worked out each time.

use std::cell::RefCell;

use super::BLOCK_LENGTH;

/// A text with its end mark and its length, as SHA-256 takes it in, and its hash.
#[derive(Debug, Clone, Copy)]
struct RememberedHash {
    block: [u8; BLOCK_LENGTH],
    hash: u64,
}

/// How many flows are remembered at most. A power of two.
const ENTRIES: usize = 256;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! {
    /// No text makes a block of zeros, since it has an end mark.
    static ENTRIES_BY_PLACE: RefCell<[RememberedHash; ENTRIES]> =
        const { RefCell::new([RememberedHash { block: [0; BLOCK_LENGTH], hash: 0 }; ENTRIES]) };
}

/// The hash of a block: the remembered one, or the one that is worked out now.
#[inline]
pub(super) fn remembered(block: &[u8; BLOCK_LENGTH], work_out: impl Fn(&[u8; BLOCK_LENGTH]) -> u64) -> u64 {
    let look_up = |entries: &RefCell<[RememberedHash; ENTRIES]>| {
        let mut entries = entries.try_borrow_mut().ok()?;
        let entry = &mut entries[place(block)];
        if !is_same(&entry.block, block) {
            *entry = RememberedHash { block: *block, hash: work_out(block) };
        }
        Some(entry.hash)
    };
    // A thread that is ending has no memory any more.
    ENTRIES_BY_PLACE.try_with(look_up).ok().flatten().unwrap_or_else(|| work_out(block))
}

/// Compares in place: the function of the C library takes as long as the rest of the look-up.
#[inline]
fn is_same(a: &[u8; BLOCK_LENGTH], b: &[u8; BLOCK_LENGTH]) -> bool {
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    let differing = a.iter().zip(b).fold(0, |bits, (a, b)| bits | (u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b)));
    differing == 0
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the lower bits are what is wanted")]
fn place(block: &[u8; BLOCK_LENGTH]) -> usize {
    let (words, _) = block.as_chunks::<16>();
    let mixed = words.iter().fold(MULTIPLIER, |mixed, word| {
        let word = u128::from_le_bytes(*word);
        mixed.rotate_left(23) ^ fold(word as u64 ^ MULTIPLIER, (word >> 64) as u64 ^ !MULTIPLIER)
    });
    fold(mixed, MULTIPLIER) as usize % ENTRIES
}

/// Multiplies, and folds the upper half of the product into the lower one.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn block(text: &str) -> [u8; BLOCK_LENGTH] {
        let mut block = [0; BLOCK_LENGTH];
        block[..text.len()].copy_from_slice(text.as_bytes());
        block[text.len()] = 0x80;
        block
    }

    #[test]
    fn flows_that_share_a_place_keep_their_hashes() {
        // Three times as many as there are places, in two rounds: each is replaced again and again.
        let blocks: Vec<_> = (0..3 * ENTRIES).map(|number| block(&format!("tenant-{number}"))).collect();
        let slow = |block: &[u8; BLOCK_LENGTH]| {
            block.iter().fold(7_u64, |hash, byte| hash * 31 % 1_000_003 + u64::from(*byte))
        };
        for block in blocks.iter().chain(&blocks) {
            assert_eq!(remembered(block, slow), slow(block));
            assert_eq!(remembered(block, |_| panic!("it was worked out just now")), slow(block));
        }
    }

    #[test]
    fn names_that_look_alike_are_spread() {
        let places: HashSet<_> =
            (0..ENTRIES).map(|number| place(&block(&format!("schema\0user-{number:03}")))).collect();
        // Random ones hit 162 different places on average.
        assert!(places.len() > 130, "{} of {ENTRIES} places", places.len());
    }
}
