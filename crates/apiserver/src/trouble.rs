//! `Trouble`: what goes wrong again and again is said once, and so is that it is over.

use std::fmt::Display;

use evenkeel_store::{Error, Store, WatchOptions};

/// Something that is tried with a store again and again, and whether it failed the last time.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// What it means that it fails.
    meaning: &'static str,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    Failing,
}

// === impl Trouble ===

impl Trouble {
    pub(crate) fn new(meaning: &'static str) -> Self {
        Self { meaning, state: State::Fine }
    }

    /// It has failed. That a store is closed when the server ends is no trouble.
    pub(crate) async fn failed(&mut self, store: &dyn Store, problem: &impl Display) {
        if is_closed(store).await {
            return;
        }
        if std::mem::replace(&mut self.state, State::Failing) == State::Fine {
            tracing::warn!(%problem, "{}", self.meaning);
        }
    }

    /// It has worked.
    pub(crate) fn worked(&mut self) {
        if std::mem::replace(&mut self.state, State::Fine) == State::Failing {
            tracing::info!("it is over that {}", self.meaning);
        }
    }

    /// It has worked or failed.
    pub(crate) async fn note<E: Display>(&mut self, store: &dyn Store, outcome: &Result<(), E>) {
        match outcome {
            Ok(()) => self.worked(),
            Err(problem) => self.failed(store, problem).await,
        }
    }
}

/// Closed stores refuse watches, and open ones are always ready to begin one where they are.
async fn is_closed(store: &dyn Store) -> bool {
    let here = WatchOptions::after(store.freshness().revision);
    matches!(store.watch(here).await, Err(Error::Closed))
}

#[cfg(test)]
mod tests {
    use evenkeel_store::{EmbeddedStore, HistoryLimits};

    use super::*;

    #[tokio::test]
    async fn the_end_of_the_store_is_no_trouble() {
        let store = EmbeddedStore::in_memory(HistoryLimits::default()).unwrap();
        let mut trouble = Trouble::new("it is a test");
        trouble.failed(&store, &"a fault").await;
        assert_eq!(trouble.state, State::Failing);
        trouble.worked();
        assert_eq!(trouble.state, State::Fine);
        store.close().await.unwrap();
        trouble.failed(&store, &"closed").await;
        assert_eq!(trouble.state, State::Fine);
    }
}
