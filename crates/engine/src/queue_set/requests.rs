//! The requests that a queue set knows: waiting, executing or lingering.
//!
//! They stand in slots that are used again, so that nothing is allocated once the set has seen its largest crowd. A slot
//! counts how often it has been used, and is given up before that count would begin anew.

use std::fmt;

use crate::time::Instant;
use crate::{SeatSeconds, WorkEstimate};

/// Names a request of one queue set. It is never given to another request of that set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId {
    /// The slot in the lower half and its generation in the upper one: a name is handed on as one number.
    number: u64,
}

/// What a request is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It waits in its queue.
    Waiting,
    /// Its handler runs.
    Executing,
    /// Its handler has returned, and it still holds its seats.
    Lingering,
}

/// A request and what its caller keeps with it.
#[derive(Debug)]
pub(super) struct Request<T> {
    pub(super) stage: Stage,
    /// The queue that it came through, or [`NO_QUEUE`].
    pub(super) queue: u32,
    pub(super) work: WorkEstimate,
    pub(super) arrived: Instant,
    pub(super) payload: T,
}

/// What a request is doing, and what is known of it only then.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    Waiting(Place),
    Executing { started: Instant },
    Lingering { started: Instant },
}

/// The place of a request in its queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The slot of the request before it, or [`NO_SLOT`].
    pub(super) previous: u32,
    /// The slot of the request after it, or [`NO_SLOT`].
    pub(super) next: u32,
    /// The progress when it arrived.
    pub(super) arrival_r: SeatSeconds,
    /// What it is charged up front.
    pub(super) total_work: SeatSeconds,
}

/// The queue of a request that came through none.
pub(super) const NO_QUEUE: u32 = u32::MAX;
/// No slot.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// All requests of a queue set.
#[derive(Debug)]
pub(super) struct Requests<T> {
    slots: Vec<Slot<T>>,
    free: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    content: Content<T>,
}

#[derive(Debug)]
enum Content<T> {
    /// The next free slot.
    Free(u32),
    Taken(Request<T>),
}

// === impl RequestId ===

impl RequestId {
    /// A number below the largest number of requests that the set has held at one time: an index for a table that the
    /// caller keeps beside it. (A number that has been given out 2^32 times is not used again, and so there is one more
    /// for each such.)
    #[inline]
    pub fn slot(self) -> usize {
        self.slot_number() as usize
    }

    #[inline]
    fn new(slot: u32, generation: u32) -> Self {
        Self { number: u64::from(slot) | u64::from(generation) << 32 }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
    pub(super) fn slot_number(self) -> u32 {
        self.number as u32
    }

    #[inline]
    fn generation(self) -> u32 {
        (self.number >> 32) as u32
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (slot, generation) = (self.slot_number(), self.generation());
        f.debug_struct("RequestId").field("slot", &slot).field("generation", &generation).finish()
    }
}

// === impl Stage ===

impl Stage {
    pub(super) fn phase(self) -> Phase {
        match self {
            Self::Waiting(_) => Phase::Waiting,
            Self::Executing { .. } => Phase::Executing,
            Self::Lingering { .. } => Phase::Lingering,
        }
    }
}

// === impl Requests ===

impl<T> Requests<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: NO_SLOT }
    }

    /// The name that the next request gets.
    #[inline]
    pub(super) fn next_id(&mut self) -> RequestId {
        if self.free == NO_SLOT {
            self.add_slot();
        }
        RequestId::new(self.free, self.slots[self.free as usize].generation)
    }

    /// Takes a request in, which gets the [next name](Self::next_id).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "so that the request is written where it stays, and not moved there")]
    pub(super) fn insert(&mut self, request: Request<T>) -> RequestId {
        let id = self.next_id();
        let taken = &mut self.slots[id.slot()];
        // Inside, where it is known that nothing has to be dropped: the request is written where it stays.
        if let Content::Free(next) = taken.content {
            self.free = next;
            taken.content = Content::Taken(request);
        }
        id
    }

    #[cold]
    fn add_slot(&mut self) {
        let slot = u32::try_from(self.slots.len()).unwrap_or(NO_SLOT);
        assert!(slot < NO_SLOT, "a queue set holds less than 2^32 requests");
        self.slots.push(Slot { generation: 0, content: Content::Free(NO_SLOT) });
        self.free = slot;
    }

    /// The request, unless it is gone.
    #[inline]
    pub(super) fn get(&self, id: RequestId) -> Option<&Request<T>> {
        match self.slots.get(id.slot()) {
            Some(Slot { generation, content: Content::Taken(request) }) if *generation == id.generation() => {
                Some(request)
            }
            _ => None,
        }
    }

    /// The request, unless it is gone, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, id: RequestId) -> Option<&mut Request<T>> {
        match self.slots.get_mut(id.slot()) {
            Some(Slot { generation, content: Content::Taken(request) }) if *generation == id.generation() => {
                Some(request)
            }
            _ => None,
        }
    }

    /// The request in a slot, and its name.
    pub(super) fn in_slot(&self, slot: u32) -> Option<(RequestId, &Request<T>)> {
        match self.slots.get(slot as usize) {
            Some(Slot { generation, content: Content::Taken(request) }) => {
                Some((RequestId::new(slot, *generation), request))
            }
            _ => None,
        }
    }

    /// The request in a slot, and its name, to be changed.
    #[inline]
    pub(super) fn in_slot_mut(&mut self, slot: u32) -> Option<(RequestId, &mut Request<T>)> {
        match self.slots.get_mut(slot as usize) {
            Some(Slot { generation, content: Content::Taken(request) }) => {
                Some((RequestId::new(slot, *generation), request))
            }
            _ => None,
        }
    }

    /// The place of the waiting request in a slot, to be changed.
    #[inline]
    pub(super) fn place_mut(&mut self, slot: u32) -> Option<&mut Place> {
        match self.in_slot_mut(slot)?.1 {
            Request { stage: Stage::Waiting(place), .. } => Some(place),
            _ => None,
        }
    }

    /// Lets the request go.
    #[inline]
    pub(super) fn remove(&mut self, id: RequestId) -> Option<Request<T>> {
        let slot = self.slots.get_mut(id.slot()).filter(|slot| slot.generation == id.generation())?;
        match std::mem::replace(&mut slot.content, Content::Free(self.free)) {
            Content::Taken(request) => {
                // The slot of the last generation stays as it is, on no list: no name is left for another request.
                if let Some(next) = slot.generation.checked_add(1) {
                    slot.generation = next;
                    self.free = id.slot_number();
                }
                Some(request)
            }
            // Only a slot whose names are used up is free under a generation that was given out.
            Content::Free(next) => {
                slot.content = Content::Free(next);
                None
            }
        }
    }

    /// All requests, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestId, &Request<T>)> {
        self.slots.iter().zip(0..).filter_map(|(slot, index)| match &slot.content {
            Content::Taken(request) => Some((RequestId::new(index, slot.generation), request)),
            Content::Free(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(payload: u32) -> Request<u32> {
        let started = Instant::from_nanos(0);
        let stage = Stage::Executing { started };
        Request { stage, queue: NO_QUEUE, work: WorkEstimate::ONE_SEAT, arrived: started, payload }
    }

    #[test]
    fn a_name_is_never_given_again() {
        let mut requests = Requests::new();
        let first = requests.insert(request(1));
        assert!(requests.remove(first).is_some());
        // As after 2^32 - 2 more requests.
        requests.slots[first.slot()].generation = u32::MAX;
        let last = requests.insert(request(2));
        assert_eq!((last.slot(), last.generation()), (first.slot(), u32::MAX));
        let other = requests.insert(request(3));
        assert_eq!(requests.remove(last).map(|request| request.payload), Some(2));

        assert!(requests.get(last).is_none() && requests.remove(last).is_none(), "it is gone");
        let next = requests.insert(request(4));
        assert!(
            next != first && next.slot() != last.slot() && next.slot() != other.slot(),
            "{next:?}: the slot is given up"
        );
        assert!(requests.get(first).is_none());
        assert_eq!(requests.remove(other).map(|request| request.payload), Some(3));
        assert_eq!(requests.insert(request(5)).slot(), other.slot(), "other slots are used again");
        let mut left: Vec<_> = requests.iter().map(|(_, request)| request.payload).collect();
        left.sort_unstable();
        assert_eq!(left, [4, 5]);
    }
}
