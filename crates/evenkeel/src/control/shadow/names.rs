//! `NewNames`: the names of flows, on their way from the threads of requests to the shadow. Records have no texts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::figures::FlowNames;
use crate::sync::{Mutex, PoisonError};

/// The names of flows that the shadow has not got yet.
#[derive(Debug)]
pub(crate) struct NewNames {
    /// The keys of flows whose names the shadow has got, each in the place that follows from the key. If a flow loses its place,
    /// its names are sent again.
    told: Box<[AtomicU64]>,
    names: Mutex<Vec<(u64, FlowNames)>>,
}

const PLACES: usize = 1 << 12;
/// How many names may be on their way. Further names are sent when there is room.
const NAMES_MAX: usize = 1 << 10;
/// Longer names are cut.
const NAME_BYTES_MAX: usize = 256;

// === impl NewNames ===

impl NewNames {
    /// A request of the flow of this key has arrived. Its names are asked for only if they are not known.
    #[inline]
    pub(crate) fn offer(&self, key: u64, names: impl FnOnce() -> FlowNames) {
        if let Some(place) = self.place(key)
            && place.load(Ordering::Relaxed) != key
        {
            self.tell(key, place, names);
        }
    }

    #[cold]
    fn tell(&self, key: u64, place: &AtomicU64, names: impl FnOnce() -> FlowNames) {
        // A flow that finds the list locked is named with its next request.
        let Ok(mut list) = self.names.try_lock() else { return };
        if list.len() < NAMES_MAX {
            list.push((key, names()));
            place.store(key, Ordering::Relaxed);
        }
    }

    /// The name of this flow is not known any more.
    pub(crate) fn want(&self, key: u64) {
        if let Some(place) = self.place(key) {
            let _ = place.compare_exchange(key, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    pub(crate) fn take(&self) -> Vec<(u64, FlowNames)> {
        std::mem::take(&mut *self.names.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn place(&self, key: u64) -> Option<&AtomicU64> {
        self.told.get(usize::try_from(key % PLACES as u64).unwrap_or(0))
    }
}

impl Default for NewNames {
    fn default() -> Self {
        Self { told: (0..PLACES).map(|_| AtomicU64::new(0)).collect(), names: Mutex::default() }
    }
}

// === impl FlowNames ===

impl FlowNames {
    pub(crate) fn new(flow_schema: &str, flow: &str, level: &str, shadow_level: &str) -> Self {
        let [flow_schema, flow, level, shadow_level] = [flow_schema, flow, level, shadow_level].map(cut);
        Self { flow_schema, flow, level, shadow_level }
    }

    /// A flow whose names have not arrived yet.
    pub(crate) fn unknown() -> Self {
        Self::new("", "(name not known yet)", "", "")
    }
}

fn cut(text: &str) -> Arc<str> {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().into()
}
