//! `SharedRing`: the last records of any number of writers, in a fixed amount of memory.
//!
//! A writer claims a block of records, fills it, and claims the next one. So the memory goes to those that write, however many threads and levels
//! there are, and writers touch a common word once a block. A claimed block takes the place of the oldest one. The ring keeps the latest time of all
//! records that were overwritten: whatever happened after that time is complete.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};

use evenkeel_engine::time::Nanos;

/// The last records of all writers, each of `W` words.
#[derive(Debug)]
pub(super) struct SharedRing<const W: usize> {
    blocks: Box<[Block<W>]>,
    /// How many blocks have been claimed.
    claimed: AtomicU64,
    /// The latest time of all records that have been overwritten.
    overwritten: AtomicI64,
}

/// Records of one writer.
#[derive(Debug)]
struct Block<const W: usize> {
    /// The number of the claim, counted from 1; 0 if nobody has claimed it.
    claim: AtomicU64,
    /// How many records it has.
    filled: AtomicU64,
    /// The latest time of its records.
    latest: AtomicI64,
    /// Made at the first claim: most servers never need all of them.
    records: OnceLock<Box<[[AtomicU64; W]]>>,
}

/// The block that a writer fills.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockClaim {
    number: u64,
    place: usize,
    filled: usize,
}

/// So many records are in a block.
const BLOCK: usize = 64;
/// The fewest blocks of a ring.
const BLOCKS_MIN: usize = 8;
/// A writer that is slow leaves its block when this part of all blocks was claimed after it: otherwise new records would be
/// overwritten with the old ones beside them.
const SLOW: u64 = 4;
/// Nothing has been overwritten.
const NEVER: Nanos = Nanos::MIN;

// === impl SharedRing ===

impl<const W: usize> SharedRing<W> {
    /// A ring of so many records, in whole blocks.
    pub(super) fn new(records: usize) -> Self {
        let blocks = (records / BLOCK).max(BLOCKS_MIN);
        Self {
            blocks: (0..blocks).map(|_| Block::default()).collect(),
            claimed: AtomicU64::new(0),
            overwritten: AtomicI64::new(NEVER),
        }
    }

    /// Writes a record about something that happened at `at`.
    ///
    /// A writer that is stopped for so long that all other blocks are claimed meanwhile may mix its record with another one. Nothing worse can happen.
    #[inline]
    pub(super) fn push(&self, claim: &mut BlockClaim, at: Nanos, record: [u64; W]) {
        let newer = self.claimed.load(Ordering::Relaxed).wrapping_sub(claim.number);
        if claim.filled >= BLOCK || newer > self.blocks.len() as u64 / SLOW {
            *claim = self.claim();
        }
        let Some(block) = self.blocks.get(claim.place) else { return };
        let words = block.records.get().and_then(|records| records.get(claim.filled));
        if let Some(words) = words {
            words.iter().zip(record).for_each(|(word, new)| word.store(new, Ordering::Relaxed));
        }
        if at > block.latest.load(Ordering::Relaxed) {
            block.latest.store(at, Ordering::Relaxed);
        }
        claim.filled += 1;
        block.filled.store(claim.filled as u64, Ordering::Release);
    }

    #[cold]
    fn claim(&self) -> BlockClaim {
        let before = self.claimed.fetch_add(1, Ordering::Relaxed);
        let place = self.place(before);
        if let Some(block) = self.blocks.get(place) {
            if block.filled.load(Ordering::Acquire) > 0 {
                self.overwritten.fetch_max(block.latest.load(Ordering::Relaxed), Ordering::Release);
            }
            // A reader that finds no records, or another claim, also finds that they have been overwritten.
            block.filled.store(0, Ordering::Release);
            block.latest.store(NEVER, Ordering::Relaxed);
            block.claim.store(before + 1, Ordering::Release);
            // A reader that copies a word of the new records also sees the new claim, behind its own fence.
            fence(Ordering::Release);
            let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
            block.records.get_or_init(|| (0..BLOCK).map(|_| zeros()).collect());
        }
        BlockClaim { number: before + 1, place, filled: 0 }
    }

    fn place(&self, number: u64) -> usize {
        usize::try_from(number % self.blocks.len() as u64).unwrap_or(0)
    }

    /// Adds all records to `to`, those of one writer in their order. Tells the latest time of those that have been overwritten, if any have.
    pub(super) fn read(&self, to: &mut Vec<[u64; W]>) -> Option<Nanos> {
        // The oldest block is the next one to be claimed.
        let oldest = self.place(self.claimed.load(Ordering::Acquire));
        let (newer, older) = self.blocks.split_at(oldest);
        for block in older.iter().chain(newer) {
            block.read(to);
        }
        let overwritten = self.overwritten.load(Ordering::Acquire);
        (overwritten != NEVER).then_some(overwritten)
    }
}

// === impl Block ===

impl<const W: usize> Block<W> {
    fn read(&self, to: &mut Vec<[u64; W]>) {
        let claim = self.claim.load(Ordering::Acquire);
        let filled = usize::try_from(self.filled.load(Ordering::Acquire)).unwrap_or(0);
        let Some(records) = self.records.get() else { return };
        let begin = to.len();
        let copy = |words: &[AtomicU64; W]| {
            std::array::from_fn(|word| words.get(word).map_or(0, |word| word.load(Ordering::Relaxed)))
        };
        to.extend(records.iter().take(filled).map(copy));
        fence(Ordering::Acquire);
        if self.claim.load(Ordering::Relaxed) != claim {
            to.truncate(begin);
        }
    }
}

impl<const W: usize> Default for Block<W> {
    fn default() -> Self {
        Self {
            claim: AtomicU64::new(0),
            filled: AtomicU64::new(0),
            latest: AtomicI64::new(NEVER),
            records: OnceLock::new(),
        }
    }
}

// === impl BlockClaim ===

impl Default for BlockClaim {
    /// A block that is full, so that the first record claims one.
    fn default() -> Self {
        Self { number: 0, place: 0, filled: BLOCK }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn times(ring: &SharedRing<2>) -> (Option<Nanos>, Vec<u64>) {
        let mut read = Vec::new();
        let overwritten = ring.read(&mut read);
        (overwritten, read.into_iter().map(|[at, _]| at).collect())
    }

    #[test]
    fn fr_1_the_newest_records_are_kept_and_what_was_overwritten_is_told() {
        let (ring, mut claim) = (SharedRing::<2>::new(0), BlockClaim::default());
        let mut push = |at: u64| ring.push(&mut claim, at.cast_signed(), [at, !at]);
        let all = BLOCK as u64 * BLOCKS_MIN as u64;
        (0..all).for_each(&mut push);
        assert_eq!(times(&ring), (None, (0..all).collect()));
        // The first record more takes the place of a block.
        push(all);
        let block = BLOCK as u64;
        assert_eq!(times(&ring), (Some(block.cast_signed() - 1), (block..=all).collect()));
    }

    #[test]
    fn fr_1_a_slow_writer_does_not_shorten_the_window() {
        let ring = SharedRing::<2>::new(0);
        let (mut slow, mut busy) = (BlockClaim::default(), BlockClaim::default());
        for at in 0..10_000_u64 {
            let claim = if at % 100 == 0 { &mut slow } else { &mut busy };
            ring.push(claim, at.cast_signed(), [at, 0]);
        }
        let (overwritten, times) = times(&ring);
        let complete_from = u64::try_from(overwritten.unwrap() + 1).unwrap();
        let mut kept: Vec<u64> = times.into_iter().filter(|at| *at >= complete_from).collect();
        kept.sort_unstable();
        assert_eq!(kept, (complete_from..10_000).collect::<Vec<_>>());
        // Three quarters of the blocks, less those that are not full.
        assert!(kept.len() >= BLOCK * BLOCKS_MIN / 2, "{}", kept.len());
    }

    #[test]
    fn fr_1_no_record_is_torn_while_writers_go_on() {
        const RECORDS: u64 = 100_000;
        let ring = Arc::new(SharedRing::<3>::new(BLOCK * 64));
        let writer = |number: u64| {
            let ring = Arc::clone(&ring);
            std::thread::spawn(move || {
                let mut claim = BlockClaim::default();
                for n in 0..RECORDS {
                    ring.push(&mut claim, n.cast_signed(), [number << 32 | n, n ^ 0x5555, !n]);
                }
            })
        };
        let writers = [writer(0), writer(1)];
        for _ in 0..50 {
            let mut read = Vec::new();
            ring.read(&mut read);
            for [n, mixed, inverse] in read {
                let n = n & 0xFFFF_FFFF;
                assert_eq!((mixed, inverse), (n ^ 0x5555, !n));
            }
        }
        for writer in writers {
            writer.join().unwrap();
        }
    }
}
