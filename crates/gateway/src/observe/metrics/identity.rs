//! `IdentityMetrics`: what is counted where requests are authenticated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::registry::Registry;

use super::KeyFetches;
use super::collector::IdentityCollector;
use crate::identity::Denial;

/// What is counted where requests are authenticated. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct IdentityMetrics {
    key_fetches: KeyFetches,
    denials: Arc<[AtomicU64; Denial::ALL.len()]>,
}

// === impl IdentityMetrics ===

impl IdentityMetrics {
    /// How often keys of issuers were fetched.
    pub fn key_fetches(&self) -> &KeyFetches {
        &self.key_fetches
    }

    /// A request was not authenticated.
    pub fn denied(&self, reason: Denial) {
        self.denials[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Shows the failures in a registry, with the version that runs: for a process that has no gateway.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(IdentityCollector(self.clone())));
    }

    /// Each reason and how often there was one.
    pub(super) fn denials(&self) -> Vec<(&'static str, u64)> {
        let count = |reason: Denial| self.denials[reason as usize].load(Ordering::Relaxed);
        Denial::ALL.into_iter().map(|reason| (reason.as_str(), count(reason))).collect()
    }
}
