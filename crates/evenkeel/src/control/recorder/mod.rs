//! The flight recorder: the decisions about the last requests, in rings of a fixed size (FR-1). A dump of it is a [`Flight`].
//!
//! Threads of requests write arrivals, and levels write events, each into blocks of a ring that all of them share, without
//! waiting. A dump copies the rings, joins arrivals and events, and begins where both are complete.

mod join;
mod level_names;
mod listener;
mod recording;
mod records;
mod requests;
mod shared_ring;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::control::flight::FlightChange;
use arc_swap::ArcSwapOption;
use evenkeel_engine::queue_set::{Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Attributes, Classification, WorkEstimate};

use crate::sync::{Mutex, MutexGuard, PoisonError};
use level_names::LevelNames;
use records::{ARRIVAL_WORDS, ArrivalRecord, EVENT_WORDS, LevelKey};
use requests::Requests;
use shared_ring::{BlockClaim, SharedRing};

/// The way from requests and levels to the recorder, if there is one.
#[derive(Debug, Default)]
pub(crate) struct RecorderTap {
    is_on: AtomicBool,
    recorder: ArcSwapOption<Recorder>,
    pub(crate) levels: Mutex<TappedLevels>,
}

/// The levels that write into the recorder.
#[derive(Debug, Default)]
pub(crate) struct TappedLevels {
    /// Whether levels have their listeners.
    pub(crate) listens: bool,
    pub(crate) names: LevelNames,
}

/// A recorder that runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    number: u64,
    began: Instant,
    /// Whether requests were under way when it began.
    was_busy: bool,
    arrivals: SharedRing<ARRIVAL_WORDS>,
    events: SharedRing<EVENT_WORDS>,
    /// How many arrivals were missed because their thread was ending and had no block any more.
    missed: AtomicU64,
    requests: Requests,
    changes: Mutex<VecDeque<FlightChange>>,
    /// Threads know by it whether the recorder is still there.
    token: Arc<()>,
}

/// What a thread has claimed of a recorder.
struct ThreadClaim {
    number: u64,
    recorder: Weak<()>,
    claim: BlockClaim,
}

/// Changes that are remembered.
const CHANGES_MAX: usize = 256;

/// The bytes of a request that starts and ends: an arrival and two events.
const REQUEST_BYTES: usize = 8 * (ARRIVAL_WORDS + 2 * EVENT_WORDS);

thread_local! {
    /// The blocks of this thread, one for each recorder.
    static CLAIMS: RefCell<Vec<ThreadClaim>> = const { RefCell::new(Vec::new()) };
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
        let level = LevelKey::new(class.schema.level.id);
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
    /// A recorder with so much memory. Each arrival has room for two events.
    pub(crate) fn new(bytes: usize, began: Instant, was_busy: bool) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let requests = bytes / REQUEST_BYTES;
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            began,
            was_busy,
            arrivals: SharedRing::new(requests),
            events: SharedRing::new(2 * requests),
            missed: AtomicU64::new(0),
            requests: Requests::default(),
            changes: Mutex::default(),
            token: Arc::default(),
        }
    }

    #[inline]
    fn write(&self, record: ArrivalRecord) {
        let written = CLAIMS.try_with(|all| {
            let mut all = all.try_borrow_mut().ok()?;
            let place = match all.iter().position(|claim| claim.number == self.number) {
                Some(place) => place,
                None => {
                    all.retain(|claim| claim.recorder.strong_count() > 0);
                    let recorder = Arc::downgrade(&self.token);
                    all.push(ThreadClaim { number: self.number, recorder, claim: BlockClaim::default() });
                    all.len() - 1
                }
            };
            self.arrivals.push(&mut all.get_mut(place)?.claim, record.at.as_nanos(), record.to_words());
            Some(())
        });
        if !matches!(written, Ok(Some(()))) {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
