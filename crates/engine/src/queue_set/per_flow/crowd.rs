//! Which flow has to give way when the level is full: the flow with the most waiting seats by its weight (PF-7).
//!
//! The order of the flows by that is kept only while the level is full, or was a short time ago.

use super::active_flow::ActiveFlow;
use super::heap::FlowHeap;
use super::waiting::Waiting;

/// The waiting flows by their waiting seats, while the level is crowded.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Ordered by the seats, negated, and then by the latest arrival.
    flows: FlowHeap,
}

// === impl Crowd ===

impl Crowd {
    /// Whether the order is not kept at present.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.flows.len() == 0
    }

    /// Adds a flow when the order is made.
    pub(super) fn add(&mut self, queue: u32, flow: &ActiveFlow, waiting: &Waiting) {
        if flow.waiting == 0 {
            self.flows.remove(queue);
        } else {
            // The tie is reversed: of two equal flows, the one whose youngest request is younger has to give way.
            self.flows.set(queue, -flow.load(0), waiting.arrival_of(flow.last).wrapping_neg());
        }
    }

    /// Takes over what changed the waiting requests of a flow.
    #[inline]
    pub(super) fn update(&mut self, queue: u32, flow: &ActiveFlow, waiting: &Waiting) {
        if !self.is_empty() {
            self.add(queue, flow, waiting);
        }
    }

    /// The heaviest flow, and its load.
    pub(super) fn heaviest(&self) -> Option<(u32, i64)> {
        self.flows.first().map(|first| (first.flow, -first.key))
    }

    /// Stops keeping the order when fewer than half as many requests wait as may.
    #[inline]
    pub(super) fn end_below(&mut self, waiting: usize, limit: u64) {
        if !self.is_empty() && u64::try_from(waiting).is_ok_and(|waiting| waiting < limit / 2) {
            self.flows.clear();
        }
    }
}
