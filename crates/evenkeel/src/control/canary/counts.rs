//! `CanaryTally`: counts what becomes of the requests of a canary.

use std::sync::Arc;

use evenkeel_engine::Histogram;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::Nanos;

use crate::control::events::{Event, EventKind, Listener};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// How many requests there were, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CanaryCounts {
    pub(super) requests: u64,
    pub(super) rejected: u64,
    pub(super) started: u64,
    /// How many of those that started had waited for longer than the bound.
    pub(super) slow: u64,
}

/// The counts of all levels of a canary together.
#[derive(Debug)]
pub(super) struct CanaryTally {
    bound: Nanos,
    counted: Mutex<Counted>,
}

/// The counts, and how long requests waited.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) counts: CanaryCounts,
    pub(super) wait: Histogram,
}

/// Counts what happens in a level.
pub(super) struct TallyListener(pub(super) Arc<CanaryTally>);

// === impl CanaryCounts ===

impl CanaryCounts {
    /// The counts that have been added since then.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            rejected: self.rejected.saturating_sub(before.rejected),
            started: self.started.saturating_sub(before.started),
            slow: self.slow.saturating_sub(before.slow),
        }
    }
}

// === impl CanaryTally ===

impl CanaryTally {
    /// Requests that wait for longer than the bound are slow.
    pub(super) fn new(bound: Nanos) -> Self {
        Self { bound, counted: Mutex::default() }
    }

    pub(super) fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Counted ===

impl Counted {
    fn start(&mut self, waited: Nanos, bound: Nanos) {
        self.counts.started += 1;
        self.counts.slow += u64::from(waited > bound);
        self.wait.record(waited);
    }
}

// === impl TallyListener ===

impl Listener for TallyListener {
    fn on_events(&mut self, events: &[Event]) {
        let Self(tally) = self;
        let mut counted = tally.counted();
        for event in events {
            match event.kind {
                EventKind::Passed { .. } => {
                    counted.counts.requests += 1;
                    counted.start(0, tally.bound);
                }
                EventKind::Arrived { .. } => counted.counts.requests += 1,
                EventKind::Started { waited, .. } => counted.start(waited, tally.bound),
                EventKind::Refused { .. } => {
                    counted.counts.requests += 1;
                    counted.counts.rejected += 1;
                }
                EventKind::GaveUp { reason, .. } if reason != Rejection::Cancelled => counted.counts.rejected += 1,
                _ => {}
            }
        }
    }
}
