//! `Turns`: one writer of an object at a time, in the order in which they came.
//!
//! Writers that change the same object would otherwise undo each other's work: each reads the object, and all but one have
//! to read it again. Writers in other processes are not seen here; the store notices them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// The queues of writers, by the name of the object. A queue exists while somebody is in it.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    queues: Mutex<HashMap<String, Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Fair: who asks first is served first.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// How many wait or have the turn.
    members: usize,
}

/// The right to write an object.
#[derive(Debug)]
pub(crate) struct Turn {
    // The order matters: the turn is given back before the place in the queue.
    _turn: OwnedMutexGuard<()>,
    _place: Place,
}

/// A place in a queue.
#[derive(Debug)]
struct Place {
    turns: Arc<Turns>,
    name: String,
}

// === impl Turns ===

impl Turns {
    /// The right to write the object of this name, when all who asked earlier have written.
    pub(crate) async fn take(self: &Arc<Self>, name: &str) -> Turn {
        let (turn, place) = self.join(name);
        Turn { _turn: turn.lock_owned().await, _place: place }
    }

    fn join(self: &Arc<Self>, name: &str) -> (Arc<tokio::sync::Mutex<()>>, Place) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = queues.entry(name.to_owned()).or_default();
        queue.members += 1;
        (Arc::clone(&queue.turn), Place { turns: Arc::clone(self), name: name.to_owned() })
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        let mut queues = self.turns.queues.lock().unwrap_or_else(PoisonError::into_inner);
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
    async fn writers_of_one_object_take_turns_and_leave_nothing_behind() {
        let turns = Arc::new(Turns::default());
        let first = turns.take("a").await;
        let _other = turns.take("b").await;
        let mut second = pin!(turns.take("a"));
        let mut third = Box::pin(turns.take("a"));
        let mut fourth = pin!(turns.take("a"));
        for waiting in [second.as_mut(), third.as_mut(), fourth.as_mut()] {
            assert!(futures_now(waiting).is_none());
        }
        // Who gives up waiting is passed over.
        drop(third);
        drop(first);
        assert!(futures_now(fourth.as_mut()).is_none(), "the second comes first");
        drop(second.await);
        drop(fourth.await);
        assert_eq!(turns.queues.lock().unwrap().keys().collect::<Vec<_>>(), ["b"]);
    }

    /// What a future comes to if it is polled once.
    fn futures_now<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
