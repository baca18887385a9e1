//! `UploadProgress`: the timeout of a response, which starts again while the request body is being sent by another task.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{CoarseTimer, Timeout};

/// How long the response may still take, and why the request body failed, if it did.
#[derive(Debug)]
pub(crate) struct UploadProgress<E: Copy> {
    timeout: RefCell<Timeout>,
    response_after: Cell<Duration>,
    error: Cell<Option<E>>,
}

// === impl UploadProgress ===

impl<E: Copy> UploadProgress<E> {
    pub(crate) fn new(timer: &Rc<CoarseTimer>, response_after: Duration) -> Rc<Self> {
        let timeout = RefCell::new(timer.timeout(response_after));
        Rc::new(Self { timeout, response_after: Cell::new(response_after), error: Cell::new(None) })
    }

    /// A part of the body has been sent, or the body has failed. An upstream that receives a body need not respond yet.
    pub(crate) fn note(&self, error: Option<E>) {
        self.timeout.borrow_mut().set(self.response_after.get());
        if error.is_some() {
            self.error.set(error);
        }
    }

    /// Why the body failed, if it did.
    pub(crate) fn error(&self) -> Option<E> {
        self.error.get()
    }

    /// The response has begun: from now on the body may take as long as it likes.
    pub(crate) fn response_began(&self) {
        self.response_after.set(Duration::ZERO);
        self.timeout.borrow_mut().set(Duration::ZERO);
    }

    /// Whether the response has taken too long; if not, the task is woken when it has.
    pub(crate) fn poll_overdue(&self, context: &Context<'_>) -> Poll<()> {
        self.timeout.borrow_mut().poll(context)
    }
}
