//! `LevelListeners`: the metrics of a level, its drain meter, its attribution, and listeners of the program. They are behind a
//! lock of their own, and get events in batches: see [`events`](crate::control::events).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use evenkeel_api::Preset;
use evenkeel_engine::attribution::{Attribution, WantedNames};
use evenkeel_engine::level::Observer;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Flow, LevelId};

use crate::control::clock::Clock;
use crate::control::counts::LevelMetrics;
use crate::control::events::{BACKLOG_MAX, BATCH, Event, EventKind, Listener, Listeners};
use crate::control::limit::LevelSums;
use crate::control::retry::RetryAdvisor;
use crate::control::trace;

/// All listeners of one level.
pub(crate) struct LevelListeners {
    pub(crate) metrics: LevelMetrics,
    pub(crate) retry: RetryAdvisor,
    /// Who uses the level, and who delays whom.
    pub(crate) attribution: Option<Box<Attribution>>,
    /// The sums for the limit that finds itself, if there is one.
    pub(crate) limit: Option<Box<LevelSums>>,
    others: Vec<Box<dyn Listener>>,
    clock: Clock,
    /// An empty list, which the core gets when its events are taken.
    spare: Vec<Event>,
}

// === impl LevelListeners ===

impl LevelListeners {
    pub(crate) fn new(make: &Listeners, id: LevelId, name: &str, preset: Preset, clock: &Clock, now: Instant) -> Self {
        // Clients that knew the seed could choose names that are slow to find.
        let attribution = || Box::new(Attribution::new(crate::control::retry::seed(name)));
        Self {
            metrics: LevelMetrics::new(now),
            retry: RetryAdvisor::new(preset, now),
            attribution: make.attributes_flows.then(attribution),
            limit: make.limit.as_ref().map(|pulse| Box::new(LevelSums::new(id, pulse, now))),
            others: make.others.iter().map(|make| make(id, name)).collect(),
            clock: clock.clone(),
            spare: Vec::new(),
        }
    }

    /// The listeners of a level that never gets a request.
    pub(crate) fn of_nobody(clock: &Clock) -> Self {
        let now = Instant::default();
        Self {
            metrics: LevelMetrics::new(now),
            retry: RetryAdvisor::new(Preset::default(), now),
            attribution: None,
            limit: None,
            others: Vec::new(),
            clock: clock.clone(),
            spare: Vec::new(),
        }
    }

    pub(crate) fn wanted_names(&self) -> Option<Arc<WantedNames>> {
        self.attribution.as_ref().map(|attribution| attribution.wanted_names())
    }

    /// Whether somebody wants to hear of costs. The counts of the level do not: they get no events that nobody hears.
    pub(crate) fn hear_costs(&self) -> bool {
        self.attribution.is_some() || !self.others.is_empty()
    }

    /// Adds a listener, which gets all events from now on: [`EventBuffer::hear_costs`](crate::control::events::EventBuffer) is to be set.
    pub(crate) fn add(&mut self, listener: Box<dyn Listener>) {
        self.others.push(listener);
    }

    pub(crate) fn take_spare(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.spare)
    }

    /// Passes events on to all listeners.
    pub(crate) fn hear(&mut self, mut events: Vec<Event>) {
        if !events.is_empty() {
            self.metrics.hear(&events);
            self.retry.hear(&events, &self.clock);
            if let Some(attribution) = &mut self.attribution {
                attribute(attribution, &self.metrics, &events);
            }
            if let Some(limit) = &mut self.limit {
                limit.hear(&events);
            }
            if !self.others.is_empty() {
                self.tell_others(&events);
            }
            events.clear();
        }
        // One call may bring about thousands of events, and memory is not kept for the next of these.
        if events.capacity() > BACKLOG_MAX {
            events.shrink_to(BATCH);
        }
        self.spare = events;
    }

    fn tell_others(&mut self, events: &[Event]) {
        self.others.retain_mut(|listener| {
            let told = catch_unwind(AssertUnwindSafe(|| listener.on_events(events)));
            if told.is_err() {
                trace::listener_panicked();
            }
            told.is_ok()
        });
    }
}

impl fmt::Debug for LevelListeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LevelListeners")
            .field("metrics", &self.metrics)
            .field("retry", &self.retry)
            .field("attribution", &self.attribution)
            .field("limit", &self.limit)
            .field("others", &self.others.len())
            .finish_non_exhaustive()
    }
}

/// Passes events on to an attribution. Names reach it separately: see [`WantedNames`].
fn attribute(attribution: &mut Attribution, metrics: &LevelMetrics, events: &[Event]) {
    let flow = |event: &Event, hash| Flow::with_hash(metrics.schema(event.series), "", hash);
    for event in events {
        let (now, id) = (event.at, event.id);
        match event.kind {
            EventKind::Passed { flow: hash, .. } => {
                attribution.arrived_unnamed(now, id, &flow(event, hash), event.seats);
                attribution.started(now, id);
            }
            EventKind::Arrived { flow: hash, waits, .. } => {
                attribution.arrived_unnamed(now, id, &flow(event, hash), event.seats);
                if waits {
                    attribution.queued(now, id);
                }
            }
            EventKind::Refused { flow: hash, .. } => attribution.rejected_on_arrival(now, &flow(event, hash)),
            EventKind::Started { .. } => attribution.started(now, id),
            EventKind::GaveUp { reason, .. } => attribution.rejected(now, id, reason),
            EventKind::Finished { lingers: false, .. } | EventKind::Released => attribution.released(now, id),
            EventKind::Resized { .. } => attribution.resized(now, id, event.seats),
            EventKind::Costed { cost, expected_per_mille, unit } => {
                let expected = u128::from(cost) * u128::from(expected_per_mille) / 1000;
                let expected = u64::try_from(expected).unwrap_or(u64::MAX);
                attribution.costed(now, id, unit.number(), cost, expected);
            }
            EventKind::Finished { lingers: true, .. }
            | EventKind::Watches { .. }
            | EventKind::Charged { .. }
            | EventKind::Blocked
            | EventKind::MeterWoundBack { .. }
            | EventKind::Reconfigured => {}
        }
    }
}
