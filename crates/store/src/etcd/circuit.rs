//! `Circuit`: while no member can be reached, calls fail at once and do not wait for their deadlines.
//!
//! A call that has tried all members until its deadline opens the circuit. Then [`Client::probe`](super::client::Client)
//! tries in the background, and the first answer closes it.

use std::time::Instant;

use tokio::sync::watch;

/// Whether etcd can be reached, as far as is known.
#[derive(Debug)]
pub(crate) struct Circuit {
    state: watch::Sender<Option<Away>>,
}

/// No member could be reached.
#[derive(Debug, Clone)]
pub(crate) struct Away {
    pub(crate) since: Instant,
    pub(crate) problem: String,
}

// === impl Circuit ===

impl Circuit {
    pub(crate) fn new() -> Self {
        Self { state: watch::Sender::new(None) }
    }

    /// Since when etcd is away, and why; `None` if it is there.
    pub(crate) fn away(&self) -> Option<Away> {
        self.state.borrow().clone()
    }

    /// A call has tried everything in vain.
    pub(crate) fn open(&self, problem: &str) {
        let opened = self.state.send_if_modified(|state| {
            let was_closed = state.is_none();
            if was_closed {
                *state = Some(Away { since: Instant::now(), problem: problem.to_owned() });
            }
            was_closed
        });
        if opened {
            tracing::warn!(problem, "etcd cannot be reached; calls fail at once until it answers again");
        }
    }

    /// A member has answered.
    pub(crate) fn close(&self) {
        if self.state.borrow().is_none() {
            return;
        }
        if let Some(away) = self.state.send_replace(None) {
            tracing::info!(after = ?away.since.elapsed(), "etcd answers again");
        }
    }

    /// Waits until it is open.
    pub(crate) async fn opened(&self) {
        // The sender is here, so that this cannot fail.
        let _ = self.state.subscribe().wait_for(Option::is_some).await;
    }
}
