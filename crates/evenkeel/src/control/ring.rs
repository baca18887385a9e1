//! `Ring`: the last records of one writer, for readers that look at them from other threads without stopping it.
//!
//! The writer never waits: it overwrites the oldest record. A reader copies records, and then looks how far the writer has come:
//! records that may have been overwritten meanwhile are not returned, and count as missed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The last records of one writer, each of `W` words.
///
/// Only one thread may [push](Self::push) at a time. With two, records get mixed up; nothing worse can happen.
#[derive(Debug)]
pub(crate) struct Ring<const W: usize> {
    /// Each is made when its first record is written: most rings never get full.
    chunks: Box<[OnceLock<Chunk<W>>]>,
    /// How many records there are, a power of two, less one.
    mask: u64,
    /// How many records have been written.
    written: AtomicU64,
}

/// The words of some records.
type Chunk<const W: usize> = Box<[[AtomicU64; W]]>;

/// So many records are in a chunk.
const CHUNK: usize = 1 << 10;

/// How far a reader has come in a ring.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor(u64);

// === impl Ring ===

impl<const W: usize> Ring<W> {
    /// A ring that keeps so many records, or up to half of them less.
    pub(crate) fn new(records: usize) -> Self {
        let records = 1 << records.max(2).ilog2();
        let chunks = (0..usize::div_ceil(records, CHUNK)).map(|_| OnceLock::new()).collect();
        Self { chunks, mask: records as u64 - 1, written: AtomicU64::new(0) }
    }

    /// Writes a record.
    #[inline]
    pub(crate) fn push(&self, record: [u64; W]) {
        let written = self.written.load(Ordering::Relaxed);
        let (chunk, place) = self.place(written);
        // A reader that sees a word of this record also sees, behind its own fence, that the record before is complete.
        fence(Ordering::Release);
        let words = self.chunks.get(chunk).map(|chunk| chunk.get_or_init(|| self.make_chunk()));
        if let Some(words) = words.and_then(|words| words.get(place)) {
            words.iter().zip(record).for_each(|(word, new)| word.store(new, Ordering::Relaxed));
        }
        self.written.store(written + 1, Ordering::Release);
    }

    #[cold]
    fn make_chunk(&self) -> Chunk<W> {
        let records = CHUNK.min(usize::try_from(self.mask).map_or(CHUNK, |mask| mask + 1));
        (0..records).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect()
    }

    /// Where the record of that number is.
    #[inline]
    fn place(&self, number: u64) -> (usize, usize) {
        let index = usize::try_from(number & self.mask).unwrap_or(0);
        (index / CHUNK, index % CHUNK)
    }

    /// Adds what was written since the cursor to `to`, in its order. Tells how many records are missing before those: the writer has
    /// overwritten them.
    pub(crate) fn read(&self, cursor: &mut Cursor, to: &mut Vec<[u64; W]>) -> u64 {
        let written = self.written.load(Ordering::Acquire);
        let records = self.mask + 1;
        let first = cursor.0.max(written.saturating_sub(records));
        let begin = to.len();
        for number in first..written {
            let (chunk, place) = self.place(number);
            let words = self.chunks.get(chunk).and_then(|chunk| chunk.get()?.get(place));
            to.push(words.map_or([0; W], |words| {
                std::array::from_fn(|word| words.get(word).map_or(0, |word| word.load(Ordering::Relaxed)))
            }));
        }
        fence(Ordering::Acquire);
        // The record after the last complete one may be half written, in the place of the oldest.
        let intact_from = (self.written.load(Ordering::Relaxed) + 1).saturating_sub(records);
        let torn = intact_from.clamp(first, written) - first;
        to.drain(begin..begin + usize::try_from(torn).unwrap_or(0));
        let missed = first + torn - cursor.0;
        cursor.0 = written;
        missed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_reader_gets_what_was_written_since_and_what_it_missed() {
        let ring = Ring::<2>::new(4);
        let (mut cursor, mut read) = (Cursor::default(), Vec::new());
        (0..3).for_each(|n| ring.push([n, n * n]));
        assert_eq!(ring.read(&mut cursor, &mut read), 0);
        assert_eq!(read, [[0, 0], [1, 1], [2, 4]]);
        read.clear();
        (3..13).for_each(|n| ring.push([n, n * n]));
        // The place of record 9 is the next to be written, and so it is not trusted.
        assert_eq!((ring.read(&mut cursor, &mut read), read.as_slice()), (7, &[[10, 100], [11, 121], [12, 144]][..]));
    }

    #[test]
    fn no_record_is_torn_while_its_writer_goes_on() {
        const RECORDS: u64 = 200_000;
        let ring = Arc::new(Ring::<3>::new(64));
        let writer = {
            let ring = Arc::clone(&ring);
            std::thread::spawn(move || (0..RECORDS).for_each(|n| ring.push([n, n ^ 0x5555, !n])))
        };
        let (mut cursor, mut seen, mut missed, mut next) = (Cursor::default(), 0, 0, 0);
        while seen + missed < RECORDS {
            let mut read = Vec::new();
            missed += ring.read(&mut cursor, &mut read);
            seen += read.len() as u64;
            for [n, mixed, inverse] in read {
                assert_eq!((mixed, inverse), (n ^ 0x5555, !n));
                assert!(n >= next, "records are in their order");
                next = n + 1;
            }
        }
        writer.join().unwrap();
        assert_eq!(seen + missed, RECORDS);
    }
}
