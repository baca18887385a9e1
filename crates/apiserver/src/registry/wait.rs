//! Waiting for a revision that has not been reached yet (API-157).

use std::time::Duration;

use evenkeel_store::{Error, Store, WatchOptions};
use tokio::time::timeout;

use crate::failure::Failure;

/// How long a request waits for a revision.
const PATIENCE: Duration = Duration::from_secs(3);

/// Waits until the store has reached a revision, for at most [`PATIENCE`].
pub(crate) async fn until(store: &dyn Store, revision: u64) -> Result<(), Failure> {
    let reached = |current: u64| current >= revision;
    if reached(store.freshness().revision) {
        return Ok(());
    }
    let current = store.revision().await.unwrap_or_else(|_| store.freshness().revision);
    if reached(current) {
        return Ok(());
    }
    let come = async {
        let mut watch = store.watch(WatchOptions { kind: None, after: current }).await?;
        while !reached(watch.next().await?.revision) {}
        Ok::<(), Error>(())
    };
    match timeout(PATIENCE, come).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Failure::too_large_revision(revision, store.freshness().revision.max(current))),
    }
}
