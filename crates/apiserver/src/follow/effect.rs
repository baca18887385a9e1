//! `Effects`: which objects the flow controls follow, for writes that wait until theirs are in effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The flow controls, and the generation of objects that each of them follows.
#[derive(Debug, Default)]
pub(super) struct Effects {
    followed: watch::Sender<Members>,
}

#[derive(Debug, Default)]
struct Members {
    joined: u64,
    /// By number. One that has not put its first objects into effect is not there: it serves nobody yet.
    generations: BTreeMap<u64, u64>,
}

/// A flow control that follows the objects, until it is dropped.
#[derive(Debug)]
pub(super) struct Member {
    number: u64,
    effects: Arc<Effects>,
}

/// How long a flow control is waited for at most. They take milliseconds; one that takes longer must not hold up all writes.
const WAIT_MAX: Duration = Duration::from_secs(1);

// === impl Effects ===

impl Effects {
    /// One more flow control.
    pub(super) fn join(effects: &Arc<Self>) -> Member {
        let mut number = 0;
        effects.followed.send_modify(|members| {
            members.joined += 1;
            number = members.joined;
        });
        Member { number, effects: Arc::clone(effects) }
    }

    /// Waits until all flow controls have reached a generation; not for long. Tells whether they have.
    pub(super) async fn reached(&self, generation: u64) -> bool {
        let mut followed = self.followed.subscribe();
        let reached = followed.wait_for(|members| members.generations.values().all(|reached| *reached >= generation));
        matches!(timeout(WAIT_MAX, reached).await, Ok(Ok(_)))
    }
}

// === impl Member ===

impl Member {
    /// The flow control follows the objects of this generation.
    pub(super) fn reach(&self, generation: u64) {
        self.effects
            .followed
            .send_if_modified(|members| members.generations.insert(self.number, generation) != Some(generation));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.effects.followed.send_modify(|members| {
            members.generations.remove(&self.number);
        });
    }
}
