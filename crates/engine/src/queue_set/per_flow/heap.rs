//! Flows by a number, the least first: a heap in which each flow can be found and moved.

/// A heap of flows. Each is in it once at most.
///
/// Each node has four children, so that the way down is short, and the four are in one cache line.
#[derive(Debug, Default)]
pub(super) struct FlowHeap {
    /// The first entry is the last one of the first group, and the children of entry `n` are the group `n + 1`.
    groups: Vec<Group>,
    len: usize,
    /// Where each flow is among the entries, or [`ABSENT`].
    positions: Vec<u32>,
}

/// A flow and what it is ordered by.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeapEntry {
    pub(super) key: i64,
    /// Of two entries with the same key, the one with the lower tie comes first. Ties wrap: their order is right while they are less than 2^31 apart.
    pub(super) tie: u32,
    pub(super) flow: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Group([HeapEntry; CHILDREN]);

const ABSENT: u32 = u32::MAX;
const CHILDREN: usize = 4;
/// How many places of the first group are not used.
const UNUSED: usize = CHILDREN - 1;
/// The greatest key is that of places without an entry.
const KEY_MAX: i64 = i64::MAX - 1;
const NOBODY: HeapEntry = HeapEntry { key: i64::MAX, tie: 0, flow: ABSENT };

// === impl HeapEntry ===

impl HeapEntry {
    #[inline]
    pub(super) fn is_before(&self, other: &Self) -> bool {
        // Without jumps: see `least_child`.
        (self.key < other.key) | ((self.key == other.key) & (self.tie.wrapping_sub(other.tie) > u32::MAX / 2))
    }
}

// === impl FlowHeap ===

impl FlowHeap {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The flow that comes first.
    #[inline]
    pub(super) fn first(&self) -> Option<HeapEntry> {
        self.groups.first().map(|group| group.0[UNUSED]).filter(|entry| entry.flow != ABSENT)
    }

    /// The flow that comes after the first.
    #[inline]
    pub(super) fn second(&self) -> Option<HeapEntry> {
        self.least_child(0).map(|(_, entry)| entry)
    }

    /// All flows, in no order.
    pub(super) fn flows(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().flat_map(|group| group.0).map(|entry| entry.flow).filter(|&flow| flow != ABSENT)
    }

    /// Puts a flow in, or moves it to where it belongs now.
    #[inline]
    pub(super) fn set(&mut self, flow: u32, key: i64, tie: u32) {
        let entry = HeapEntry { key: key.min(KEY_MAX), tie, flow };
        match self.position(flow) {
            Some(position) => self.replace(position, entry),
            None => {
                if self.positions.len() <= flow as usize {
                    self.positions.resize(flow as usize + 1, ABSENT);
                }
                if (self.len + UNUSED) / CHILDREN >= self.groups.len() {
                    self.groups.push(Group([NOBODY; CHILDREN]));
                }
                self.len += 1;
                self.rise(self.len - 1, entry);
            }
        }
    }

    /// Moves a flow that is in it to where it belongs by another key.
    #[inline]
    pub(super) fn set_key(&mut self, flow: u32, key: i64) {
        if let Some(position) = self.position(flow) {
            self.replace(position, HeapEntry { key: key.min(KEY_MAX), ..self.entry(position) });
        }
    }

    /// Takes a flow out, if it is in it.
    #[inline]
    pub(super) fn remove(&mut self, flow: u32) {
        let Some(position) = self.position(flow) else { return };
        self.positions[flow as usize] = ABSENT;
        self.len -= 1;
        let last = std::mem::replace(self.entry_mut(self.len), NOBODY);
        if position != self.len {
            self.replace(position, last);
        }
    }

    pub(super) fn clear(&mut self) {
        let Self { groups, positions, .. } = self;
        for entry in groups.drain(..).flat_map(|group| group.0).filter(|entry| entry.flow != ABSENT) {
            positions[entry.flow as usize] = ABSENT;
        }
        self.len = 0;
    }

    /// Lowers all keys.
    pub(super) fn lower(&mut self, by: i64) {
        let entries = self.groups.iter_mut().flat_map(|group| &mut group.0).filter(|entry| entry.flow != ABSENT);
        entries.for_each(|entry| entry.key = entry.key.saturating_sub(by));
    }

    #[inline]
    fn position(&self, flow: u32) -> Option<usize> {
        self.positions.get(flow as usize).filter(|&&position| position != ABSENT).map(|&position| position as usize)
    }

    #[inline]
    fn entry(&self, position: usize) -> HeapEntry {
        self.groups[(position + UNUSED) / CHILDREN].0[(position + UNUSED) % CHILDREN]
    }

    #[inline]
    fn entry_mut(&mut self, position: usize) -> &mut HeapEntry {
        &mut self.groups[(position + UNUSED) / CHILDREN].0[(position + UNUSED) % CHILDREN]
    }

    /// Puts an entry in the place of another, and moves it to where it belongs.
    #[inline]
    fn replace(&mut self, position: usize, entry: HeapEntry) {
        if entry.is_before(&self.entry(position)) {
            self.rise(position, entry);
        } else {
            self.sink(position, entry);
        }
    }

    /// Moves an entry up from a place whose own entry does not count any more.
    #[inline]
    fn rise(&mut self, mut position: usize, entry: HeapEntry) {
        while position > 0 {
            let above = (position - 1) / CHILDREN;
            let parent = self.entry(above);
            if !entry.is_before(&parent) {
                break;
            }
            self.put(position, parent);
            position = above;
        }
        self.put(position, entry);
    }

    /// Moves an entry down from a place whose own entry does not count any more.
    #[inline]
    fn sink(&mut self, mut position: usize, entry: HeapEntry) {
        while let Some((child, least)) = self.least_child(position) {
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
    fn least_child(&self, position: usize) -> Option<(usize, HeapEntry)> {
        let Group(children) = self.groups.get(position + 1)?;
        // Two and two, and no jumps: which of four is the least is a guess that a processor would lose.
        let least_of = |one: usize, other: usize| if children[other].is_before(&children[one]) { other } else { one };
        let least = least_of(least_of(0, 1), least_of(2, 3));
        let entry = children[least];
        (entry.flow != ABSENT).then_some((position * CHILDREN + 1 + least, entry))
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "there are less than 2^32 flows")]
    fn put(&mut self, position: usize, entry: HeapEntry) {
        *self.entry_mut(position) = entry;
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
