//! `Effects`: the generation of objects that each flow control follows, so that a write can wait until its object is in
//! effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

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

    /// Waits until all flow controls have reached a generation, however long that takes.
    pub(super) async fn reached(&self, generation: u64) {
        let mut followed = self.followed.subscribe();
        let reached = followed.wait_for(|members| members.generations.values().all(|reached| *reached >= generation));
        // The sender is as old as this, so it is there.
        let _ = reached.await;
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
