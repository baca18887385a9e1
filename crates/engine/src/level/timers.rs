//! When something is due in a level: the ends of lingering, and wait limits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::queue_set::{Phase, QueueSet, RequestId};
use crate::time::Instant;

/// The timers of a level.
///
/// A timer is not removed when its request has gone on before its time. It is passed over when it is the next one, and all
/// such timers are removed when they are more than the others: so a timer costs little, and memory follows the requests
/// that there are.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// When requests are rejected if they still wait.
    waiting: Heap,
    /// When lingering requests give their seats back.
    lingering: Heap,
}

/// Requests by the time at which something is due for them; those of the same time by their ids.
type Heap = BinaryHeap<Reverse<(Instant, RequestId)>>;

/// Up to this many timers without a request are not cleaned up.
const SURPLUS_MAX: usize = 64;

// === impl Timers ===

impl Timers {
    /// A request waits until that time at most.
    pub(super) fn wait<T>(&mut self, until: Instant, id: RequestId, set: &QueueSet<T>) {
        if self.waiting.len() > 2 * set.waiting() + SURPLUS_MAX {
            self.waiting.retain(|Reverse((_, id))| set.phase(*id) == Some(Phase::Waiting));
        }
        self.waiting.push(Reverse((until, id)));
    }

    /// A request lingers until that time. If it is released earlier, its timer stays until then at most.
    pub(super) fn linger(&mut self, until: Instant, id: RequestId) {
        self.lingering.push(Reverse((until, id)));
    }

    /// The time of the next timer.
    pub(super) fn next<T>(&mut self, set: &QueueSet<T>) -> Option<Instant> {
        self.next_heap(set).map(|(at, _)| at)
    }

    /// The next request whose time has come.
    pub(super) fn take_due<T>(&mut self, now: Instant, set: &QueueSet<T>) -> Option<RequestId> {
        let (_, heap) = self.next_heap(set).filter(|(at, _)| *at <= now)?;
        heap.pop().map(|Reverse((_, id))| id)
    }

    /// The heap that has the next timer. Of two at the same time, the one that frees seats comes before the one that rejects a
    /// request.
    fn next_heap<T>(&mut self, set: &QueueSet<T>) -> Option<(Instant, &mut Heap)> {
        let lingering = first(&mut self.lingering, Phase::Lingering, set);
        let waiting = first(&mut self.waiting, Phase::Waiting, set);
        match (lingering, waiting) {
            (Some(at), Some(wait_until)) if at <= wait_until => Some((at, &mut self.lingering)),
            (_, Some(wait_until)) => Some((wait_until, &mut self.waiting)),
            (Some(at), None) => Some((at, &mut self.lingering)),
            (None, None) => None,
        }
    }
}

/// The time of the first timer whose request is still in that phase. Those before it are removed.
fn first<T>(heap: &mut Heap, phase: Phase, set: &QueueSet<T>) -> Option<Instant> {
    while let Some(&Reverse((at, id))) = heap.peek() {
        if set.phase(id) == Some(phase) {
            return Some(at);
        }
        heap.pop();
    }
    None
}
