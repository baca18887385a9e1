//! `LogOnce`: a failure that repeats is logged once, and so is the recovery.

use std::fmt::Display;

use evenkeel_store::{Error, Store, WatchOptions};

/// A task that uses the store again and again, and whether it failed the last time.
#[derive(Debug)]
pub(crate) struct LogOnce {
    /// The warning that a failure logs.
    warning: &'static str,
    state: TaskState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskState {
    Working,
    Failing,
}

// === impl LogOnce ===

impl LogOnce {
    pub(crate) fn new(warning: &'static str) -> Self {
        Self { warning, state: TaskState::Working }
    }

    /// Notes a failure. A store that was closed because the server shuts down is not a failure.
    pub(crate) async fn failed(&mut self, store: &dyn Store, problem: &impl Display) {
        if is_closed(store).await {
            return;
        }
        if std::mem::replace(&mut self.state, TaskState::Failing) == TaskState::Working {
            tracing::warn!(%problem, "{}", self.warning);
        }
    }

    /// Notes a success.
    pub(crate) fn succeeded(&mut self) {
        if std::mem::replace(&mut self.state, TaskState::Working) == TaskState::Failing {
            tracing::info!("resolved: {}", self.warning);
        }
    }

    /// Notes a success or a failure.
    pub(crate) async fn note<E: Display>(&mut self, store: &dyn Store, outcome: &Result<(), E>) {
        match outcome {
            Ok(()) => self.succeeded(),
            Err(problem) => self.failed(store, problem).await,
        }
    }
}

/// A closed store refuses watches; an open one always accepts a watch from its own revision.
async fn is_closed(store: &dyn Store) -> bool {
    let here = WatchOptions::after(store.freshness().revision);
    matches!(store.watch(here).await, Err(Error::Closed))
}

#[cfg(test)]
mod tests {
    use evenkeel_store::{EmbeddedStore, HistoryLimits};

    use super::*;

    #[tokio::test]
    async fn a_closed_store_is_no_failure() {
        let store = EmbeddedStore::in_memory(HistoryLimits::default()).unwrap();
        let mut log_once = LogOnce::new("a test fails");
        log_once.failed(&store, &"a fault").await;
        assert_eq!(log_once.state, TaskState::Failing);
        log_once.succeeded();
        assert_eq!(log_once.state, TaskState::Working);
        store.close().await.unwrap();
        log_once.failed(&store, &"closed").await;
        assert_eq!(log_once.state, TaskState::Working);
    }
}
