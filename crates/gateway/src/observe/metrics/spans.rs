//! `SpanMetrics`: how many spans reached the collector, and how many did not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many spans of requests were exported, and how many were not. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct SpanMetrics(Arc<SpanCounters>);

#[derive(Debug, Default)]
struct SpanCounters {
    exported: AtomicU64,
    rejected: AtomicU64,
    lost: AtomicU64,
}

// === impl SpanMetrics ===

impl SpanMetrics {
    /// The collector has taken so many spans.
    pub fn exported(&self, spans: u64) {
        self.0.exported.fetch_add(spans, Ordering::Relaxed);
    }

    /// The collector has got so many spans and refused them.
    pub fn rejected(&self, spans: u64) {
        self.0.rejected.fetch_add(spans, Ordering::Relaxed);
    }

    /// Notes spans that reached no collector: they came too fast, or the collector did not respond.
    pub fn lost(&self, spans: u64) {
        self.0.lost.fetch_add(spans, Ordering::Relaxed);
    }

    /// Each outcome and how many spans had it.
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [("exported", of(&self.0.exported)), ("rejected", of(&self.0.rejected)), ("lost", of(&self.0.lost))]
    }
}
