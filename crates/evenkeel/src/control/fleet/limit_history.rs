//! `LimitHistory`: what this instance has decided about the limit of its fleet (FL-13).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use evenkeel_engine::auto_limit::LimitChange;
use evenkeel_engine::time::Instant;

use crate::control::limit::LimitStep;

/// The latest decisions, by the clock of the fleet.
#[derive(Debug, Default)]
pub(super) struct LimitHistory {
    steps: VecDeque<(u64, LimitChange)>,
    counts: BTreeMap<&'static str, u64>,
    next: u64,
}

/// So many decisions are kept.
const STEPS_MAX: usize = 256;

// === impl LimitHistory ===

impl LimitHistory {
    pub(super) fn note(&mut self, changes: &[LimitChange]) {
        for change in changes {
            if self.steps.len() == STEPS_MAX {
                self.steps.pop_front();
            }
            self.steps.push_back((self.next, *change));
            self.next += 1;
            *self.counts.entry(change.reason.as_str()).or_default() += 1;
        }
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.clone()
    }

    pub(super) fn steps(&self, now: Instant) -> Vec<LimitStep> {
        let ago = |at: Instant| Duration::from_nanos(u64::try_from(now - at).unwrap_or(0));
        self.steps
            .iter()
            .map(|(number, change)| LimitStep { number: *number, ago: ago(change.at), change: *change })
            .collect()
    }
}
