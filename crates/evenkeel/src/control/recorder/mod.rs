//! The flight recorder: what was decided about the last requests, in rings of a fixed size (FR-1). A dump of it is a [`Flight`].
//!
//! Threads of requests write arrivals, levels write events, each into a ring of its own; nobody waits, and nothing is allocated. A dump copies the rings,
//! and joins arrivals and events.

mod join;
mod listener;
mod recording;
mod records;
mod requests;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::control::flight::FlightChange;
use arc_swap::ArcSwapOption;
use evenkeel_engine::queue_set::{Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Attributes, Classification, WorkEstimate};

use crate::control::ring::Ring;
use crate::control::rings::{RingLimits, Rings};
use crate::sync::{Mutex, MutexGuard, PoisonError};
use records::{ARRIVAL_WORDS, ArrivalRecord, EVENT_WORDS};
use requests::Requests;

/// Where requests and levels tell the recorder, if there is one.
#[derive(Debug, Default)]
pub(crate) struct RecorderTap {
    is_on: AtomicBool,
    recorder: ArcSwapOption<Recorder>,
    pub(crate) levels: Mutex<TappedLevels>,
}

/// Which levels tell the recorder.
#[derive(Debug, Default)]
pub(crate) struct TappedLevels {
    /// Whether levels have their listeners.
    pub(crate) listens: bool,
    /// Their names, by their indexes.
    pub(crate) names: Vec<String>,
}

/// A recorder that runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    number: u64,
    began: Instant,
    /// Whether requests were under way when it began.
    was_busy: bool,
    arrivals: Rings<ARRIVAL_WORDS>,
    events: Rings<EVENT_WORDS>,
    requests: Requests,
    changes: Mutex<VecDeque<FlightChange>>,
}

/// Changes that are remembered.
const CHANGES_MAX: usize = 256;

thread_local! {
    /// The rings of this thread, each with the number of its recorder.
    static RINGS: RefCell<Vec<(u64, Arc<Ring<ARRIVAL_WORDS>>)>> = const { RefCell::new(Vec::new()) };
}

// === impl RecorderTap ===

impl RecorderTap {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, recorder: Option<Arc<Recorder>>) {
        self.is_on.store(recorder.is_some(), Ordering::Relaxed);
        self.recorder.store(recorder);
    }

    pub(crate) fn levels(&self) -> MutexGuard<'_, TappedLevels> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn recorder(&self) -> Option<Arc<Recorder>> {
        self.recorder.load_full()
    }

    /// A request has arrived, and runs or waits, or was rejected.
    #[inline]
    pub(crate) fn tell_arrival(
        &self,
        attributes: Attributes<'_>,
        class: &Classification<'_>,
        work: WorkEstimate,
        wait_limit: Nanos,
        id: Result<RequestId, Rejection>,
        at: Instant,
    ) {
        let loaded = self.recorder.load();
        let Some(recorder) = &*loaded else { return };
        let request = recorder.requests.number(attributes, class);
        let level = u16::try_from(class.schema.level.id.index()).unwrap_or(u16::MAX);
        let record = ArrivalRecord { at, id, level, request, flow_hash: class.flow_hash, work, wait_limit };
        recorder.write(record);
    }

    /// Something changed that concerns all requests.
    pub(crate) fn tell_change(&self, change: FlightChange) {
        if let Some(recorder) = self.recorder() {
            let mut changes = recorder.changes.lock().unwrap_or_else(PoisonError::into_inner);
            if changes.len() >= CHANGES_MAX {
                changes.pop_front();
            }
            changes.push_back(change);
        }
    }
}

// === impl Recorder ===

impl Recorder {
    /// A recorder with so much memory: a third for events, and the rest for arrivals.
    pub(crate) fn new(bytes: usize, threads: usize, began: Instant, was_busy: bool) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let threads = threads.max(1);
        let arrivals = bytes / 3 * 2 / (ARRIVAL_WORDS * 8);
        let events = bytes / 3 / (EVENT_WORDS * 8);
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            began,
            was_busy,
            arrivals: Rings::new(RingLimits { records: arrivals / threads, long: threads, all: 2 * threads }),
            // Few levels have nearly all requests.
            events: Rings::new(RingLimits { records: events / 2, long: 2, all: 18 }),
            requests: Requests::default(),
            changes: Mutex::default(),
        }
    }

    #[inline]
    fn write(&self, record: ArrivalRecord) {
        let _ = RINGS.try_with(|all| {
            let Ok(mut all) = all.try_borrow_mut() else { return };
            let place = match all.iter().position(|(number, _)| *number == self.number) {
                Some(place) => place,
                None => {
                    let Some(ring) = self.arrivals.add() else { return };
                    // The rings of recorders that have ended are shared with nobody.
                    all.retain(|(_, ring)| Arc::strong_count(ring) > 1);
                    all.push((self.number, ring));
                    all.len() - 1
                }
            };
            all[place].1.push(record.to_words());
        });
    }
}
