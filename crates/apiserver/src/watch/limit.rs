//! How many watches there may be at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::Failure;

/// Counts the watches.
#[derive(Debug, Clone)]
pub(crate) struct WatchLimit(Arc<Semaphore>);

/// A watch that counts towards the limit until this is dropped.
#[derive(Debug)]
pub(crate) struct WatchPermit {
    _permit: OwnedSemaphorePermit,
}

// === impl WatchLimit ===

impl WatchLimit {
    pub(crate) fn new(watches_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(watches_max.min(Semaphore::MAX_PERMITS))))
    }

    /// Counts one more watch, if the limit allows it.
    pub(crate) fn take(&self) -> Result<WatchPermit, Failure> {
        Arc::clone(&self.0)
            .try_acquire_owned()
            .map(|permit| WatchPermit { _permit: permit })
            .map_err(|_| Failure::too_many("there are too many watches already; try again later"))
    }
}
