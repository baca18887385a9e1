//! The flight recorder: the decisions about the last requests, in rings of a fixed size (FR-1). A dump of it is a [`Flight`].
//!
//! Threads of requests write arrivals, and levels write events, each into blocks of a ring that all of them share, without
//! waiting. A dump copies the rings, joins arrivals and events, and begins where both are complete.

mod join;
mod listener;
mod notes;
mod object_changes;
mod recording;
mod records;
mod requests;
mod shared_ring;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::control::flight::{FlightChange, FlightRate};
use crate::control::level_names::{LevelKey, LevelNames};
use arc_swap::ArcSwapOption;
use evenkeel_engine::queue_set::{Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Attributes, Classification, WorkEstimate};

use crate::sync::{Mutex, MutexGuard, PoisonError};
use notes::{ArrivalNote, PendingNotes};
use records::{ARRIVAL_WORDS, ArrivalRecord, EVENT_WORDS};
use requests::Requests;
use shared_ring::{BlockClaim, SharedRing};

pub(crate) use object_changes::changes_of_objects;

/// The way from requests and levels to the recorder, if there is one.
#[derive(Debug, Default)]
pub(crate) struct RecorderTap {
    /// The number of the recorder; 0 if there is none, and [`ENDING`] if threads may still have one that was switched off.
    number: AtomicU64,
    /// How many requests have seen that it was switched off.
    seen_ending: AtomicU32,
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
    /// How many requests were rejected at once that have notes.
    noted: AtomicU64,
    requests: Requests,
    changes: Mutex<VecDeque<FlightChange>>,
    /// Nobody asks it for a dump any more: threads let go of it.
    is_over: AtomicBool,
}

/// What a thread has claimed of all recorders.
struct ThreadClaims {
    /// How many recorders had ended when the thread last let go of those.
    ended: u64,
    claims: Vec<ThreadClaim>,
    /// What is known of the request that arrives next, if anything.
    pending: Option<PendingNotes>,
}

/// What a thread has claimed of a recorder. It has the recorder too: to ask for that costs more than everything else.
struct ThreadClaim {
    /// The number of the recorder.
    number: u64,
    recorder: Arc<Recorder>,
    claim: BlockClaim,
}

/// How many recorders have ended in this process: a thread that goes on with one learns by it that another one is over.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// The number of no recorder.
const ENDING: u64 = u64::MAX;
/// When so many requests have seen that a recorder was switched off, all threads that have something to do have let go of it.
const ENDING_REQUESTS: u32 = 4096;

/// Changes that are remembered.
const CHANGES_MAX: usize = 256;

/// The bytes of a request that starts and ends: an arrival and two events.
const REQUEST_BYTES: usize = 8 * (ARRIVAL_WORDS + 2 * EVENT_WORDS);

thread_local! {
    /// The blocks of this thread, one for each recorder.
    static CLAIMS: RefCell<ThreadClaims> =
        const { RefCell::new(ThreadClaims { ended: 0, claims: Vec::new(), pending: None }) };
}

// === impl RecorderTap ===

impl RecorderTap {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.number.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn set(&self, recorder: Option<Arc<Recorder>>) {
        // Whoever sets one at the same time waits: the number is always that of the recorder.
        let _turn = self.levels();
        let number = recorder.as_ref().map(|recorder| recorder.number);
        let before = self.recorder.swap(recorder);
        if let Some(before) = &before {
            before.is_over.store(true, Ordering::Relaxed);
            ENDED.fetch_add(1, Ordering::Release);
        }
        self.seen_ending.store(0, Ordering::Relaxed);
        // Where there was none, threads may still be about to let go of the one before.
        let number = number.or(before.is_some().then_some(ENDING));
        if let Some(number) = number {
            self.number.store(number, Ordering::Relaxed);
        }
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
        let number = self.number.load(Ordering::Relaxed);
        let told = CLAIMS.try_with(|all| {
            let mut all = all.try_borrow_mut().ok()?;
            if all.ended != ENDED.load(Ordering::Relaxed) {
                all.let_go();
            }
            // A thread seldom serves more than one recorder.
            let is_first = all.claims.first().is_some_and(|claim| claim.number == number);
            let place = if is_first { 0 } else { self.place_of(&mut all.claims, number)? };
            let notes = all.pending.take().filter(|notes| notes.flow_hash == class.flow_hash);
            let ThreadClaim { recorder, claim, .. } = all.claims.get_mut(place)?;
            let request = recorder.requests.number(attributes, class);
            let level = LevelKey::new(class.schema.level.id);
            let number = notes.map_or(0, |notes| recorder.write_notes(claim, notes, (level, id), at));
            let flow_hash = class.flow_hash;
            let record = ArrivalRecord { at, id, number, level, request, flow_hash, work, wait_limit };
            recorder.arrivals.push(claim, record.at.as_nanos(), record.to_words());
            Some(())
        });
        if !matches!(told, Ok(Some(()))) {
            self.miss();
        }
    }

    /// The request of that flow which this thread lets arrive next has asked for its rate.
    #[cold]
    pub(crate) fn note_rate(&self, flow_hash: u64, rate: FlightRate) {
        self.note(flow_hash, |notes| notes.rate = Some(rate));
    }

    /// The request of that flow which this thread lets arrive next runs for long, as so many others of its level.
    #[cold]
    pub(crate) fn note_long_running(&self, flow_hash: u64, others: u32) {
        self.note(flow_hash, |notes| notes.others = Some(others));
    }

    fn note(&self, flow_hash: u64, note: impl FnOnce(&mut PendingNotes)) {
        if !self.is_on() {
            return;
        }
        // A thread that ends has its arrival counted as missed.
        let _ = CLAIMS.try_with(|all| {
            let Ok(mut all) = all.try_borrow_mut() else { return };
            let mut notes = all.pending.filter(|notes| notes.flow_hash == flow_hash);
            note(notes.get_or_insert(PendingNotes::new(flow_hash)));
            all.pending = notes;
        });
    }

    /// The place of this thread's claim of the recorder with that number. It takes part from now on if it has none; `None` if there is no
    /// recorder any more.
    #[cold]
    fn place_of(&self, all: &mut Vec<ThreadClaim>, number: u64) -> Option<usize> {
        if let Some(place) = all.iter().position(|claim| claim.number == number) {
            return Some(place);
        }
        let Some(recorder) = self.recorder() else {
            if self.seen_ending.fetch_add(1, Ordering::Relaxed) >= ENDING_REQUESTS {
                // Unless there is another recorder meanwhile.
                let _ = self.number.compare_exchange(ENDING, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
            return None;
        };
        let number = recorder.number;
        if let Some(place) = all.iter().position(|claim| claim.number == number) {
            return Some(place);
        }
        all.push(ThreadClaim { number, recorder, claim: BlockClaim::default() });
        Some(all.len() - 1)
    }

    #[cold]
    fn miss(&self) {
        if let Some(recorder) = self.recorder() {
            recorder.missed.fetch_add(1, Ordering::Relaxed);
        }
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

impl Drop for RecorderTap {
    fn drop(&mut self) {
        self.set(None);
    }
}

// === impl ThreadClaims ===

impl ThreadClaims {
    /// Lets go of recorders that are over.
    #[cold]
    fn let_go(&mut self) {
        self.ended = ENDED.load(Ordering::Acquire);
        self.claims.retain(|claim| !claim.recorder.is_over.load(Ordering::Relaxed));
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
            noted: AtomicU64::new(0),
            requests: Requests::default(),
            changes: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Writes what is known of a request. Gives the number by which the notes name it, if it was rejected at once.
    #[cold]
    fn write_notes(
        &self,
        claim: &mut BlockClaim,
        notes: PendingNotes,
        (level, id): (LevelKey, Result<RequestId, Rejection>),
        at: Instant,
    ) -> u64 {
        let number = if id.is_err() { self.noted.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        for fact in notes.facts() {
            let note = ArrivalNote { at, id: id.map_err(|_| number), level, fact };
            self.arrivals.push(claim, at.as_nanos(), note.to_words());
        }
        number
    }
}
