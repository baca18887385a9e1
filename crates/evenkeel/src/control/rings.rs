//! `Rings`: a ring for each of many writers, with one reader of all.

use std::sync::Arc;

use crate::control::ring::{Cursor, Ring};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The rings of all writers.
#[derive(Debug)]
pub(crate) struct Rings<const W: usize> {
    rings: Mutex<Vec<Arc<Ring<W>>>>,
    limits: RingLimits,
}

/// How many rings there may be, and how long they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingLimits {
    /// The records of a long one.
    pub(crate) records: usize,
    /// How many writers have long rings: a server has a thread for each core, and few levels that are busy. Others have rings of
    /// a sixteenth.
    pub(crate) long: usize,
    /// How many writers have a ring at all.
    pub(crate) all: usize,
}

/// How many short rings are as long as a long one.
const SHORTER: usize = 16;

// === impl Rings ===

impl<const W: usize> Rings<W> {
    pub(crate) fn new(limits: RingLimits) -> Self {
        Self { rings: Mutex::new(Vec::new()), limits }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Ring<W>>>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ring of another writer; `None` if there are too many.
    pub(crate) fn add(&self) -> Option<Arc<Ring<W>>> {
        let mut rings = self.lock();
        // Threads and levels come and go: the ring of one that is gone gets another writer, and goes on where it was.
        let left = rings.iter_mut().find_map(|ring| Arc::get_mut(ring).is_some().then(|| Arc::clone(ring)));
        if left.is_some() {
            return left;
        }
        let RingLimits { records, long, all } = self.limits;
        if rings.len() >= all {
            return None;
        }
        let ring = Arc::new(Ring::new(if rings.len() < long { records } else { records / SHORTER }));
        rings.push(Arc::clone(&ring));
        Some(ring)
    }

    /// Adds what has been written. Tells how many records are missing.
    pub(crate) fn read(&self, cursors: &mut Vec<Cursor>, to: &mut Vec<[u64; W]>) -> u64 {
        let rings = self.lock().len();
        cursors.resize(rings, Cursor::default());
        let read = |(place, cursor): (usize, &mut Cursor)| self.ring(place).map_or(0, |ring| ring.read(cursor, to));
        cursors.iter_mut().enumerate().map(read).sum()
    }

    /// One ring. The others can get other writers while this one is read.
    fn ring(&self, place: usize) -> Option<Arc<Ring<W>>> {
        self.lock().get(place).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::run_test;

    #[test]
    fn writers_that_are_gone_make_room_for_others() {
        run_test(|| {
            let rings = Rings::<2>::new(RingLimits { records: 64, long: 2, all: 2 });
            let (mut cursors, mut read) = (Vec::new(), Vec::new());
            for number in 0..5 {
                let (one, other) = (rings.add().unwrap(), rings.add().unwrap());
                assert!(rings.add().is_none(), "there are two writers");
                one.push([number, 1]);
                other.push([number, 2]);
                if number % 2 == 0 {
                    assert_eq!(rings.read(&mut cursors, &mut read), 0);
                }
            }
            // Nothing of those that are gone is lost.
            read.sort_unstable();
            let all: Vec<[u64; 2]> = (0..5).flat_map(|number| [[number, 1], [number, 2]]).collect();
            assert_eq!(read, all);
        });
    }
}
