//! `UploadProgress`: how the body of a request gets on, for whoever waits for the answer while somebody else sends it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::proxy::request_body::BodyError;
use crate::timeouts::{CoarseTimer, Timeout};

/// The time that an answer may take, and what has become of the body of the request.
#[derive(Debug)]
pub(crate) struct UploadProgress {
    timeout: RefCell<Timeout>,
    answer_after: Cell<Duration>,
    error: Cell<Option<BodyError>>,
}

// === impl UploadProgress ===

impl UploadProgress {
    pub(crate) fn new(timer: &Rc<CoarseTimer>, answer_after: Duration) -> Rc<Self> {
        let timeout = RefCell::new(timer.timeout(answer_after));
        Rc::new(Self { timeout, answer_after: Cell::new(answer_after), error: Cell::new(None) })
    }

    /// Something of the body has been taken, or it has come to no end. An upload that moves is no upstream that does not
    /// answer.
    pub(crate) fn note(&self, error: Option<BodyError>) {
        self.timeout.borrow_mut().set(self.answer_after.get());
        if error.is_some() {
            self.error.set(error);
        }
    }

    /// Why the body came to no end, if it did not.
    pub(crate) fn error(&self) -> Option<BodyError> {
        self.error.get()
    }

    /// The answer has begun: nobody waits for it any more, while the rest of the body is sent.
    pub(crate) fn answered(&self) {
        self.answer_after.set(Duration::ZERO);
        self.timeout.borrow_mut().set(Duration::ZERO);
    }

    /// Waits until the answer has taken too long.
    pub(crate) fn poll_overdue(&self, context: &Context<'_>) -> Poll<()> {
        self.timeout.borrow_mut().poll(context)
    }
}
