//! `Session`: one shadow of a flow control, with the rings that bring it records, and the model that decides.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use evenkeel_api::meta::Time;
use evenkeel_engine::Configuration;
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos, SECOND};

use super::figures::FlowNames;
use super::model::{Model, ModelSetup};
use super::names::NewNames;
use super::records::{ARRIVAL_WORDS, ArrivalRecord, EVENT_WORDS, EventRecord};
#[cfg(feature = "metrics")]
use super::report::ShadowTotals;
use super::report::{CAVEAT, Moved, ShadowFigures, ShadowFlow, ShadowReport, Sides};
use crate::control::level_names::LevelNames;
use crate::control::ring::{Cursor, Ring};
use crate::control::rings::{RingLimits, Rings};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// A shadow that runs.
#[derive(Debug)]
pub(crate) struct Session {
    /// No other session has it.
    number: u64,
    /// The shadow's configuration.
    pub(crate) configuration: Arc<Configuration>,
    /// Whether the number of seats is the shadow's own.
    pub(crate) has_own_seats: bool,
    arrivals: Rings<ARRIVAL_WORDS>,
    events: Rings<EVENT_WORDS>,
    pub(crate) new_names: NewNames,
    observed: AtomicU64,
    /// Records for which there was no ring.
    lost: AtomicU64,
    state: Mutex<SessionState>,
}

#[derive(Debug)]
struct SessionState {
    model: Model,
    arrivals: Vec<Cursor>,
    events: Vec<Cursor>,
    /// Lists that are empty between two passes.
    read_arrivals: Vec<[u64; ARRIVAL_WORDS]>,
    read_events: Vec<[u64; EVENT_WORDS]>,
    lost_before: u64,
}

/// The rings of a thread for one session.
struct ThreadRings {
    session: u64,
    arrivals: Arc<Ring<ARRIVAL_WORDS>>,
    /// The ring for events of requests that only the shadow decides about.
    events: Option<Arc<Ring<EVENT_WORDS>>>,
}

/// The records that a thread may be ahead of the shadow: half a megabyte.
const ARRIVALS: RingLimits = RingLimits { records: 1 << 13, long: 8, all: 128 };
/// The events that a level may be ahead.
const EVENTS: RingLimits = RingLimits { records: 1 << 14, long: 8, all: 256 };
/// Lists that are read into keep no more room than for so many records from one pass to the next.
const READ_MAX: usize = 1 << 14;
/// Threads write an arrival some time after they have read its time. After this span, it has been written.
const SLACK: Nanos = 2 * MILLISECOND;

thread_local! {
    static RINGS: RefCell<Vec<ThreadRings>> = const { RefCell::new(Vec::new()) };
}

// === impl Session ===

impl Session {
    pub(crate) fn new(setup: ModelSetup, has_own_seats: bool, now: Instant, is_busy: bool) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let model = Model::new(setup, now, is_busy);
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            configuration: Arc::clone(model.configuration()),
            has_own_seats,
            arrivals: Rings::new(ARRIVALS),
            events: Rings::new(EVENTS),
            new_names: NewNames::default(),
            observed: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            state: Mutex::new(SessionState {
                model,
                arrivals: Vec::new(),
                events: Vec::new(),
                read_arrivals: Vec::new(),
                read_events: Vec::new(),
                lost_before: 0,
            }),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A request has arrived, on this thread.
    #[inline]
    pub(crate) fn tell_arrival(&self, arrival: ArrivalRecord) {
        self.with_rings(|rings| rings.arrivals.push(arrival.to_words()));
    }

    /// Records an event of a request that only the shadow decides about.
    pub(crate) fn tell_observed(&self, event: EventRecord) {
        self.with_rings(|rings| {
            if rings.events.is_none() {
                rings.events = self.events.add();
            }
            match &rings.events {
                Some(ring) => ring.push(event.to_words()),
                None => self.lose(1),
            }
        });
    }

    /// Events of a level are lost for which there is no ring.
    pub(crate) fn lose(&self, events: usize) {
        self.lost.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// The ring of a writer of events; `None` if there are too many.
    pub(crate) fn add_event_ring(&self) -> Option<Arc<Ring<EVENT_WORDS>>> {
        self.events.add()
    }

    /// A number for a request that only the shadow decides about.
    pub(crate) fn next_observed(&self) -> u64 {
        self.observed.fetch_add(1, Ordering::Relaxed)
    }

    /// Decides about everything that is known by now. All events have been handed on.
    pub(crate) fn pass(&self, now: Instant, seats: Option<i64>) {
        let mut state = self.state();
        state.pass(self, now, seats);
    }

    /// The report so far.
    pub(crate) fn report(&self, now: Instant, levels: &LevelNames) -> ShadowReport {
        let state = self.state();
        let model = &state.model;
        let passed = (now - model.counts_from()).max(0);
        let since = SystemTime::now().checked_sub(Duration::from_nanos(passed.unsigned_abs())).unwrap_or(UNIX_EPOCH);
        let since = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (figures, moved) = (&model.figures, self.moved(model, levels));
        let flows = figures.rows.iter().map(|row| {
            let named = row.names.clone().unwrap_or_else(FlowNames::unknown);
            ShadowFlow {
                flow_schema: named.flow_schema.to_string(),
                flow: named.flow.to_string(),
                level: Sides { real: named.level.to_string(), shadow: named.shadow_level.to_string() },
                requests: row.counts.requests,
                figures: ShadowFigures::of(&row.counts),
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "seconds for people")]
        let seconds = passed as f64 / SECOND as f64;
        ShadowReport {
            summary: String::new(),
            caveat: CAVEAT.to_owned(),
            since: Time::from_unix_seconds(i64::try_from(since).unwrap_or(0)).to_string(),
            seconds,
            seats: model.seat_limit(),
            requests: figures.totals.requests,
            dropped: model.dropped,
            dropped_seconds: model.dropped_seconds,
            pending: model.pending() as u64,
            moved,
            totals: ShadowFigures::of(&figures.totals),
            flows: flows.collect(),
            requests_of_other_flows: figures.requests_of_others,
            canary: None,
        }
        .summarized()
    }

    /// The totals so far.
    #[cfg(feature = "metrics")]
    pub(crate) fn totals(&self, levels: &LevelNames) -> ShadowTotals {
        let state = self.state();
        let ShadowFigures { rejected, wait } = ShadowFigures::of(&state.model.figures.totals);
        let (requests, dropped) = (state.model.figures.totals.requests, state.model.dropped);
        ShadowTotals { requests, dropped, rejected, wait, moved: self.moved(&state.model, levels) }
    }

    /// The requests whose level would be another one, the most first.
    fn moved(&self, model: &Model, levels: &LevelNames) -> Vec<Moved> {
        let shadow_level = |index: u32| {
            let mut levels = self.configuration.schemas().iter().map(|schema| &schema.level);
            levels.find(|level| level.id.index() == index as usize).map_or("", |level| &*level.name)
        };
        // Levels of one name that there were one after the other count as one.
        let mut by_name: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for ((from, to), requests) in &model.figures.moved {
            *by_name.entry((levels.name(*from), shadow_level(*to))).or_default() += requests;
        }
        let moved = by_name.into_iter().filter(|((from, to), _)| from != to);
        let mut moved: Vec<Moved> =
            moved.map(|((from, to), requests)| Moved { from: from.to_owned(), to: to.to_owned(), requests }).collect();
        moved.sort_by_key(|moved| std::cmp::Reverse(moved.requests));
        moved
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn with_rings(&self, write: impl FnOnce(&mut ThreadRings)) {
        let told = RINGS.try_with(|all| {
            let mut all = all.try_borrow_mut().ok()?;
            let place = match all.iter().position(|rings| rings.session == self.number) {
                Some(place) => place,
                None => {
                    // Only this thread still holds the rings of sessions that have ended.
                    all.retain(|rings| Arc::strong_count(&rings.arrivals) > 1);
                    all.push(ThreadRings { session: self.number, arrivals: self.arrivals.add()?, events: None });
                    all.len() - 1
                }
            };
            write(&mut all[place]);
            Some(())
        });
        if !matches!(told, Ok(Some(()))) {
            self.lose(1);
        }
    }
}

// === impl SessionState ===

impl SessionState {
    fn pass(&mut self, session: &Session, now: Instant, seats: Option<i64>) {
        let Self { model, arrivals, events, read_arrivals, read_events, lost_before } = self;
        // Events are read before arrivals: a request that has ended has arrived, so its arrival is found when arrivals are read
        // afterwards.
        let missed_events = session.events.read(events, read_events);
        let mut missed = session.arrivals.read(arrivals, read_arrivals);
        let lost = session.lost.load(Ordering::Relaxed);
        missed += lost - std::mem::replace(lost_before, lost);
        for (key, names) in session.new_names.take() {
            model.figures.learn_name(key, names);
        }
        if missed + missed_events > 0 {
            model.fell_behind(now, missed + read_arrivals.len() as u64);
        } else {
            if let Some(seats) = seats {
                model.set_seats(now, seats);
            }
            let mut arrived: Vec<ArrivalRecord> =
                read_arrivals.iter().copied().map(ArrivalRecord::from_words).collect();
            arrived.sort_by_key(|arrival| arrival.at);
            for arrival in arrived {
                model.arrived(arrival);
            }
            model.happened(read_events.iter().copied().map(EventRecord::from_words));
            model.advance(Instant::from_nanos(now.as_nanos() - SLACK));
            model.figures.unnamed().for_each(|key| session.new_names.want(key));
        }
        read_arrivals.clear();
        read_events.clear();
        read_arrivals.shrink_to(READ_MAX);
        read_events.shrink_to(READ_MAX);
    }
}
