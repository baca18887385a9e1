//! A watcher: a cursor into the history that all watchers share.

use std::sync::Arc;

use evenkeel_api::Kind;

use crate::{Error, Event};

/// What a watcher wants to be told.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// The kind; `None` for both.
    pub kind: Option<Kind>,
    /// Only writes after this revision: that of a [`List`](crate::List), or of the last event or progress that was seen.
    pub after: u64,
}

/// The writes after a revision, one after the other.
///
/// A watcher that falls so far behind that the history no longer reaches back to where it is gets
/// [`Error::TooOld`]; it never slows down others.
#[derive(Debug)]
pub struct Watch {
    options: WatchOptions,
}

// === impl Watch ===

impl Watch {
    /// The next write; waits for it if need be. Nothing is lost when the future is dropped before it is ready.
    ///
    /// After an error the watch has ended, and every further call gives the same error.
    pub async fn next(&mut self) -> Result<Arc<Event>, Error> {
        let _ = &self.options;
        std::future::pending().await
    }

    /// The next write if it has taken place already.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Error> {
        Ok(None)
    }

    /// Up to which revision this watcher has been told everything that it asked for: the revision for a bookmark. A watch
    /// from there on goes on where this one is.
    pub fn progress(&self) -> u64 {
        self.options.after
    }
}
