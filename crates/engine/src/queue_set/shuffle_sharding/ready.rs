//! Which queue is next: the one whose oldest request would finish first (FQ-23).
//!
//! A tournament over the queues: every inner node holds the smaller of its two children, so the root holds the
//! smallest finish of all. Changing one queue costs the height of the tree, and so does finding the first queue, in
//! cyclic order, that has the smallest finish.

use crate::SeatSeconds;

/// The finish of a queue in which nothing waits. Nothing that finishes then is ever chosen (FQ-23).
const NEVER: u64 = u64::MAX;

/// The finish of every queue, ready to be asked for the smallest.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    /// The root is at 1, the children of `n` at `2n` and `2n + 1`, the queues from `leaves` on.
    nodes: Vec<u64>,
    leaves: usize,
}

// === impl Ready ===

impl Ready {
    /// Nothing waits in any of that many queues.
    pub(super) fn new(queues: usize) -> Self {
        let leaves = queues.next_power_of_two();
        Self { nodes: vec![NEVER; 2 * leaves], leaves }
    }

    /// Builds the tree anew for queues with these finishes, in the memory that it already has if that is enough.
    pub(super) fn rebuild(&mut self, finishes: impl ExactSizeIterator<Item = Option<SeatSeconds>>) {
        self.leaves = finishes.len().next_power_of_two();
        self.nodes.clear();
        self.nodes.reserve_exact(2 * self.leaves);
        self.nodes.resize(self.leaves, NEVER);
        self.nodes.extend(finishes.map(|finish| finish.map_or(NEVER, SeatSeconds::units)));
        self.nodes.resize(2 * self.leaves, NEVER);
        for node in (1..self.leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }

    /// The oldest request of the queue would finish then; `None` if nothing waits in it.
    #[inline]
    pub(super) fn set(&mut self, queue: usize, finish: Option<SeatSeconds>) {
        let mut node = self.leaves + queue;
        let mut smaller = finish.map_or(NEVER, SeatSeconds::units);
        self.nodes[node] = smaller;
        // All the way up: stopping at the first node that stays the same would save steps, but which one that is can
        // not be predicted, and a wrong prediction costs more than the steps.
        while node > 1 {
            smaller = smaller.min(self.nodes[node ^ 1]);
            node /= 2;
            self.nodes[node] = smaller;
        }
    }

    /// The queue with the smallest finish; among equals the first from `start` on, cyclically.
    #[inline]
    pub(super) fn first(&self, start: usize) -> Option<usize> {
        let smallest = self.nodes[1];
        if smallest == NEVER {
            return None;
        }
        let (leftmost, is_only) = self.leftmost(1, smallest);
        if is_only || leftmost >= start {
            return Some(leftmost);
        }
        self.first_from(start, smallest).or(Some(leftmost))
    }

    /// The leftmost queue below a node whose finish is `smallest`, the smallest there is, and whether it is the only
    /// one. It is if the finish was never found on both sides.
    #[inline]
    fn leftmost(&self, mut node: usize, smallest: u64) -> (usize, bool) {
        let mut is_only = true;
        while node < self.leaves {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            is_only &= left != right;
            node = 2 * node + usize::from(left != smallest);
        }
        (node - self.leaves, is_only)
    }

    /// The first queue from `start` on whose finish is `smallest`, the smallest there is.
    #[cold]
    fn first_from(&self, start: usize, smallest: u64) -> Option<usize> {
        if start >= self.leaves {
            return None;
        }
        let mut node = self.leaves + start;
        while self.nodes[node] != smallest {
            // Up until there is something to the right, and then there.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        Some(self.leftmost(node, smallest).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The scan of FQ-23, word for word.
    fn scan(finishes: &[Option<SeatSeconds>], robin: usize) -> Option<usize> {
        let queues = finishes.len();
        let (mut best, mut smallest) = (None, SeatSeconds::MAX);
        for step in 1..=queues {
            let queue = (robin + step) % queues;
            if let Some(finish) = finishes[queue].filter(|finish| *finish < smallest) {
                (best, smallest) = (Some(queue), finish);
            }
        }
        best
    }

    proptest! {
        #[test]
        fn fq_23_the_tree_chooses_what_a_scan_chooses(
            queues in 1_usize..600,
            changes in proptest::collection::vec((any::<usize>(), proptest::option::of(0_u64..6), any::<usize>()), 1..200),
        ) {
            let mut ready = Ready::new(queues);
            let mut finishes = vec![None; queues];
            for (queue, finish, robin) in changes {
                let (queue, robin) = (queue % queues, robin % queues);
                // The last of the values stands for a finish at the end of time, which is never chosen.
                finishes[queue] = finish.map(|units| SeatSeconds::from_units(if units == 5 { u64::MAX } else { units }));
                ready.set(queue, finishes[queue]);
                prop_assert_eq!(ready.first((robin + 1) % queues), scan(&finishes, robin));
            }
            for queues_before in [1, 1000] {
                let mut rebuilt = Ready::new(queues_before);
                rebuilt.nodes.fill(0);
                rebuilt.rebuild(finishes.iter().copied());
                prop_assert_eq!((&rebuilt.nodes, rebuilt.leaves), (&ready.nodes, ready.leaves));
            }
        }
    }
}
