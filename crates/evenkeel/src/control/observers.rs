//! Who observes the levels, if anybody does.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use evenkeel_engine::LevelId;
use evenkeel_engine::attribution::Attribution;
use evenkeel_engine::level::{NewRequest, Observer};
use evenkeel_engine::queue_set::{Rejection, RequestId};
use evenkeel_engine::time::Instant;

/// What observes one level, behind its lock.
#[derive(Debug, Default)]
pub(crate) struct LevelObserver {
    /// Who uses the level, and who delays whom.
    pub(crate) attribution: Option<Box<Attribution>>,
    other: Option<Box<dyn Observer + Send>>,
}

/// Makes an observer for each level, or none.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    pub(crate) attributes_flows: bool,
    other: Option<Arc<Observe>>,
}

type Observe = dyn Fn(LevelId, &str) -> Box<dyn Observer + Send> + Send + Sync;

// === impl Observers ===

impl Observers {
    /// These observe the levels too.
    pub(crate) fn set_other<O: Observer + Send + 'static>(
        &mut self,
        observe: impl Fn(LevelId, &str) -> O + Send + Sync + 'static,
    ) {
        self.other = Some(Arc::new(move |id, name| Box::new(observe(id, name))));
    }

    /// The observer of a level that comes into being.
    pub(crate) fn observe(&self, id: LevelId, name: &str) -> LevelObserver {
        // Clients that knew the seed could choose names that are slow to find.
        let attribution = || Box::new(Attribution::new(RandomState::new().hash_one(name)));
        LevelObserver {
            attribution: self.attributes_flows.then(attribution),
            other: self.other.as_ref().map(|observe| observe(id, name)),
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.attributes_flows).field(&self.other.is_some()).finish()
    }
}

// === impl LevelObserver ===

impl Observer for LevelObserver {
    #[inline]
    fn is_active(&self) -> bool {
        self.attribution.is_some() || self.other.is_some()
    }

    #[inline]
    fn arrived(&mut self, now: Instant, id: RequestId, request: &NewRequest<'_>) {
        self.attribution.arrived(now, id, request);
        self.other.arrived(now, id, request);
    }

    #[inline]
    fn queued(&mut self, now: Instant, id: RequestId) {
        self.attribution.queued(now, id);
        self.other.queued(now, id);
    }

    #[inline]
    fn started(&mut self, now: Instant, id: RequestId) {
        self.attribution.started(now, id);
        self.other.started(now, id);
    }

    #[inline]
    fn finished(&mut self, now: Instant, id: RequestId) {
        self.attribution.finished(now, id);
        self.other.finished(now, id);
    }

    #[inline]
    fn released(&mut self, now: Instant, id: RequestId) {
        self.attribution.released(now, id);
        self.other.released(now, id);
    }

    #[inline]
    fn rejected(&mut self, now: Instant, id: RequestId, reason: Rejection) {
        self.attribution.rejected(now, id, reason);
        self.other.rejected(now, id, reason);
    }
}
