//! `FlowStamps`: one time stamp a flow, for as many flows as there are, in bounded memory (RL-4).

use super::rate_limit::{OverRate, RateLimit};
use crate::time::{Instant, Nanos};

/// The stamps of the flows that have taken something lately.
///
/// A flow whose stamp is in the past is at rest: it is like one that was never there, so it is forgotten when its place is needed.
/// Where all places are taken by flows that are not at rest, those keep theirs, and a newcomer passes without one.
#[derive(Debug, Clone)]
pub struct FlowStamps {
    /// Open addressing: a flow is in the first bucket from its hash on that had room for it. No place is emptied but by
    /// [`rehash`](Self::rehash).
    buckets: Vec<Bucket>,
    used: usize,
    flows_max: usize,
    /// How many newcomers have found no place since the last search for flows at rest.
    turned_away: usize,
}

/// How much of its rate a flow has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// How much it may take at once.
    pub left: u64,
    /// How long until the flow is at rest, in nanoseconds.
    pub rests_in: Nanos,
}

/// The places in one cache line. Among a million flows, to fetch it is most of what a request costs.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket([Slot; SLOTS]);

/// A flow and its stamp; flow 0 is a free place.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    flow: u64,
    stamp: Instant,
}

/// Where a flow is, or would be.
enum FoundSlot {
    Own(usize),
    /// A place for it: free, or of a flow at rest.
    Free(usize),
}

/// How many places a bucket has.
const SLOTS: usize = 4;
const BUCKETS_MIN: usize = 4;

// === impl FlowStamps ===

impl FlowStamps {
    /// Remembers so many flows at most, sixteen bytes each, in a table that is at most three quarters full.
    pub fn new(flows_max: usize) -> Self {
        Self { buckets: Vec::new(), used: 0, flows_max: flows_max.max(1), turned_away: 0 }
    }

    /// A request of a flow asks to pass, and would wait until `latest` for that. Tells when it may; then the rate has been taken.
    pub fn take(
        &mut self,
        limit: &RateLimit,
        flow: u64,
        cost: u64,
        now: Instant,
        latest: Instant,
    ) -> Result<Instant, OverRate> {
        let flow = named(flow);
        let place = self.find(flow, now);
        let stamp = match place {
            Some(FoundSlot::Own(index)) => Some(self.slot(index).stamp),
            _ => None,
        };
        let (at, stamp) = limit.pass(stamp, now, cost);
        if at > latest.max(now) {
            return Err(OverRate { conforms_at: at });
        }
        match place {
            Some(FoundSlot::Own(index)) => self.slot_mut(index).stamp = stamp,
            Some(FoundSlot::Free(index)) if self.has_room_for(index) => self.put(index, flow, stamp),
            _ => self.make_room_for(flow, stamp, now),
        }
        Ok(at)
    }

    /// A request of a flow took too little by that much, or too much if the number is below zero (RL-3). A request that leaves
    /// before its time gives back what it took.
    pub fn correct(&mut self, limit: &RateLimit, flow: u64, more: i64, now: Instant) {
        let (flow, span) = (named(flow), limit.span_of(more.unsigned_abs()));
        match self.find(flow, now) {
            Some(FoundSlot::Own(index)) => {
                let stamp = &mut self.slot_mut(index).stamp;
                *stamp = if more < 0 { *stamp + -span } else { (*stamp).max(now) + span };
            }
            // The flow is at rest, or has no place: there is nothing to give back.
            _ if more <= 0 => {}
            Some(FoundSlot::Free(index)) if self.has_room_for(index) => self.put(index, flow, now + span),
            _ => self.make_room_for(flow, now + span, now),
        }
    }

    /// How much of its rate a flow has left at that time.
    pub fn standing(&self, limit: &RateLimit, flow: u64, now: Instant) -> Standing {
        let stamp = match self.find(named(flow), now) {
            Some(FoundSlot::Own(index)) => Some(self.slot(index).stamp),
            _ => None,
        };
        Standing { left: limit.left(stamp, now), rests_in: stamp.map_or(0, |stamp| (stamp - now).max(0)) }
    }

    /// The stamp of a flow, if it has one.
    pub(super) fn stamp(&self, flow: u64) -> Option<Instant> {
        match self.find(named(flow), Instant::from_nanos(i64::MIN)) {
            Some(FoundSlot::Own(index)) => Some(self.slot(index).stamp),
            _ => None,
        }
    }

    /// The stamp of a flow is kept elsewhere from now on.
    pub(super) fn forget(&mut self, flow: u64) {
        if let Some(FoundSlot::Own(index)) = self.find(named(flow), Instant::from_nanos(i64::MIN)) {
            self.slot_mut(index).stamp = Instant::from_nanos(i64::MIN);
        }
    }

    /// How many flows are remembered that are not at rest. Looks at all of them.
    pub fn debtors(&self, now: Instant) -> usize {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.0);
        slots.filter(|slot| slot.flow != 0 && slot.stamp > now).count()
    }

    /// The memory of the table, in bytes.
    pub fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
    }

    /// The place of a flow, or else the first one that it could have: an empty one, or one of a flow at rest. A flow whose own stamp is
    /// in the past has its own place, which is as good as a free one.
    #[inline]
    fn find(&self, flow: u64, now: Instant) -> Option<FoundSlot> {
        let mask = self.buckets.len().checked_sub(1)?;
        #[expect(clippy::cast_possible_truncation, reason = "the mask is for what is lost")]
        let mut number = (flow as usize) & mask;
        let mut at_rest = None;
        loop {
            let bucket = &self.buckets[number];
            if let Some(slot) = bucket.first(|slot| slot.flow == flow) {
                return Some(FoundSlot::Own(number * SLOTS + slot));
            }
            if at_rest.is_none() {
                at_rest = bucket.first(|slot| slot.flow != 0 && slot.stamp <= now).map(|slot| number * SLOTS + slot);
            }
            if let Some(slot) = bucket.first(|slot| slot.flow == 0) {
                return Some(FoundSlot::Free(at_rest.unwrap_or(number * SLOTS + slot)));
            }
            // There is always a free place: the table is never full.
            number = (number + 1) & mask;
        }
    }

    #[inline]
    fn slot(&self, index: usize) -> &Slot {
        &self.buckets[index / SLOTS].0[index % SLOTS]
    }

    #[inline]
    fn slot_mut(&mut self, index: usize) -> &mut Slot {
        &mut self.buckets[index / SLOTS].0[index % SLOTS]
    }

    /// Whether a place can be taken without filling the table too much.
    #[inline]
    fn has_room_for(&self, index: usize) -> bool {
        self.slot(index).flow != 0 || self.used < self.capacity()
    }

    #[inline]
    fn put(&mut self, index: usize, flow: u64, stamp: Instant) {
        self.used += usize::from(self.slot(index).flow == 0);
        *self.slot_mut(index) = Slot { flow, stamp };
    }

    fn capacity(&self) -> usize {
        (self.buckets.len() * SLOTS / 4 * 3).min(self.flows_max)
    }

    /// Forgets the flows at rest and makes the table larger if there are too many others, and then takes this one in.
    #[cold]
    fn make_room_for(&mut self, flow: u64, stamp: Instant, now: Instant) {
        let is_largest = self.capacity() == self.flows_max;
        if is_largest && self.used >= self.flows_max {
            // To look at all flows for each newcomer would cost more than what they ask for.
            self.turned_away += 1;
            if self.turned_away < self.flows_max / 8 {
                return;
            }
        }
        self.turned_away = 0;
        self.rehash(now);
        if self.used < self.capacity()
            && let Some(FoundSlot::Free(index)) = self.find(flow, now)
        {
            self.put(index, flow, stamp);
        }
    }

    /// A table with those that are not at rest, half full.
    fn rehash(&mut self, now: Instant) {
        let kept = self.debtors(now);
        let buckets_max = (self.flows_max.div_ceil(3) * 4).next_power_of_two() / SLOTS;
        let buckets = (kept * 2 + 1).next_power_of_two() / SLOTS;
        let buckets = buckets.clamp(BUCKETS_MIN, buckets_max.max(BUCKETS_MIN));
        let before = std::mem::replace(&mut self.buckets, vec![Bucket::default(); buckets]);
        self.used = 0;
        for slot in before.iter().flat_map(|bucket| &bucket.0) {
            if slot.flow != 0
                && slot.stamp > now
                && let Some(FoundSlot::Free(index)) = self.find(slot.flow, now)
            {
                self.put(index, slot.flow, slot.stamp);
            }
        }
    }
}

// === impl Bucket ===

impl Bucket {
    /// The first place that is so. All four are looked at, without jumps: which one it is, is a guess that a processor would lose, and it
    /// would wait for this line before it goes on to fetch another.
    #[inline]
    fn first(&self, is_so: impl Fn(&Slot) -> bool) -> Option<usize> {
        let found = (0..).zip(&self.0).fold(0_u32, |found, (place, slot)| found | u32::from(is_so(slot)) << place);
        (found != 0).then_some(found.trailing_zeros() as usize)
    }
}

/// The name of a flow in the table, where 0 is nobody.
#[inline]
fn named(flow: u64) -> u64 {
    if flow == 0 { 1 } else { flow }
}
