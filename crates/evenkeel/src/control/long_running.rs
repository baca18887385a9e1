//! The long-running requests of a level: how many there are, and whether there may be one more.
//!
//! Long-running requests give their seats back when they have started, or take none at all, so the seats of a level do not limit them. The
//! annotation `evenkeel.dev/max-long-running` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// How many long-running requests a level has.
#[derive(Debug, Default)]
pub(crate) struct LongRunningCount {
    running: AtomicU32,
    rejected: AtomicU64,
    is_used: AtomicBool,
}

/// A request that counts among the long-running ones of its level for as long as this is kept: see
/// [`Permit::take_long_running`](crate::Permit::take_long_running).
#[must_use = "the request no longer counts when this is dropped"]
#[derive(Debug)]
pub struct LongRunning(Arc<LongRunningCount>);

/// Whether a request counts among the long-running ones, and what holds its place there.
#[derive(Debug)]
pub(crate) struct Counting(AtomicU8);

/// The request does not count.
const NOT: u8 = 0;
/// The request counts as long as it has its permit.
const WITH_PERMIT: u8 = 1;
/// A [`LongRunning`] has been made of it.
const TAKEN: u8 = 2;

// === impl LongRunningCount ===

impl LongRunningCount {
    pub(crate) fn running(&self) -> u32 {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Whether the level has ever had a long-running request.
    #[cfg(feature = "metrics")]
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Counts one more, if there may be so many. If not, it counts as rejected. Either way tells how many others there are.
    pub(crate) fn enter(&self, max: Option<u32>) -> Result<u32, u32> {
        let max = max.unwrap_or(u32::MAX);
        let more = |running: u32| running.checked_add(1).filter(|more| *more <= max);
        let counted = self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        self.is_used.store(true, Ordering::Relaxed);
        if counted.is_err() {
            self.rejected.fetch_add(1, Ordering::Relaxed);
        }
        counted
    }

    /// One of them has ended.
    pub(crate) fn leave(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Counting ===

impl Counting {
    pub(crate) fn new(is_counted: bool) -> Self {
        Self(AtomicU8::new(if is_counted { WITH_PERMIT } else { NOT }))
    }

    /// Takes the request's place over, if it has one.
    pub(crate) fn take(&self, count: &Arc<LongRunningCount>) -> Option<LongRunning> {
        if self.0.load(Ordering::Relaxed) != WITH_PERMIT {
            return None;
        }
        let taken = self.0.compare_exchange(WITH_PERMIT, TAKEN, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok().then(|| LongRunning(Arc::clone(count)))
    }

    /// A running request has become long-running. It is too late to reject it, so it counts whatever the limit.
    pub(crate) fn take_or_begin(&self, count: &Arc<LongRunningCount>) -> Option<LongRunning> {
        let begun = self.0.compare_exchange(NOT, WITH_PERMIT, Ordering::Relaxed, Ordering::Relaxed);
        if begun.is_ok() && count.enter(None).is_err() {
            self.0.store(NOT, Ordering::Relaxed);
        }
        self.take(count)
    }

    /// The request ends.
    #[inline]
    pub(crate) fn end(&mut self, count: &LongRunningCount) {
        if *self.0.get_mut() == WITH_PERMIT {
            count.leave();
        }
    }
}

// === impl LongRunning ===

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_too_many_is_not_counted() {
        let count = LongRunningCount::default();
        assert_eq!([count.enter(Some(2)), count.enter(Some(2))], [Ok(0), Ok(1)]);
        assert_eq!([count.enter(Some(2)), count.enter(Some(0))], [Err(2), Err(2)]);
        assert_eq!([count.enter(Some(3)), count.enter(None)], [Ok(2), Ok(3)]);
        assert_eq!((count.running(), count.rejected()), (4, 2));
    }

    #[test]
    fn a_request_counts_once_whoever_keeps_it() {
        let count = Arc::new(LongRunningCount::default());
        assert!(count.enter(None).is_ok());
        let mut counting = Counting::new(true);
        let taken = counting.take(&count).expect("it counts");
        assert!(counting.take(&count).is_none() && counting.take_or_begin(&count).is_none());
        counting.end(&count);
        assert_eq!(count.running(), 1);
        drop(taken);
        assert_eq!(count.running(), 0);

        let mut counting = Counting::new(false);
        assert!(counting.take(&count).is_none());
        let begun = counting.take_or_begin(&count).expect("it counts now");
        counting.end(&count);
        assert_eq!(count.running(), 1);
        drop(begun);
        assert_eq!(count.running(), 0);

        assert!(count.enter(None).is_ok());
        Counting::new(true).end(&count);
        assert_eq!(count.running(), 0);
    }
}
