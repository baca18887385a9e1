//! Background controllers: one restores the bootstrap objects, one writes the condition `Dangling`, one finishes deletions.

pub(crate) mod bootstrap;
pub(crate) mod dangling;
pub(crate) mod garbage;

use tokio::time::{Instant, sleep_until};

/// Waits until something is due; for ever if nothing is.
async fn due_at(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
