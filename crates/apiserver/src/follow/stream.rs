//! `ObjectStream`: the objects after each change that affects requests.

use std::sync::Arc;

use super::effect::FlowControlMember;
use super::{ObjectsAt, States};

/// The objects, after each change that affects requests. Changes that arrive before the previous ones were taken are taken
/// together.
#[derive(Debug)]
pub struct ObjectStream {
    states: States,
    /// The generation that was taken last.
    taken: Option<u64>,
    /// The flow control that writes wait for, if they do.
    member: Option<FlowControlMember>,
}

// === impl ObjectStream ===

impl ObjectStream {
    pub(super) fn new(states: States, member: Option<FlowControlMember>) -> Self {
        Self { states, taken: None, member }
    }

    /// The objects: the first time at once, and then as soon as they have changed. `None` when the store is closed.
    ///
    /// A caller that asks for the next objects has applied the previous ones, or rejected them: a stream for a flow control
    /// reports that to waiting writes. Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Option<Arc<ObjectsAt>> {
        if let (Some(member), Some(taken)) = (&self.member, self.taken) {
            member.reach(taken);
        }
        let taken = self.taken;
        let is_news = |state: &Option<Arc<ObjectsAt>>| state.as_ref().is_some_and(|it| Some(it.generation) != taken);
        let state = self.states.wait_for(is_news).await.ok()?.clone()?;
        self.taken = Some(state.generation);
        Some(state)
    }
}
