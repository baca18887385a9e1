//! `IdentityCounts`: the counts of authentication.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Denial;

/// The counts of authentication. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct IdentityCounts(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    denials: [AtomicU64; Denial::ALL.len()],
    key_fetches_succeeded: AtomicU64,
    key_fetches_failed: AtomicU64,
}

// === impl IdentityCounts ===

impl IdentityCounts {
    /// Each reason why requests were not authenticated, and how often there was that reason.
    pub fn denials(&self) -> Vec<(&'static str, u64)> {
        let count = |reason: Denial| self.0.denials[reason as usize].load(Ordering::Relaxed);
        Denial::ALL.into_iter().map(|reason| (reason.as_str(), count(reason))).collect()
    }

    /// How often the keys of issuers were fetched, and how often that failed or brought keys that cannot be used.
    pub fn key_fetches(&self) -> [(&'static str, u64); 2] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("succeeded", of(&self.0.key_fetches_succeeded)), ("failed", of(&self.0.key_fetches_failed))]
    }

    pub(crate) fn denied(&self, reason: Denial) {
        self.0.denials[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn key_fetch_succeeded(&self) {
        self.0.key_fetches_succeeded.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn key_fetch_failed(&self) {
        self.0.key_fetches_failed.fetch_add(1, Ordering::Relaxed);
    }
}
