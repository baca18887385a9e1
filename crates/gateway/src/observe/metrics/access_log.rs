//! `AccessLogMetrics`: how many lines of the access log were written, and how many were lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many lines of the access log were written, and how many were lost. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct AccessLogMetrics(Arc<LineCounters>);

#[derive(Debug, Default)]
struct LineCounters {
    written: AtomicU64,
    lost: AtomicU64,
}

// === impl AccessLogMetrics ===

impl AccessLogMetrics {
    /// Notes lines that are in the file.
    pub fn written(&self, lines: u64) {
        self.0.written.fetch_add(lines, Ordering::Relaxed);
    }

    /// Notes lines that are in no file: they came too fast, or the file cannot be written.
    pub fn lost(&self, lines: u64) {
        self.0.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// How many lines were written.
    pub fn lines_written(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    /// How many lines were lost.
    pub fn lines_lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }
}
