//! `ShadowTap`: the way from requests and levels to the shadow, if there is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use evenkeel_api::Preset;
use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Attributes, Classification, Configuration, WorkEstimate};

use super::figures::FlowNames;
use super::records::{ArrivalRecord, EVENT_WORDS, EventRecord, Happened};
use super::session::Session;
use crate::control::events::{Event, EventKind, Listener};
use crate::control::level_names::{LevelKey, LevelNames};
use crate::control::request::{Patience, RunLength};
use crate::control::ring::Ring;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Sends arrivals and events of a flow control to its shadow. Without a shadow it costs a request one comparison.
#[derive(Debug, Default)]
pub(crate) struct ShadowTap {
    is_on: AtomicBool,
    session: ArcSwapOption<Session>,
    control: Mutex<TapControl>,
}

#[derive(Debug, Default)]
pub(crate) struct TapControl {
    /// Whether levels have their listeners.
    pub(crate) listens: bool,
    /// The names of all levels that there have been since then.
    pub(crate) levels: LevelNames,
}

/// Sends the events of a level to the shadow.
pub(crate) struct TapListener {
    tap: Arc<ShadowTap>,
    level: LevelKey,
    /// The ring for a session, and its number.
    ring: Option<(u64, Option<Arc<Ring<EVENT_WORDS>>>)>,
}

/// A request that has arrived, as far as it does not depend on the configuration.
pub(crate) struct Arriving<'a> {
    pub(crate) attributes: Attributes<'a>,
    pub(crate) class: &'a Classification<'a>,
    pub(crate) work: WorkEstimate,
    pub(crate) patience: &'a Patience,
    pub(crate) run_length: RunLength,
    pub(crate) id: RequestId,
    pub(crate) at: Instant,
    pub(crate) is_observed: bool,
    pub(crate) wait_limit_default: Nanos,
    pub(crate) preset: Preset,
}

// === impl ShadowTap ===

impl ShadowTap {
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.session.load_full()
    }

    pub(crate) fn set(&self, session: Option<Arc<Session>>) {
        self.is_on.store(session.is_some(), Ordering::Relaxed);
        self.session.store(session);
    }

    pub(crate) fn control(&self) -> MutexGuard<'_, TapControl> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the shadow's configuration something, if there is a shadow.
    #[inline]
    pub(crate) fn with_configuration<R>(&self, ask: impl FnOnce(&Configuration) -> R) -> Option<R> {
        if !self.is_on() {
            return None;
        }
        self.session.load().as_ref().map(|session| ask(&session.configuration))
    }

    /// A request has arrived. `estimate` says what work it is under the shadow's configuration.
    pub(crate) fn tell_arrival(
        &self,
        arriving: &Arriving<'_>,
        estimate: impl FnOnce(&Classification<'_>) -> WorkEstimate,
    ) {
        let loaded = self.session.load();
        if let Some(session) = &*loaded {
            tell_session(session, arriving, estimate);
        }
    }
}

/// Tells one session that a request has arrived.
pub(super) fn tell_session(
    session: &Session,
    arriving: &Arriving<'_>,
    estimate: impl FnOnce(&Classification<'_>) -> WorkEstimate,
) {
    let Arriving { attributes, class, patience, .. } = *arriving;
    let shadow = session.configuration.classify(attributes);
    let terms = shadow.schema.terms.as_deref();
    // The cost of a request is known in reality only.
    let is_charged = terms.is_some_and(|terms| terms.charges() && shadow.schema.seats.is_none());
    let work = if is_charged { arriving.work } else { estimate(&shadow) };
    let limit = shadow.schema.level.wait_limit.filter(|limit| *limit >= 0);
    let has_rate = terms.is_some_and(|terms| terms.rate.is_some());
    let flow_hash = if has_rate { shadow.schema.flow_key(attributes) } else { shadow.flow_hash };
    let (schema, level) = (index(shadow.index), LevelKey::new(class.schema.level.id));
    let key = mix(mix(class.flow_hash, index(class.index)) ^ shadow.flow_hash.rotate_left(32), schema);
    session.new_names.offer(key, || {
        let flow = if class.distinguisher.is_empty() { shadow.distinguisher } else { class.distinguisher };
        FlowNames::new(&class.schema.name, flow, &class.schema.level.name, &shadow.schema.level.name)
    });
    session.tell_arrival(ArrivalRecord {
        at: arriving.at,
        id: arriving.id,
        level,
        key,
        schema,
        flow_hash,
        work,
        wait_limit: patience.limit(limit.unwrap_or(arriving.wait_limit_default), arriving.preset),
        is_long_running: arriving.run_length != RunLength::Ordinary || work.is_seatless(),
        is_observed: arriving.is_observed,
    });
}

fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// A key from a hash and a number. It is never 0.
#[inline]
fn mix(hash: u64, number: u32) -> u64 {
    let mixed = (hash ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29) | 1
}

// === impl TapListener ===

impl TapListener {
    pub(crate) fn new(tap: &Arc<ShadowTap>, level: LevelKey) -> Self {
        Self { tap: Arc::clone(tap), level, ring: None }
    }
}

impl Listener for TapListener {
    fn on_events(&mut self, events: &[Event]) {
        if !self.tap.is_on() {
            self.ring = None;
            return;
        }
        let loaded = self.tap.session.load();
        let Some(session) = &*loaded else { return };
        if self.ring.as_ref().is_none_or(|(number, _)| *number != session.number()) {
            self.ring = Some((session.number(), session.add_event_ring()));
        }
        let Some((_, Some(ring))) = &self.ring else {
            session.lose(events.len());
            return;
        };
        for event in events {
            let what = match event.kind {
                EventKind::Started { waited, .. } => Happened::Started { waited },
                EventKind::GaveUp { waited, reason, .. } => Happened::gave_up(waited, reason),
                EventKind::Finished { ran, .. } => Happened::Finished { ran },
                _ => continue,
            };
            ring.push(EventRecord { id: event.id, level: self.level, what }.to_words());
        }
    }
}
