//! Whether the gateway accepts requests, and whether its objects are up to date.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use crate::objects::SourceStatus;

/// The phase of the gateway's life. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<ReadinessState>);

#[derive(Debug, Default)]
struct ReadinessState {
    phase: AtomicU8,
    /// The status of the source of objects, if it has one.
    source: OnceLock<Arc<dyn SourceStatus>>,
}

/// The phases of a gateway's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Phase {
    /// The gateway does not listen yet.
    Starting,
    /// The gateway serves requests.
    Ready,
    /// The gateway has been told to stop, and ends what it has begun.
    Draining,
}

// === impl Readiness ===

impl Readiness {
    /// The current phase.
    pub fn phase(&self) -> Phase {
        match self.0.phase.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Ready,
            _ => Phase::Draining,
        }
    }

    /// Enters a phase. It never goes back.
    pub fn enter(&self, phase: Phase) {
        self.0.phase.fetch_max(phase as u8, Ordering::AcqRel);
    }

    /// Why the objects may be out of date, if they may.
    pub fn objects_stale(&self) -> Option<String> {
        self.source()?.stale()
    }

    /// The status of the source of objects.
    pub fn source(&self) -> Option<&dyn SourceStatus> {
        self.0.source.get().map(AsRef::as_ref)
    }

    /// Sets the status of the source of objects. It never changes.
    pub fn set_source(&self, source: Arc<dyn SourceStatus>) {
        let _ = self.0.source.set(source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_drains_is_never_ready_again() {
        let readiness = Readiness::default();
        assert_eq!(readiness.phase(), Phase::Starting);
        readiness.enter(Phase::Draining);
        readiness.enter(Phase::Ready);
        assert_eq!(readiness.phase(), Phase::Draining);
    }
}
