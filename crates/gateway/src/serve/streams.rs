//! Runs the streams of one HTTP/2 connection on the worker's thread.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::stream_watch::{self, StreamWatch};
use crate::ticks::Ticks;

/// Runs streams, and cuts those that nobody reads.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    pub(super) ticks: Rc<Ticks>,
    pub(super) stall: Duration,
    /// The watch of the stream that is about to be run.
    pub(super) next: Rc<RefCell<Option<Arc<StreamWatch>>>>,
}

// === impl Streams ===

impl<F: Future + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let watch = self.next.borrow_mut().take().unwrap_or_default();
        tokio::task::spawn_local(stream_watch::run(stream, watch, self.ticks.alarm(self.stall), self.stall));
    }
}
