//! The requests that a queue set knows: waiting, executing or lingering.
//!
//! Requests are in slots that are used again, so that nothing is allocated once the set has seen its largest crowd. A slot
//! counts how often it has been used, and is retired before that count would start again from zero.

use std::fmt;
use std::hint::black_box;

use crate::time::Instant;
use crate::{SeatSeconds, WorkEstimate};

/// Names a request of one queue set. It is never given to another request of that set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// The slot in the lower half and its generation in the upper one: an id is passed on as one number.
    number: u64,
}

/// What a request is doing.
///
/// Not `#[non_exhaustive]`: a caller has to handle every phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The request waits in its queue.
    Waiting,
    /// The handler of the request runs.
    Executing,
    /// The handler has returned, and the request still holds its seats.
    Lingering,
}

/// A slot: a request and what its caller keeps with it, or nothing.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Request<T> {
    pub(super) stage: Stage,
    pub(super) work: WorkEstimate,
    generation: u32,
    /// The key of the queue that it came through, or [`NO_QUEUE`], or [`SEATLESS`].
    pub(super) queue: u32,
    pub(super) arrived: Instant,
    /// `None` if the slot is free.
    payload: Option<T>,
}

/// The phase of a request, with what is known of it only in that phase.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// There is no request in the slot.
    Free,
    /// Its flow and its number are kept for a change of the discipline. All of it takes no more room than the other stages.
    Waiting {
        /// The virtual time at its arrival, for shuffle-sharded queues.
        arrival_r: SeatSeconds,
        /// Identity and weight of its flow.
        hash: u64,
        weight: u16,
        /// How many requests had waited before it, modulo 2^32. (The time of its arrival may be that of others too.)
        arrival: u32,
    },
    Executing(Run),
    Lingering(Run),
}

/// Since when a request runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) started: Instant,
    /// Since when it has its present seats. What it used before that has been charged.
    pub(super) resized: Instant,
}

/// The slots of the neighbours of a waiting request in its queue, or [`NO_SLOT`]. Of a free slot, `next` is the next free one.
///
/// Links are kept apart from the requests, so that following them does not touch the requests, which are not in the cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    pub(super) previous: u32,
    pub(super) next: u32,
}

/// The queue of a request that came through none.
pub(super) const NO_QUEUE: u32 = u32::MAX;
/// The queue of a request that takes no seat: it came through none, and nobody waits for its end.
pub(super) const SEATLESS: u32 = u32::MAX - 1;
/// No slot.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// With fewer slots than this, all requests are in the cache anyway.
const FAR: usize = 4096;

/// Whether that is the key of a queue.
#[inline]
pub(super) const fn is_queue(queue: u32) -> bool {
    queue < SEATLESS
}

/// All requests of a queue set.
#[derive(Debug)]
pub(super) struct Requests<T> {
    slots: Vec<Request<T>>,
    /// The links of each slot.
    links: Vec<Links>,
    free: u32,
    /// How many have waited, modulo 2^32.
    arrivals: u32,
}

// === impl RequestId ===

impl RequestId {
    /// Names no request: no queue set ever gives it out.
    pub const NONE: Self = Self { number: u64::MAX };

    /// A number below the largest number of requests that the set has held at one time: an index for a table that the
    /// caller keeps beside it. (A number that has been given out 2^32 times is not used again, and so there is one more
    /// for each such.)
    #[inline]
    pub fn slot(self) -> usize {
        self.slot_number() as usize
    }

    /// The id as one number, for records.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.number
    }

    /// The id that has this number.
    #[inline]
    pub fn from_bits(number: u64) -> Self {
        Self { number }
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

// === impl Run ===

impl Run {
    /// A request starts.
    #[inline]
    pub(super) fn starting(now: Instant) -> Self {
        Self { started: now, resized: now }
    }
}

// === impl Request ===

impl<T> Request<T> {
    /// What the request is doing; `None` if the slot is free.
    #[inline]
    pub(super) fn phase(&self) -> Option<Phase> {
        match self.stage {
            Stage::Free => None,
            Stage::Waiting { .. } => Some(Phase::Waiting),
            Stage::Executing(_) => Some(Phase::Executing),
            Stage::Lingering(_) => Some(Phase::Lingering),
        }
    }

    /// When the request started, if it has.
    #[inline]
    pub(super) fn started(&self) -> Option<Instant> {
        match self.stage {
            Stage::Free | Stage::Waiting { .. } => None,
            Stage::Executing(run) | Stage::Lingering(run) => Some(run.started),
        }
    }

    /// The virtual time at its arrival, while it waits.
    #[inline]
    pub(super) fn arrival_r(&self) -> Option<SeatSeconds> {
        match self.stage {
            Stage::Waiting { arrival_r, .. } => Some(arrival_r),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn payload(&self) -> Option<&T> {
        self.payload.as_ref()
    }

    #[inline]
    pub(super) fn payload_mut(&mut self) -> Option<&mut T> {
        self.payload.as_mut()
    }
}

// === impl Requests ===

impl<T> Requests<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), links: Vec::new(), free: NO_SLOT, arrivals: 0 }
    }

    /// The id that the next request gets.
    #[inline]
    pub(super) fn next_id(&mut self) -> RequestId {
        if self.free == NO_SLOT {
            self.add_slot();
        }
        RequestId::new(self.free, self.slots[self.free as usize].generation)
    }

    /// Takes a request in, which gets the [next id](Self::next_id).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "so that the request is written where it stays, and not moved there")]
    pub(super) fn insert(
        &mut self,
        stage: Stage,
        queue: u32,
        work: WorkEstimate,
        arrived: Instant,
        payload: T,
    ) -> RequestId {
        let id = self.next_id();
        self.free = self.links[id.slot()].next;
        let slot = &mut self.slots[id.slot()];
        (slot.stage, slot.queue, slot.work, slot.arrived) = (stage, queue, work, arrived);
        slot.payload = Some(payload);
        id
    }

    /// The stage of a request of that flow that waits from now on.
    #[inline]
    pub(super) fn begin_waiting(&mut self, arrival_r: SeatSeconds, hash: u64, weight: u16) -> Stage {
        self.arrivals = self.arrivals.wrapping_add(1);
        Stage::Waiting { arrival_r, hash, weight, arrival: self.arrivals }
    }

    /// The slots of all waiting requests, and the identities and weights of their flows, in the order of their arrival.
    pub(super) fn by_arrival(&self) -> Vec<(u32, u64, u16)> {
        let waiting = self.slots.iter().zip(0..).filter_map(|(request, slot)| match request.stage {
            Stage::Waiting { hash, weight, arrival, .. } => {
                Some((self.arrivals.wrapping_sub(arrival), (slot, hash, weight)))
            }
            _ => None,
        });
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable_by_key(|(later_arrivals, _)| std::cmp::Reverse(*later_arrivals));
        waiting.into_iter().map(|(_, request)| request).collect()
    }

    #[cold]
    fn add_slot(&mut self) {
        let slot = u32::try_from(self.slots.len()).unwrap_or(NO_SLOT);
        assert!(slot < NO_SLOT, "a queue set holds less than 2^32 requests");
        self.links.push(Links { previous: NO_SLOT, next: NO_SLOT });
        self.slots.push(Request {
            stage: Stage::Free,
            work: WorkEstimate::ONE_SEAT,
            generation: 0,
            queue: NO_QUEUE,
            arrived: Instant::default(),
            payload: None,
        });
        self.free = slot;
    }

    /// The request, unless it is gone.
    #[inline]
    pub(super) fn get(&self, id: RequestId) -> Option<&Request<T>> {
        self.slots.get(id.slot()).filter(|slot| slot.is(id))
    }

    /// The request, unless it is gone, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, id: RequestId) -> Option<&mut Request<T>> {
        self.slots.get_mut(id.slot()).filter(|slot| slot.is(id))
    }

    /// What is in a slot; `None` if there is no such slot.
    #[inline]
    pub(super) fn slot(&self, slot: u32) -> Option<&Request<T>> {
        self.slots.get(slot as usize)
    }

    /// What is in a slot, to be changed.
    #[inline]
    pub(super) fn slot_mut(&mut self, slot: u32) -> Option<&mut Request<T>> {
        self.slots.get_mut(slot as usize)
    }

    /// The neighbours of all requests, by slot.
    pub(super) fn all_links(&self) -> &[Links] {
        &self.links
    }

    /// The neighbours of the request in a slot.
    #[inline]
    pub(super) fn links(&self, slot: u32) -> Option<Links> {
        self.links.get(slot as usize).copied()
    }

    /// The neighbours of the request in a slot, to be changed.
    #[inline]
    pub(super) fn links_mut(&mut self, slot: u32) -> Option<&mut Links> {
        self.links.get_mut(slot as usize)
    }

    /// Prefetches the next requests of a queue, from that slot on, all at the same time.
    ///
    /// A request that has waited for long is no longer in the cache. Fetching several at once takes hardly longer than fetching
    /// one, which is why they are read here and not used.
    #[inline]
    pub(super) fn fetch(&self, mut slot: u32, count: u32) {
        if self.slots.len() < FAR {
            return;
        }
        for _ in 0..count {
            let (Some(request), Some(links)) = (self.slot(slot), self.links(slot)) else { return };
            // The two ends of the request, which may be in two cache lines.
            black_box((request.phase(), request.arrived));
            slot = links.next;
        }
    }

    /// Forgets what queues requests came through.
    pub(super) fn leave_queues(&mut self) {
        self.slots.iter_mut().filter(|slot| is_queue(slot.queue)).for_each(|slot| slot.queue = NO_QUEUE);
    }

    /// The id of the request in a slot.
    #[inline]
    pub(super) fn id_of(&self, slot: u32) -> Option<RequestId> {
        self.slot(slot).map(|request| RequestId::new(slot, request.generation))
    }

    /// Lets the request go.
    #[inline]
    pub(super) fn remove(&mut self, id: RequestId) -> Option<T> {
        let slot = self.slots.get_mut(id.slot()).filter(|slot| slot.is(id))?;
        slot.stage = Stage::Free;
        // A slot of the last generation stays as it is, on no list: no id is left for another request.
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            self.links[id.slot()].next = self.free;
            self.free = id.slot_number();
        }
        slot.payload.take()
    }

    /// All requests, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestId, &Request<T>)> {
        let taken = self.slots.iter().zip(0..).filter(|(slot, _)| slot.phase().is_some());
        taken.map(|(slot, index)| (RequestId::new(index, slot.generation), slot))
    }
}

impl<T> Request<T> {
    /// Whether the slot holds the request of that id.
    #[inline]
    fn is(&self, id: RequestId) -> bool {
        self.generation == id.generation() && !matches!(self.stage, Stage::Free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(requests: &mut Requests<u32>, payload: u32) -> RequestId {
        let started = Instant::from_nanos(0);
        requests.insert(Stage::Executing(Run::starting(started)), NO_QUEUE, WorkEstimate::ONE_SEAT, started, payload)
    }

    #[test]
    fn an_id_is_never_given_again() {
        let mut requests = Requests::new();
        let first = insert(&mut requests, 1);
        assert!(requests.remove(first).is_some());
        // As after 2^32 - 2 more requests.
        requests.slots[first.slot()].generation = u32::MAX;
        let last = insert(&mut requests, 2);
        assert_eq!((last.slot(), last.generation()), (first.slot(), u32::MAX));
        let other = insert(&mut requests, 3);
        assert_eq!(requests.remove(last), Some(2));

        assert!(requests.get(last).is_none() && requests.remove(last).is_none(), "it is gone");
        let next = insert(&mut requests, 4);
        assert!(
            next != first && next.slot() != last.slot() && next.slot() != other.slot(),
            "{next:?}: the slot is retired"
        );
        assert!(requests.get(first).is_none());
        assert_eq!(requests.remove(other), Some(3));
        assert_eq!(insert(&mut requests, 5).slot(), other.slot(), "other slots are used again");
        let mut left: Vec<_> = requests.iter().filter_map(|(_, request)| request.payload().copied()).collect();
        left.sort_unstable();
        assert_eq!(left, [4, 5]);
    }
}
