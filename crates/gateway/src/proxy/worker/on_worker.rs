//! `OnWorker`: hyper's executor on a worker's own thread.

/// Runs hyper's tasks on the worker's own thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnWorker;

// === impl OnWorker ===

impl<F: Future + 'static> hyper::rt::Executor<F> for OnWorker {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move {
            future.await;
        });
    }
}
