//! Flows by a number, the least first: a heap in which each flow can be found and moved.

/// A heap of flows. Each is in it once at most.
///
/// Each node has four children, so that the way down is short and the children share a cache line.
#[derive(Debug, Default)]
pub(super) struct FlowHeap {
    entries: Vec<Entry>,
    /// Where each flow is among the entries, or [`ABSENT`].
    positions: Vec<u32>,
}

/// A flow and what it is ordered by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) key: i64,
    /// Of two with the same key, the lower one comes first. It wraps: right while the two are less than 2^31 apart.
    pub(super) tie: u32,
    pub(super) flow: u32,
}

const ABSENT: u32 = u32::MAX;
const CHILDREN: usize = 4;

// === impl Entry ===

impl Entry {
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        // Without jumps: see `least_child`.
        (self.key < other.key) | ((self.key == other.key) & (self.tie.wrapping_sub(other.tie) > u32::MAX / 2))
    }
}

// === impl FlowHeap ===

impl FlowHeap {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The flow that comes first.
    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    /// All flows, in no order.
    pub(super) fn flows(&self) -> impl Iterator<Item = u32> {
        self.entries.iter().map(|entry| entry.flow)
    }

    /// Puts a flow in, or moves it to where it belongs now.
    #[inline]
    pub(super) fn set(&mut self, flow: u32, key: i64, tie: u32) {
        let entry = Entry { key, tie, flow };
        match self.position(flow) {
            Some(position) if entry.is_before(&self.entries[position]) => self.rise(position, entry),
            Some(position) => self.sink(position, entry),
            None => {
                if self.positions.len() <= flow as usize {
                    self.positions.resize(flow as usize + 1, ABSENT);
                }
                self.entries.push(entry);
                self.rise(self.entries.len() - 1, entry);
            }
        }
    }

    /// Takes a flow out, if it is in it.
    #[inline]
    pub(super) fn remove(&mut self, flow: u32) {
        let Some(position) = self.position(flow) else { return };
        self.positions[flow as usize] = ABSENT;
        let Some(last) = self.entries.pop() else { return };
        if position == self.entries.len() {
            return;
        }
        if last.is_before(&self.entries[position]) {
            self.rise(position, last);
        } else {
            self.sink(position, last);
        }
    }

    pub(super) fn clear(&mut self) {
        for entry in self.entries.drain(..) {
            self.positions[entry.flow as usize] = ABSENT;
        }
    }

    /// Lowers all keys.
    pub(super) fn lower(&mut self, by: i64) {
        self.entries.iter_mut().for_each(|entry| entry.key = entry.key.saturating_sub(by));
    }

    #[inline]
    fn position(&self, flow: u32) -> Option<usize> {
        self.positions.get(flow as usize).filter(|&&position| position != ABSENT).map(|&position| position as usize)
    }

    /// Moves an entry up from a place whose own entry does not count any more.
    #[inline]
    fn rise(&mut self, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if !entry.is_before(&self.entries[parent]) {
                break;
            }
            self.put(position, self.entries[parent]);
            position = parent;
        }
        self.put(position, entry);
    }

    /// Moves an entry down from a place whose own entry does not count any more.
    #[inline]
    fn sink(&mut self, mut position: usize, entry: Entry) {
        while let Some(child) = self.least_child(position) {
            let least = self.entries[child];
            if !least.is_before(&entry) {
                break;
            }
            self.put(position, least);
            position = child;
        }
        self.put(position, entry);
    }

    /// The child of a place that comes before its siblings.
    #[inline]
    fn least_child(&self, position: usize) -> Option<usize> {
        let first = position * CHILDREN + 1;
        let end = (first + CHILDREN).min(self.entries.len());
        match self.entries.get(first..end)? {
            [] => None,
            // Two and two, and no jumps: which of four is the least is a guess that a processor would lose.
            [one, two, three, four] => {
                let (left, right) = (usize::from(two.is_before(one)), 2 + usize::from(four.is_before(three)));
                let is_right = self.entries[first + right].is_before(&self.entries[first + left]);
                Some(first + if is_right { right } else { left })
            }
            fewer => {
                let least = fewer
                    .iter()
                    .zip(first..)
                    .reduce(|least, child| if child.0.is_before(least.0) { child } else { least });
                least.map(|(_, child)| child)
            }
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "there are less than 2^32 flows")]
    fn put(&mut self, position: usize, entry: Entry) {
        self.entries[position] = entry;
        self.positions[entry.flow as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Puts in, moves and takes out at random, and compares with a sorted list.
        #[test]
        fn the_least_is_always_first(steps in prop::collection::vec((0_u32..40, prop::option::weighted(0.7, -5_i64..5)), 1..300)) {
            let (mut heap, mut plain) = (FlowHeap::default(), Vec::<(i64, u32, u32)>::new());
            // Begins before the ties wrap.
            for (number, (flow, key)) in steps.into_iter().enumerate() {
                let tie = u32::try_from(number).unwrap();
                plain.retain(|&(_, _, other)| other != flow);
                match key {
                    Some(key) => {
                        heap.set(flow, key, tie.wrapping_sub(100));
                        plain.push((key, tie, flow));
                    }
                    None => heap.remove(flow),
                }
                plain.sort_unstable();
                prop_assert_eq!(heap.first().map(|entry| entry.flow), plain.first().map(|&(_, _, flow)| flow));
                prop_assert_eq!(heap.len(), plain.len());
            }
            while let Some(first) = heap.first() {
                prop_assert_eq!(first.flow, plain.remove(0).2);
                heap.remove(first.flow);
            }
            prop_assert!(plain.is_empty());
        }
    }
}
