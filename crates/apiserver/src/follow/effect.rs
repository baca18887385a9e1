//! `Effects`: the generation of objects that each flow control follows, so that a write can wait until its object is in
//! effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The flow controls, and the generation of objects that each of them follows.
#[derive(Debug, Default)]
pub(super) struct Effects {
    followed: watch::Sender<FlowControlGenerations>,
}

#[derive(Debug, Default)]
struct FlowControlGenerations {
    joined: u64,
    /// The generation of each flow control, by its number. A flow control that has not applied its first objects is absent:
    /// it serves nobody yet.
    generations: BTreeMap<u64, u64>,
}

/// A flow control that follows the objects, until it is dropped.
#[derive(Debug)]
pub(super) struct FlowControlMember {
    number: u64,
    effects: Arc<Effects>,
}

/// How long a write waits for the flow controls at most. They take milliseconds; one that takes longer must not delay all
/// writes.
const WAIT_MAX: Duration = Duration::from_secs(1);

// === impl Effects ===

impl Effects {
    /// Registers another flow control.
    pub(super) fn join(effects: &Arc<Self>) -> FlowControlMember {
        let mut number = 0;
        effects.followed.send_modify(|members| {
            members.joined += 1;
            number = members.joined;
        });
        FlowControlMember { number, effects: Arc::clone(effects) }
    }

    /// Waits until all flow controls have reached a generation, for at most a second. Returns whether they have.
    pub(super) async fn reached(&self, generation: u64) -> bool {
        let mut followed = self.followed.subscribe();
        let reached = followed.wait_for(|members| members.generations.values().all(|reached| *reached >= generation));
        matches!(timeout(WAIT_MAX, reached).await, Ok(Ok(_)))
    }
}

// === impl FlowControlMember ===

impl FlowControlMember {
    /// Notes that the flow control follows the objects of this generation.
    pub(super) fn reach(&self, generation: u64) {
        self.effects
            .followed
            .send_if_modified(|members| members.generations.insert(self.number, generation) != Some(generation));
    }
}

impl Drop for FlowControlMember {
    fn drop(&mut self) {
        self.effects.followed.send_modify(|members| {
            members.generations.remove(&self.number);
        });
    }
}
