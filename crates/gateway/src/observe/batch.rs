//! `Batches`: gathers what a worker writes about its requests, and hands it over in large pieces. Nothing on the request path waits
//! for whoever takes them: if that is too slow, items are lost and counted.

use std::fmt;

/// Whole items, written one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) items: u64,
}

/// Who takes batches, and must not make anybody wait.
pub(super) trait TakeBatches: fmt::Debug {
    /// Takes a batch, or gives it back if too many wait already.
    fn take(&self, batch: Batch) -> Result<(), Batch>;

    /// An empty buffer for the next batch.
    fn buffer(&self) -> Vec<u8> {
        Vec::new()
    }

    /// So many items were lost.
    fn note_lost(&self, items: u64);
}

/// The batch that is being filled, and who takes it.
#[derive(Debug)]
pub(super) struct Batches<T: TakeBatches> {
    batch: Batch,
    taker: T,
}

/// A batch with so many bytes is handed over. Waking up another thread costs more than what it then does with a small one.
const BATCH_BYTES: usize = 64 * 1024;
/// A batch with so many bytes, which nobody has taken, takes no more items.
const BATCH_BYTES_MAX: usize = 256 * 1024;

// === impl Batches ===

impl<T: TakeBatches> Batches<T> {
    pub(super) fn new(taker: T) -> Self {
        Self { batch: Batch::default(), taker }
    }

    /// Writes so many items.
    pub(super) fn put(&mut self, items: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.batch.bytes.len() >= BATCH_BYTES_MAX && !self.hand_over() {
            return self.taker.note_lost(items);
        }
        write(&mut self.batch.bytes);
        self.batch.items += items;
        if self.batch.bytes.len() >= BATCH_BYTES {
            self.hand_over();
        }
    }

    /// Hands over what there is, and begins another batch. Whether it was taken.
    pub(super) fn hand_over(&mut self) -> bool {
        if self.batch.items == 0 {
            return true;
        }
        match self.taker.take(std::mem::take(&mut self.batch)) {
            Ok(()) => {
                self.batch.bytes = self.taker.buffer();
                true
            }
            Err(batch) => {
                self.batch = batch;
                false
            }
        }
    }
}

impl<T: TakeBatches> Drop for Batches<T> {
    fn drop(&mut self) {
        if !self.hand_over() {
            self.taker.note_lost(self.batch.items);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[derive(Debug, Default)]
    struct Taker {
        room: Cell<usize>,
        taken: RefCell<Vec<Batch>>,
        lost: Cell<u64>,
    }

    impl TakeBatches for &Taker {
        fn take(&self, batch: Batch) -> Result<(), Batch> {
            if self.room.get() == 0 {
                return Err(batch);
            }
            self.room.set(self.room.get() - 1);
            self.taken.borrow_mut().push(batch);
            Ok(())
        }

        fn note_lost(&self, items: u64) {
            self.lost.set(self.lost.get() + items);
        }
    }

    #[test]
    fn what_nobody_takes_is_bounded_and_counted() {
        let taker = Taker::default();
        taker.room.set(2);
        let mut batches = Batches::new(&taker);
        let items = 10_000;
        for _ in 0..items {
            batches.put(1, |out| out.extend_from_slice(&[b'x'; 100]));
        }
        assert!(batches.batch.bytes.len() <= BATCH_BYTES_MAX + 100);
        drop(batches);
        let handed = taker.taken.borrow();
        assert!(handed.iter().all(|batch| batch.bytes.len() as u64 == 100 * batch.items));
        let kept: u64 = handed.iter().map(|batch| batch.items).sum();
        assert_eq!((handed.len(), kept + taker.lost.get()), (2, items));
    }

    #[test]
    fn the_last_batch_is_handed_over_at_the_end() {
        let taker = Taker::default();
        taker.room.set(1);
        let mut batches = Batches::new(&taker);
        batches.put(3, |out| out.push(b'x'));
        drop(batches);
        assert_eq!((taker.taken.borrow()[0].items, taker.lost.get()), (3, 0));
    }
}
