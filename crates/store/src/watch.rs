//! A watcher: a cursor into the history that all watchers share.

use std::collections::VecDeque;
use std::sync::Arc;

use evenkeel_api::Kind;
use tokio::sync::watch;

use crate::cache::Cache;
use crate::{Error, Event};

/// How many events a watcher takes at a time, so that the lock is held for a short while only.
const TAKE_MAX: usize = 256;

/// Which writes a watcher wants.
///
/// Not `#[non_exhaustive]`: stores of your own make or read all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchOptions {
    /// The kind; `None` for both.
    pub kind: Option<Kind>,
    /// Only writes after this revision: that of a [`List`](crate::List), or of the last event or progress that was seen.
    pub after: u64,
}

/// The writes after a revision, one after the other.
///
/// A watcher that falls so far behind that the history no longer reaches back to where it is gets
/// [`Error::TooOld`]; it never slows down others. When etcd has forgotten what happened while it could not be reached, a
/// watcher gets what all of it came to: an object that was written several times in the meantime is seen once.
#[derive(Debug)]
pub struct Watch {
    cache: Arc<Cache>,
    options: WatchOptions,
    changed: watch::Receiver<u64>,
    /// Taken from the history, and not handed out yet.
    taken: VecDeque<Arc<Event>>,
    /// The place in the history of the first event that was not looked at yet.
    place: u64,
    /// Everything up to here that was asked for has been handed out or is in `taken`.
    seen: u64,
    /// The revision of what was handed out last, or of the start.
    told: u64,
    ended: Option<Error>,
}

// === impl WatchOptions ===

impl WatchOptions {
    /// Writes to objects of both kinds.
    pub fn after(revision: u64) -> Self {
        Self { kind: None, after: revision }
    }

    /// Writes to objects of one kind.
    pub fn of(kind: Kind, after: u64) -> Self {
        Self { kind: Some(kind), after }
    }

    fn wants(&self, event: &Event) -> bool {
        // The revision may come from a store that is ahead of the cache.
        event.revision > self.after && self.kind.is_none_or(|kind| kind == event.kind())
    }
}

// === impl Watch ===

impl Watch {
    /// A watcher from `options.after` on, which may be ahead of the cache.
    pub(crate) fn new(cache: Arc<Cache>, options: WatchOptions) -> Result<Self, Error> {
        let changed = cache.subscribe();
        let place = {
            let state = cache.state();
            if state.closed {
                return Err(Error::Closed);
            }
            state.history.check(options.after)?;
            state.history.place_after(options.after)
        };
        let (seen, told) = (options.after, options.after);
        Ok(Self { cache, options, changed, taken: VecDeque::new(), place, seen, told, ended: None })
    }

    /// The next write; waits for it if need be. Nothing is lost when the future is dropped before it is ready.
    ///
    /// After an error the watch has ended, and every further call gives the same error.
    pub async fn next(&mut self) -> Result<Arc<Event>, Error> {
        loop {
            // Marked as seen before looking, so that what comes after the look wakes.
            self.changed.mark_unchanged();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            if self.changed.changed().await.is_err() {
                return Err(self.end(Error::Closed));
            }
        }
    }

    /// The next write if it has taken place already.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Error> {
        if self.taken.is_empty() {
            self.take()?;
        }
        let event = self.taken.pop_front();
        if let Some(event) = &event {
            self.told = event.revision;
        }
        Ok(event)
    }

    /// The revision up to which this watcher has received everything: the revision for a bookmark. A watch
    /// from there on goes on where this one is.
    ///
    /// The revision moves on with the store also when nothing that was asked for happens.
    pub fn progress(&mut self) -> Result<u64, Error> {
        if self.taken.is_empty() {
            self.take()?;
        }
        // Several writes can have one revision, if another client made them in one transaction of etcd.
        Ok(self.taken.front().map_or(self.seen, |next| self.told.min(next.revision - 1)))
    }

    /// Fills `taken` as far as there is something.
    fn take(&mut self) -> Result<(), Error> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let state = self.cache.state();
        let error = match state.history.starting_at(self.place) {
            Some(mut events) => {
                while self.taken.len() < TAKE_MAX {
                    let Some(event) = events.next() else {
                        self.seen = self.seen.max(state.revision);
                        break;
                    };
                    self.place += 1;
                    if self.options.wants(event) {
                        self.taken.push_back(Arc::clone(event));
                    }
                }
                if self.taken.is_empty() && state.closed { Error::Closed } else { return Ok(()) }
            }
            None => Error::TooOld { asked: self.seen.max(self.told), oldest: state.history.oldest() },
        };
        drop(state);
        Err(self.end(error))
    }

    fn end(&mut self, error: Error) -> Error {
        self.ended.insert(error).clone()
    }
}
