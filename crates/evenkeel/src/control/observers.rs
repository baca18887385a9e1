//! Who observes the levels, if anybody does.

use std::fmt;
use std::sync::Arc;

use evenkeel_engine::LevelId;
use evenkeel_engine::level::Observer;

/// What observes one level, behind its lock.
pub(crate) type LevelObserver = Option<Box<dyn Observer + Send>>;

/// Makes an observer for each level, or none.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Arc<Observe>>);

type Observe = dyn Fn(LevelId, &str) -> LevelObserver + Send + Sync;

// === impl Observers ===

impl Observers {
    pub(crate) fn new<O: Observer + Send + 'static>(
        observe: impl Fn(LevelId, &str) -> O + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(move |id, name| Some(Box::new(observe(id, name))))))
    }

    /// The observer of a level that comes into being.
    pub(crate) fn observe(&self, id: LevelId, name: &str) -> LevelObserver {
        self.0.as_ref().and_then(|observe| observe(id, name))
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.0.is_some()).finish()
    }
}
