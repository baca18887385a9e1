//! How many connections and requests there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::observe::metrics::WorkerMetrics;

/// How many connections the whole gateway has.
#[derive(Debug, Default)]
pub(crate) struct Connections(AtomicUsize);

/// How many requests one worker has. Other threads only read it, so that the count does not travel between cores.
#[derive(Debug, Default)]
pub(crate) struct RunningRequests(AtomicUsize);

/// A connection in the count. Dropping it takes the connection out of the count.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<Connections>);

/// A connection, as metrics see it.
#[derive(Debug)]
pub(crate) struct MeteredConnection(WorkerMetrics);

/// A request whose response has not been sent to its end. Dropping it takes the request out of the count.
#[derive(Debug)]
pub(crate) struct RunningRequest(Arc<RunningRequests>);

// === impl Connections ===

impl Connections {
    /// Counts another connection, unless there are so many already.
    pub(crate) fn open(self: &Arc<Self>, connections_max: usize) -> Option<OpenConnection> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let opened = OpenConnection(Arc::clone(self));
        (before < connections_max).then_some(opened)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

// === impl RunningRequests ===

impl RunningRequests {
    pub(crate) fn begin(self: &Arc<Self>) -> RunningRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        RunningRequest(Arc::clone(self))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

// === impl OpenConnection ===

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
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
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}
