//! How many connections and requests there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::metrics::WorkerMetrics;

/// Counts of the whole gateway.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// A connection. It is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Counts>);

/// A connection, as metrics see it.
#[derive(Debug)]
pub(crate) struct MeteredConnection(WorkerMetrics);

/// A request that has not been answered to its end. It has when this is dropped.
#[derive(Debug)]
pub(crate) struct RunningRequest(Arc<Counts>);

// === impl Counts ===

impl Counts {
    /// Another connection, unless there are so many already.
    pub(crate) fn open(self: &Arc<Self>, connections_max: usize) -> Option<OpenConnection> {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let opened = OpenConnection(Arc::clone(self));
        (before < connections_max).then_some(opened)
    }

    pub(crate) fn begin_request(self: &Arc<Self>) -> RunningRequest {
        self.requests.fetch_add(1, Ordering::Relaxed);
        RunningRequest(Arc::clone(self))
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Acquire)
    }
}

// === impl OpenConnection ===

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Release);
    }
}

// === impl MeteredConnection ===

impl MeteredConnection {
    pub(crate) fn new(metrics: WorkerMetrics) -> Self {
        metrics.connection_opened();
        Self(metrics)
    }
}

impl Drop for MeteredConnection {
    fn drop(&mut self) {
        self.0.connection_closed();
    }
}

// === impl RunningRequest ===

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Release);
    }
}
