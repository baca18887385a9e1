//! `ObjectStream`: the objects after each change that makes a difference to requests.

use std::sync::Arc;

use super::effect::Member;
use super::{ObjectsAt, States};

/// The objects, each time that they make another difference to requests. Changes that come before the last ones were taken are
/// taken together.
#[derive(Debug)]
pub struct ObjectStream {
    states: States,
    /// The generation that was taken last.
    taken: Option<u64>,
    /// Whom writes wait for, if they do.
    member: Option<Member>,
}

// === impl ObjectStream ===

impl ObjectStream {
    pub(super) fn new(states: States, member: Option<Member>) -> Self {
        Self { states, taken: None, member }
    }

    /// The objects: the first time at once, and then as soon as they have changed. None when the store is closed.
    ///
    /// Whoever asks for the next objects has put the last ones into effect, or refused them: a stream for a flow control tells
    /// waiting writes so. Nothing is lost when the future is dropped before it is ready.
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
