//! `WantedNames`: whether the name of a flow is wanted, for threads that do not hold the lock of an attribution.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::FlowKey;
use super::heavy_hitters::Key;
use crate::Flow;

/// Whether an [`Attribution`](super::Attribution) wants to know the name of a flow. Names come with arrivals, and the attribution
/// is behind a lock: code that admits a request asks here first, and takes that lock only if the answer is yes.
///
/// The attribution writes it, one thread at a time. A thread that reads it meanwhile may get a yes once too often, or a no just
/// before the name becomes wanted; the flow's next request gets the right answer.
#[derive(Debug)]
pub struct WantedNames {
    seed: u64,
    /// A bit for each heavy flow whose name is wanted. A flow whose name is known does not clear its bit: if its requests are
    /// frequent, it would clear the bit each time before the flow arrives that the bit was set for. The cost is a needless
    /// look-up by such flows.
    heavy: AtomicU64,
    /// Whether there is room for more names: then every name is wanted that is not known.
    has_room: AtomicBool,
    /// The flows whose names are known, in a table of open addressing; zero where a place is free, and else the complement of the key.
    known: OnceLock<Box<[AtomicU64]>>,
}

/// The length of the table: names fill less than half of it.
pub(super) const INDEX_LENGTH: usize = 256;

// === impl WantedNames ===

impl WantedNames {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, heavy: AtomicU64::new(0), has_room: AtomicBool::new(true), known: OnceLock::new() }
    }

    /// Whether the name of a flow that arrives may be wanted.
    #[inline]
    pub fn may_want(&self, flow: &Flow<'_>) -> bool {
        self.may_want_key(FlowKey::new(flow, self.seed))
    }

    #[inline]
    pub(super) fn may_want_key(&self, key: FlowKey) -> bool {
        self.is_heavy(key) || (self.has_room.load(Ordering::Relaxed) && !self.is_known(key))
    }

    #[inline]
    pub(super) fn is_heavy(&self, key: FlowKey) -> bool {
        self.heavy.load(Ordering::Relaxed) & bit(key) != 0
    }

    pub(super) fn set_heavy(&self, key: FlowKey) {
        self.heavy.fetch_or(bit(key), Ordering::Relaxed);
    }

    pub(super) fn clear_heavy(&self, key: FlowKey) {
        self.heavy.fetch_and(!bit(key), Ordering::Relaxed);
    }

    pub(super) fn clear_all_heavy(&self) {
        self.heavy.store(0, Ordering::Relaxed);
    }

    pub(super) fn set_room(&self, has_room: bool) {
        self.has_room.store(has_room, Ordering::Relaxed);
    }

    /// Sets the flows whose names are known: these, and no others.
    pub(super) fn set_known(&self, keys: impl Iterator<Item = FlowKey>) {
        let known = self.known.get_or_init(|| (0..INDEX_LENGTH).map(|_| AtomicU64::new(0)).collect());
        known.iter().for_each(|place| place.store(0, Ordering::Relaxed));
        for key in keys {
            let mut slot = slot(key);
            while known[slot].load(Ordering::Relaxed) != 0 {
                slot = (slot + 1) % INDEX_LENGTH;
            }
            known[slot].store(!key.0, Ordering::Relaxed);
        }
    }

    #[inline]
    fn is_known(&self, key: FlowKey) -> bool {
        let Some(known) = self.known.get() else { return false };
        let mut slot = slot(key);
        for _ in 0..INDEX_LENGTH {
            match known[slot].load(Ordering::Relaxed) {
                0 => return false,
                found if found == !key.0 => return true,
                _ => slot = (slot + 1) % INDEX_LENGTH,
            }
        }
        false
    }
}

#[inline]
fn bit(key: FlowKey) -> u64 {
    1 << (key.mixed() & 63)
}

/// Where a flow is in a table of [`INDEX_LENGTH`] places, unless others are before it.
#[inline]
pub(super) fn slot(key: FlowKey) -> usize {
    usize::try_from((key.mixed() >> 8) % INDEX_LENGTH as u64).unwrap_or_default()
}
