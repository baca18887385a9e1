//! The waiting requests of all flows: a list for each flow, in the order of arrival.
//!
//! Serving a flow takes the neighbours of a request, its number and its seats. They are together here, apart from the requests,
//! which are not in the cache when many wait.

use super::active_flow::ActiveFlow;
use crate::queue_set::requests::NO_SLOT;

/// All waiting requests, by their slots.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    nodes: Vec<Node>,
    /// How many requests have been queued, modulo 2^32.
    arrivals: u32,
}

/// A waiting request.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(16))]
struct Node {
    /// The slots of its neighbours in the queue of its flow, or [`NO_SLOT`].
    previous: u32,
    next: u32,
    /// How many requests had been queued before it, modulo 2^32.
    arrival: u32,
    seats: u32,
}

// === impl Waiting ===

impl Waiting {
    /// The request in that slot waits behind all others of its flow.
    #[inline]
    pub(super) fn push_back(&mut self, flow: &mut ActiveFlow, slot: u32, seats: u32) {
        if self.nodes.len() <= slot as usize {
            self.nodes.resize(slot as usize + 1, Node::default());
        }
        self.arrivals = self.arrivals.wrapping_add(1);
        self.nodes[slot as usize] = Node { previous: flow.last, next: NO_SLOT, arrival: self.arrivals, seats };
        if flow.last == NO_SLOT {
            (flow.first, flow.first_seats) = (slot, seats);
        } else {
            self.nodes[flow.last as usize].next = slot;
        }
        flow.last = slot;
        flow.waiting += 1;
        flow.seats_waiting += u64::from(seats);
    }

    /// The request in that slot waits no longer.
    #[inline]
    pub(super) fn remove(&mut self, flow: &mut ActiveFlow, slot: u32) {
        let Node { previous, next, seats, .. } = self.nodes[slot as usize];
        if next == NO_SLOT {
            flow.last = previous;
        } else {
            self.nodes[next as usize].previous = previous;
        }
        if previous == NO_SLOT {
            flow.first = next;
            flow.first_seats = self.nodes.get(next as usize).map_or(0, |node| node.seats);
        } else {
            self.nodes[previous as usize].next = next;
        }
        flow.waiting -= 1;
        flow.seats_waiting -= u64::from(seats);
    }

    /// The number of the request in that slot: of two, the one that came first has the lower one. It wraps.
    #[inline]
    pub(super) fn arrival_of(&self, slot: u32) -> u32 {
        self.nodes[slot as usize].arrival
    }

    /// The slot of the request behind the one in that slot.
    #[inline]
    pub(super) fn behind(&self, slot: u32) -> Option<u32> {
        self.nodes.get(slot as usize).map(|node| node.next).filter(|&next| next != NO_SLOT)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::active_flow::Pace;
    use super::*;

    proptest! {
        /// Requests of two flows come, and leave from the front, the middle or the end.
        #[test]
        fn each_flow_has_a_list_from_which_anybody_may_leave(
            steps in prop::collection::vec((0_usize..2, prop::option::weighted(0.4, any::<prop::sample::Index>())), 1..200),
        ) {
            let (mut waiting, mut free) = (Waiting { arrivals: u32::MAX - 90, ..Waiting::default() }, Vec::new());
            let mut flows = [ActiveFlow::new(1, 1, 0, Pace::Quick), ActiveFlow::new(1, 1, 0, Pace::Quick)];
            let mut plain: [Vec<(u32, u32)>; 2] = Default::default();
            for (number, (which, leaves)) in (1_u32..).zip(steps) {
                let (flow, list) = (&mut flows[which], &mut plain[which]);
                match leaves {
                    Some(index) if !list.is_empty() => {
                        let (slot, _) = list.remove(index.index(list.len()));
                        waiting.remove(flow, slot);
                        free.push(slot);
                    }
                    Some(_) => {}
                    None => {
                        let slot = free.pop().unwrap_or(number);
                        waiting.push_back(flow, slot, number);
                        list.push((slot, number));
                    }
                }
                let first = Some(flow.first).filter(|&first| first != NO_SLOT);
                let slots: Vec<_> = std::iter::successors(first, |&slot| waiting.behind(slot)).collect();
                prop_assert_eq!(&slots, &list.iter().map(|(slot, _)| *slot).collect::<Vec<_>>());
                prop_assert_eq!(flow.last, list.last().map_or(NO_SLOT, |(slot, _)| *slot));
                prop_assert_eq!(flow.first_seats, list.first().map_or(0, |(_, seats)| *seats));
                prop_assert_eq!(flow.seats_waiting, list.iter().map(|(_, seats)| u64::from(*seats)).sum::<u64>());
                prop_assert_eq!(flow.waiting as usize, list.len());
                let arrivals: Vec<_> = slots.iter().map(|&slot| waiting.arrival_of(slot).wrapping_add(100)).collect();
                prop_assert!(arrivals.is_sorted(), "{arrivals:?}");
            }
        }
    }
}
