//! `SharedTimeout`: one timeout that two tasks check.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Timeout;

/// A timeout that is checked by the task that waits for a response, and after that by the task that sends it.
#[derive(Debug, Clone)]
pub(crate) struct SharedTimeout(Rc<RefCell<Timeout>>);

// === impl SharedTimeout ===

impl SharedTimeout {
    pub(crate) fn new(timeout: Timeout) -> Self {
        Self(Rc::new(RefCell::new(timeout)))
    }

    /// Starts again. Zero means never.
    pub(crate) fn set(&self, duration: Duration) {
        self.0.borrow_mut().set(duration);
    }

    /// Whether the time is over; if not, the task is woken when it is.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.0.borrow_mut().poll(context)
    }
}
