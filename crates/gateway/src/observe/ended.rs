//! `Ended`: tells when a task or a thread has ended. Settings replace whoever writes the access log or exports spans; what the
//! replaced ones still have must be waited for when the gateway shuts down.

use tokio::sync::watch;

/// Is kept by a task or a thread until it ends.
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

    /// Whether both are the end of the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }

    pub(crate) async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}
