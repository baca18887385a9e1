//! `Ended`: tells when a task or a thread has ended. New settings replace the writer of the access log or the exporter of spans;
//! when the gateway shuts down, it waits for the lines and spans that the replaced ones still have.

use tokio::sync::watch;

/// A token that a task or a thread keeps until it ends.
#[derive(Debug)]
pub(super) struct Running {
    _dropped_at_the_end: watch::Sender<()>,
}

/// The end of a task or a thread.
#[derive(Debug, Clone)]
pub(crate) struct Ended(watch::Receiver<()>);

// === impl Running ===

impl Running {
    pub(super) fn begin() -> (Self, Ended) {
        let (sender, receiver) = watch::channel(());
        (Self { _dropped_at_the_end: sender }, Ended(receiver))
    }
}

// === impl Ended ===

impl Ended {
    pub(crate) fn is_over(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Whether both are the end of the same task or thread.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }

    pub(crate) async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}
