//! `KeyFetches`: how often keys of issuers were fetched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often the keys of issuers were fetched. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct KeyFetches(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

// === impl KeyFetches ===

impl KeyFetches {
    /// Keys were fetched that can be used.
    pub fn succeeded(&self) {
        self.0.succeeded.fetch_add(1, Ordering::Relaxed);
    }

    /// Keys could not be fetched, or not be used.
    pub fn failed(&self) {
        self.0.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Each outcome and how often there was one.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![("succeeded", of(&self.0.succeeded)), ("failed", of(&self.0.failed))]
    }
}
