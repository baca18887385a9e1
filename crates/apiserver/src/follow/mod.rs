//! One task follows the objects of the store, and publishes one shared state for all that need it: flow controls, controllers
//! and the copy of the objects.

mod effect;
mod follower;
mod objects_at;
mod pace;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use effect::Effects;

pub(crate) use follower::Follower;
pub use objects_at::ObjectsAt;
#[cfg(test)]
pub(crate) use objects_at::UpkeepOfObjects;
pub use stream::ObjectStream;

/// The state after each write; `None` until the objects have been read for the first time.
pub(crate) type States = watch::Receiver<Option<Arc<ObjectsAt>>>;

/// The state that the [`Follower`] publishes. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Followed {
    states: States,
    /// Whether the follower pauses: it ignores new writes for a while.
    is_resting: watch::Receiver<bool>,
    effects: Arc<Effects>,
}

/// How long a write waits at most until it is in effect. That takes milliseconds; a store that fails or a flow control that takes longer must not
/// delay all writes.
const WAIT_MAX: Duration = Duration::from_secs(1);

// === impl Followed ===

impl Followed {
    /// An empty state, and the follower that fills it.
    pub(crate) fn new() -> (Self, Follower) {
        let (publish, states) = watch::channel(None);
        let (rest, is_resting) = watch::channel(false);
        let effects = Arc::new(Effects::default());
        let followed = Self { states, is_resting, effects: Arc::clone(&effects) };
        (followed, Follower::new(publish, rest, effects))
    }

    /// The objects after each change that affects requests. No write waits for readers of this stream.
    pub(crate) fn stream(&self) -> ObjectStream {
        ObjectStream::new(self.states.clone(), None)
    }

    /// The same for a flow control: writes wait until it follows them.
    pub(crate) fn stream_for_flow_control(&self) -> ObjectStream {
        ObjectStream::new(self.states.clone(), Some(Effects::join(&self.effects)))
    }

    /// The state after each write, including writes that do not affect requests.
    pub(crate) fn states(&self) -> States {
        self.states.clone()
    }

    /// Waits until all flow controls follow the objects of this revision, for at most a second in all. Does not wait while the
    /// follower pauses, because then so many writes arrive that following each of them would take too much time. Returns
    /// whether the revision is in effect.
    pub(crate) async fn in_effect(&self, revision: u64) -> bool {
        timeout(WAIT_MAX, self.followed_by_all(revision)).await.unwrap_or(false)
    }

    async fn followed_by_all(&self, revision: u64) -> bool {
        let (mut states, mut is_resting) = (self.states.clone(), self.is_resting.clone());
        let is_there = |state: &Option<Arc<ObjectsAt>>| state.as_ref().is_some_and(|state| state.revision >= revision);
        let generation = tokio::select! {
            biased;
            state = states.wait_for(is_there) => {
                state.ok().and_then(|state| state.as_ref().map(|state| state.generation))
            }
            _ = is_resting.wait_for(|is_resting| *is_resting) => None,
        };
        let Some(generation) = generation else { return false };
        self.effects.reached(generation).await;
        true
    }
}

#[cfg(test)]
mod tests;
