//! `Batches`: gathers the log lines or spans of a worker, and hands them over in large pieces. Nothing on the request path waits
//! for the consumer: if it is too slow, items are lost and counted.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Whole items, written one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) items: u64,
}

/// The consumer of batches. It must not block.
pub(super) trait TakeBatches: fmt::Debug {
    /// Takes a batch, or gives it back if too many wait already.
    fn take(&self, batch: Batch) -> Result<(), Batch>;

    /// An empty buffer for the next batch.
    fn buffer(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Notes how many items were lost.
    fn note_lost(&self, items: u64);
}

/// The batch that is being filled, and its consumer.
#[derive(Debug)]
pub(super) struct Batches<T: TakeBatches> {
    batch: Batch,
    /// Whether there was no room for an item, as until the consumer takes the batch.
    is_full: bool,
    taker: T,
}

/// Room for batches in a queue, by the memory that they have. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct QueueRoom(Arc<Semaphore>);

/// A batch in a queue. Its room is free again when it is dropped.
#[derive(Debug)]
pub(super) struct QueuedBatch {
    pub(super) batch: Batch,
    _room: OwnedSemaphorePermit,
}

/// A batch with so many bytes is handed over. Waking up another thread costs more than what it then does with a small one.
pub(super) const BATCH_BYTES: usize = 64 * 1024;
/// The most memory of a batch that has not been taken.
const BATCH_BYTES_MAX: usize = 256 * 1024;
/// The memory of all batches in a queue.
const QUEUE_BYTES_MAX: usize = 8 * 1024 * 1024;

// === impl Batches ===

impl<T: TakeBatches> Batches<T> {
    pub(super) fn new(taker: T) -> Self {
        Self { batch: Batch::default(), is_full: false, taker }
    }

    /// Writes so many items.
    pub(super) fn put(&mut self, items: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_full && !self.send() {
            return self.taker.note_lost(items);
        }
        let length_before = self.batch.bytes.len();
        write(&mut self.batch.bytes);
        self.batch.items += items;
        if self.batch.bytes.len() < BATCH_BYTES || self.send() {
            return;
        }
        if self.batch.bytes.len() > BATCH_BYTES_MAX {
            self.is_full = true;
            self.batch.bytes.truncate(length_before);
            self.batch.items -= items;
            self.taker.note_lost(items);
        }
        // A buffer doubles when it grows.
        self.batch.bytes.shrink_to(BATCH_BYTES_MAX);
    }

    /// Hands over the batch, and begins another one. Returns whether it was taken.
    pub(super) fn send(&mut self) -> bool {
        if self.batch.items > 0 {
            if let Err(batch) = self.taker.take(std::mem::take(&mut self.batch)) {
                self.batch = batch;
                return false;
            }
            self.batch.bytes = self.taker.buffer();
        }
        self.is_full = false;
        true
    }
}

impl<T: TakeBatches> Drop for Batches<T> {
    fn drop(&mut self) {
        if !self.send() {
            self.taker.note_lost(self.batch.items);
        }
    }
}

// === impl QueueRoom ===

impl QueueRoom {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(QUEUE_BYTES_MAX)))
    }

    /// Finds room for a batch, or gives it back.
    pub(super) fn admit(&self, batch: Batch) -> Result<QueuedBatch, Batch> {
        let Ok(bytes) = u32::try_from(batch.bytes.capacity()) else { return Err(batch) };
        match Arc::clone(&self.0).try_acquire_many_owned(bytes) {
            Ok(room) => Ok(QueuedBatch { batch, _room: room }),
            Err(_) => Err(batch),
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
        assert!(batches.batch.bytes.len() > BATCH_BYTES && batches.batch.bytes.capacity() <= BATCH_BYTES_MAX);
        drop(batches);
        let handed = taker.taken.borrow();
        assert!(handed.iter().all(|batch| batch.bytes.len() as u64 == 100 * batch.items));
        let kept: u64 = handed.iter().map(|batch| batch.items).sum();
        assert_eq!((handed.len(), kept + taker.lost.get()), (2, items));
    }

    #[test]
    fn large_items_that_nobody_takes_are_bounded_too() {
        let taker = Taker::default();
        let mut batches = Batches::new(&taker);
        let put = |batches: &mut Batches<&Taker>, length| batches.put(1, |out| out.resize(out.len() + length, b'x'));
        // No writer takes the batch, but there is room to keep it.
        put(&mut batches, 200 * 1024);
        assert_eq!(taker.lost.get(), 0);
        for length in [300 * 1024, 100 * 1024, 10] {
            put(&mut batches, length);
            assert!(batches.batch.bytes.capacity() <= BATCH_BYTES_MAX, "{}", batches.batch.bytes.capacity());
        }
        assert_eq!((taker.lost.get(), batches.batch.items, batches.batch.bytes.len()), (3, 1, 200 * 1024));
        // An item of any size has room if a consumer is waiting for it.
        taker.room.set(3);
        put(&mut batches, 10);
        put(&mut batches, 300 * 1024);
        drop(batches);
        let lengths: Vec<_> = taker.taken.borrow().iter().map(|batch| batch.bytes.len()).collect();
        assert_eq!((taker.lost.get(), &lengths[..]), (3, &[200 * 1024, 10 + 300 * 1024][..]));
    }

    #[test]
    fn what_waits_in_a_queue_is_bounded_by_its_memory() {
        let room = QueueRoom::new();
        let batch = || Batch { bytes: Vec::with_capacity(300 * 1024), items: 1 };
        let mut waiting: Vec<_> = std::iter::repeat_with(|| room.admit(batch())).map_while(Result::ok).collect();
        assert_eq!(waiting.len(), QUEUE_BYTES_MAX / (300 * 1024));
        assert!(room.clone().admit(batch()).is_err());
        waiting.pop();
        assert!(room.admit(batch()).is_ok());
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
