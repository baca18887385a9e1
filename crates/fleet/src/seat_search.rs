//! `SeatSearch`: whether this instance finds the seats of the service for all, and what it publishes for whoever does (FL-13).

use evenkeel_engine::auto_limit::{LimitChange, LimitStatus};
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos};

use crate::found_seats::FoundSeats;
use crate::ledger::{InstanceId, Ledger, LedgerEntry};
use crate::publication::{CurrentUsage, LimitInput, LoadSource, Publication};
use crate::seat_finder::{Present, SeatFinder};
use crate::silence::Silences;
use crate::view::FleetView;

/// The part of an instance in finding the seats.
#[derive(Debug, Default)]
pub(crate) struct SeatSearch {
    /// The instance with the lowest id has it.
    finder: Option<SeatFinder>,
    /// The seats of the service by the newest ledger, and the revision with which they came.
    seats: u64,
    resized: u64,
    /// The fewest seats, as long as this instance finds them.
    floor: u32,
    news: Vec<LimitChange>,
}

/// How many seats a fleet has found to be right for its service (FL-13).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FoundLimit {
    /// What the ledger says.
    pub found: FoundSeats,
    /// The state of the limit, if this instance finds it for all.
    pub here: Option<LimitStatus>,
    /// The fewest seats that the levels need, if this instance finds the limit; otherwise the fewest that the instances need.
    pub floor: u32,
    /// Whether an outside signal keeps the limit from rising: that of any instance.
    pub is_held_down: bool,
}

/// So many changes are kept until somebody asks.
const NEWS_MAX: usize = 256;

/// A share of failed requests that others have to know of at once (AL-5).
const FAILED_SHARE: f64 = 0.1;

// === impl SeatSearch ===

impl SeatSearch {
    /// A ledger was received.
    pub(crate) fn note(&mut self, ledger: &Ledger, revision: u64) {
        if ledger.seats != self.seats {
            (self.seats, self.resized) = (ledger.seats, revision);
        }
    }

    /// Who finds the seats, if this instance does.
    pub(crate) fn finder(&self) -> Option<&SeatFinder> {
        self.finder.as_ref()
    }

    /// What was decided since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<LimitChange> {
        std::mem::take(&mut self.news)
    }

    /// The limit; nothing if somebody has set the seats.
    pub(crate) fn limit(&self, view: &FleetView) -> Option<FoundLimit> {
        let ledger = view.ledger()?;
        let here = self.finder.as_ref().map(SeatFinder::status);
        Some(FoundLimit {
            found: ledger.auto?,
            here,
            floor: if here.is_some() { self.floor } else { instances(ledger) },
            is_held_down: view.publications().any(|publication| publication.is_held_down),
        })
    }

    /// Looks at what all have published. Returns whether the seats should change.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        me: InstanceId,
        view: &FleetView,
        silences: &Silences,
        current: &impl LoadSource,
    ) -> bool {
        let Some((ledger, found)) = view.ledger().and_then(|ledger| Some((ledger, ledger.auto?))) else {
            self.finder = None;
            return false;
        };
        let present = present(now, me, ledger, view, silences);
        let staying = present.iter().filter(|one| !one.publication.is_draining);
        if staying.map(|one| one.id).min() != Some(me) {
            self.finder = None;
            return false;
        }
        if self.finder.as_ref().is_some_and(|finder| finder.is_outdated(&found)) {
            self.finder = None;
        }
        let LimitInput { floor, .. } = current.limit_input().unwrap_or_default();
        self.floor = floor.max(instances(ledger));
        let finder = self.finder.get_or_insert_with(|| SeatFinder::new(&found, me));
        finder.set_floor(self.floor);
        let is_changed = finder.look(now, ledger, view.ledger_revision(), &present);
        self.news.extend(finder.take_news());
        let excess = self.news.len().saturating_sub(NEWS_MAX);
        self.news.drain(..excess);
        is_changed
    }

    /// Whether whoever finds the seats waits for what this instance publishes.
    pub(crate) fn must_publish(
        &self,
        view: &FleetView,
        published: &Publication,
        usage: &CurrentUsage,
        current: &impl LoadSource,
    ) -> bool {
        if view.ledger().is_none_or(|ledger| ledger.auto.is_none()) {
            return false;
        }
        if published.ack < self.resized {
            return true;
        }
        if usage.demand() == 0 {
            return false;
        }
        let waits = |publication: &Publication| publication.demand() > publication.hold;
        if usage.demand() > usage.in_use || view.publications().any(waits) {
            return true;
        }
        let happened = current.limit_input().zip(published.totals);
        happened
            .and_then(|(input, before)| input.totals.since(&before))
            .is_some_and(|happened| happened.failed > FAILED_SHARE * happened.ends())
    }
}

/// How many instances there are: each needs a seat.
fn instances(ledger: &Ledger) -> u32 {
    u32::try_from(ledger.entries.len()).unwrap_or(u32::MAX)
}

/// The instances that sum up what happens: this one, and others that have been heard of lately.
fn present<'a>(
    now: Instant,
    me: InstanceId,
    ledger: &Ledger,
    view: &'a FleetView,
    silences: &Silences,
) -> Vec<Present<'a>> {
    let is_heard_of = |entry: &LedgerEntry| {
        entry.id == me || silences.of(now, entry.id) < Nanos::from(entry.terms.ttl_ms) * MILLISECOND
    };
    let present = ledger.entries.iter().filter(|entry| is_heard_of(entry)).filter_map(|entry| {
        let key = view.live(entry.id)?;
        let publication = key.publication.as_ref().filter(|publication| publication.totals.is_some())?;
        Some(Present { id: entry.id, mod_revision: key.mod_revision, publication })
    });
    present.collect()
}
