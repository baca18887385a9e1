//! `WriteLocks`: one writer of an object at a time, in the order of arrival.
//!
//! Without the locks, all writers of one object would read it, and all but one would have to read it again. The locks do not
//! cover writers in other processes; the store detects those by revision.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// The queues of writers, by the name of the object. A queue exists while it has a writer.
#[derive(Debug, Default)]
pub(crate) struct WriteLocks {
    queues: Mutex<HashMap<String, WriterQueue>>,
}

#[derive(Debug, Default)]
struct WriterQueue {
    /// Fair: first come, first served.
    lock: Arc<tokio::sync::Mutex<()>>,
    /// How many wait for the lock or hold it.
    members: usize,
}

/// The exclusive right of this process to write an object.
#[derive(Debug)]
pub(crate) struct WriteLock {
    // Fields drop in order: the lock is released before the place in the queue.
    _lock: OwnedMutexGuard<()>,
    _membership: Membership,
}

/// A place in a queue.
#[derive(Debug)]
struct Membership {
    locks: Arc<WriteLocks>,
    name: String,
}

// === impl WriteLocks ===

impl WriteLocks {
    /// Waits until all earlier writers of the object of this name are done.
    pub(crate) async fn lock(self: &Arc<Self>, name: &str) -> WriteLock {
        let (lock, membership) = self.join(name);
        WriteLock { _lock: lock.lock_owned().await, _membership: membership }
    }

    fn join(self: &Arc<Self>, name: &str) -> (Arc<tokio::sync::Mutex<()>>, Membership) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.entry(name.to_owned()).or_default();
        queue.members += 1;
        (Arc::clone(&queue.lock), Membership { locks: Arc::clone(self), name: name.to_owned() })
    }
}

// === impl Membership ===

impl Drop for Membership {
    fn drop(&mut self) {
        let mut queues = self.locks.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get_mut(&self.name) {
            queue.members -= 1;
            if queue.members == 0 {
                queues.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn writers_of_one_object_wait_in_order_and_leave_nothing_behind() {
        let locks = Arc::new(WriteLocks::default());
        let first = locks.lock("a").await;
        let _other = locks.lock("b").await;
        let mut second = pin!(locks.lock("a"));
        let mut third = Box::pin(locks.lock("a"));
        let mut fourth = pin!(locks.lock("a"));
        for waiting in [second.as_mut(), third.as_mut(), fourth.as_mut()] {
            assert!(poll_once(waiting).is_none());
        }
        // A writer that gives up waiting is skipped.
        drop(third);
        drop(first);
        assert!(poll_once(fourth.as_mut()).is_none(), "the second comes first");
        drop(second.await);
        drop(fourth.await);
        assert_eq!(locks.queues.lock().unwrap().keys().collect::<Vec<_>>(), ["b"]);
    }

    /// Polls a future once.
    fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
