//! `Circuit`: while no member can be reached, calls fail at once and do not wait for their deadlines.
//!
//! A call that has tried all members until its deadline opens the circuit. Then [`Client::probe`](super::client::Client)
//! tries in the background, and the first response closes it.

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

    /// A call has failed on all members.
    pub(crate) fn open(&self, problem: &str) {
        self.state.send_if_modified(|state| {
            let was_closed = state.is_none();
            if was_closed {
                *state = Some(Away { since: Instant::now(), problem: problem.to_owned() });
            }
            was_closed
        });
    }

    /// A member has responded.
    pub(crate) fn close(&self) {
        self.state.send_replace(None);
    }

    /// Waits until it is open.
    pub(crate) async fn opened(&self) {
        // This struct owns the sender, so that waiting cannot fail.
        let _ = self.state.subscribe().wait_for(Option::is_some).await;
    }
}
