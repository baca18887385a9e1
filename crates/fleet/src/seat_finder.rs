//! `SeatFinder`: how many seats the service should have, found by one instance for all, from what all publish (FL-13).
//!
//! It runs the engine's limit at the pace of a fleet. A *round* ends when every instance that has something to do has published again; what
//! happened in it is the difference of the totals of each. A change of the seats takes its time: it counts only
//! when every instance has acknowledged the ledger that says so, and what happened before that says nothing.

use std::collections::BTreeMap;

use evenkeel_engine::auto_limit::{AutoLimit, LimitChange, LimitStatus, Sample, Totals};
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos};

use crate::found_seats::FoundSeats;
use crate::ledger::{InstanceId, Ledger, LedgerEntry};
use crate::publication::Publication;

/// Finds the seats of the service.
#[derive(Debug)]
pub(crate) struct SeatFinder {
    limit: AutoLimit,
    me: InstanceId,
    /// The revision of the first ledger that was seen with the present seats; `None` before there is one.
    in_effect: Option<u64>,
    /// What was in the last publications that were counted.
    seen: BTreeMap<InstanceId, SeenTotals>,
    round_began: Option<Instant>,
    /// Whether the ledger says that this instance finds the seats.
    is_confirmed: bool,
    /// Whether no round has been counted since the seats changed.
    is_first_round: bool,
    /// The number of the first change that nobody has been told of.
    untold: u64,
}

/// The last publication of an instance that was counted.
#[derive(Debug, Clone, Copy)]
struct SeenTotals {
    mod_revision: u64,
    totals: Totals,
    hold: u64,
    /// Whether it was made with the present seats.
    is_settled: bool,
}

/// A publication of an instance that takes part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Present<'a> {
    pub(crate) id: InstanceId,
    pub(crate) mod_revision: u64,
    pub(crate) publication: &'a Publication,
}

/// Instances that have something to do publish at this pace while requests wait.
pub(crate) const ROUND: Nanos = 250 * MILLISECOND;

/// A round ends without those that have published nothing for so long.
const ROUND_MAX: Nanos = 1_500 * MILLISECOND;

/// The first round at other seats counts only if all requests inside have been replaced so many times: some of them ran at the seats before.
const TURNOVERS_FIRST: f64 = 10.0;

// === impl SeatFinder ===

impl SeatFinder {
    /// Goes on from what the ledger knows.
    pub(crate) fn new(found: &FoundSeats, me: InstanceId) -> Self {
        let limit = AutoLimit::new(found.bounds(), found.limit_seats(), found.as_learnt()).looked_at_every(ROUND);
        Self {
            limit,
            me,
            in_effect: None,
            is_confirmed: false,
            seen: BTreeMap::new(),
            round_began: None,
            is_first_round: true,
            untold: 0,
        }
    }

    /// Whether another instance has found something meanwhile, or somebody has set other bounds: then it is to begin anew.
    pub(crate) fn is_outdated(&self, written: &FoundSeats) -> bool {
        self.is_confirmed && written.by != Some(self.me) || self.limit.bounds() != written.bounds()
    }

    /// How many seats the service should have now.
    pub(crate) fn seats(&self) -> u64 {
        self.limit.limit().into()
    }

    pub(crate) fn status(&self) -> LimitStatus {
        self.limit.status()
    }

    pub(crate) fn take_news(&mut self) -> Vec<LimitChange> {
        let (numbers, changes): (Vec<u64>, Vec<LimitChange>) = self.limit.changes_since(self.untold).unzip();
        self.untold = numbers.last().map_or(self.untold, |last| last + 1);
        changes
    }

    /// Never fewer seats than levels need, nor than there are instances.
    pub(crate) fn set_floor(&mut self, seats: u32) {
        self.limit.set_floor(seats);
    }

    /// Writes what was found into the next ledger. What a response usually costs changes all the time, and is written when something else
    /// changes.
    pub(crate) fn write_to(&self, ledger: &mut Ledger) {
        let Some(written) = ledger.auto.filter(|written| !self.is_outdated(written)) else { return };
        let status = self.limit.status();
        let place = FoundSeats { by: Some(self.me), ..FoundSeats::unknown(written.bounds(), status.applied) };
        let found = match self.limit.learnt() {
            Some(learnt) => place.learnt(Some(learnt)),
            None => FoundSeats { limit_thousandths: limit_thousandths(status.limit), ..place },
        };
        let told = |found: &FoundSeats| (found.limit_seats(), found.is_known, found.by);
        if ledger.seats != self.seats() || told(&found) != told(&written) {
            (ledger.seats, ledger.auto) = (self.seats(), Some(found));
        }
    }

    /// Looks at what all have published. Returns whether the seats have changed.
    pub(crate) fn look(&mut self, now: Instant, ledger: &Ledger, revision: u64, present: &[Present<'_>]) -> bool {
        let before = self.seats();
        self.is_confirmed |= ledger.auto.is_some_and(|found| found.by == Some(self.me));
        self.limit.hold_down(present.iter().any(|one| one.publication.is_held_down));
        if ledger.seats == before {
            self.in_effect.get_or_insert(revision);
        } else {
            self.in_effect = None;
        }
        self.seen.retain(|id, _| present.iter().any(|one| one.id == *id));
        let Some(began) = self.round_began else {
            // Where the counting begins.
            self.limit.tick(now, &Sample::default(), 0);
            self.begin_round(now, present);
            return false;
        };
        let span = now - began;
        let is_new =
            |one: &Present<'_>| self.seen.get(&one.id).is_none_or(|seen| seen.mod_revision != one.mod_revision);
        let is_complete = present.iter().filter(|one| one.has_demand()).all(is_new);
        if span < ROUND / 2 || !present.iter().any(is_new) || !is_complete && span < ROUND_MAX {
            return false;
        }
        self.end_round(now, span, ledger, present);
        let is_changed = self.seats() != before;
        if is_changed {
            (self.in_effect, self.is_first_round) = (None, true);
        }
        self.begin_round(now, present);
        is_changed
    }

    /// What has happened in all instances since the round began.
    fn end_round(&mut self, now: Instant, span: Nanos, ledger: &Ledger, present: &[Present<'_>]) {
        let mut sample = Sample::default();
        for one in present {
            if let Some(totals) = &one.publication.totals
                && let Some(happened) = self.seen.get(&one.id).and_then(|seen| totals.since(&seen.totals))
            {
                sample.merge(&happened.sample_of(span));
            }
        }
        // While etcd is away, grants end, and floors are fewer seats than those that are measured.
        let may_have_ended = |entry: &LedgerEntry| span >= Nanos::from(entry.terms.ttl_ms) * MILLISECOND;
        let is_settled = !ledger.entries.iter().any(may_have_ended)
            && present.iter().all(|one| self.seen.get(&one.id).is_some_and(|seen| seen.is_settled));
        let is_flushed = !self.is_first_round || sample.ends() >= TURNOVERS_FIRST * float(self.seats());
        if is_settled {
            self.is_first_round = false;
        }
        if is_settled && is_flushed {
            // Seats that instances held when the round began are the most that were in use in it.
            let held = self.seen.values().fold(0, |sum: u64, seen| sum.saturating_add(seen.hold));
            self.limit.tick(now, &sample, u32::try_from(held).unwrap_or(u32::MAX));
        } else {
            self.limit.settle(now, &sample);
        }
    }

    fn begin_round(&mut self, now: Instant, present: &[Present<'_>]) {
        self.round_began = Some(now);
        for one in present {
            let Some(totals) = one.publication.totals else { continue };
            let is_settled = self.in_effect.is_some_and(|revision| one.publication.ack >= revision);
            let seen = SeenTotals { mod_revision: one.mod_revision, totals, hold: one.publication.hold, is_settled };
            self.seen.insert(one.id, seen);
        }
    }
}

// === impl Present ===

impl Present<'_> {
    fn has_demand(&self) -> bool {
        self.publication.totals.is_some() && self.publication.demand() > 0
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some seats")]
fn limit_thousandths(limit: f64) -> u64 {
    (limit * 1e3).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "some seats")]
fn float(seats: u64) -> f64 {
    seats as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_engine::auto_limit::Phase;
    use evenkeel_engine::time::SECOND;

    use super::*;
    use crate::FleetSettings;
    use crate::ledger::ProcessNonce;
    use crate::settings::Terms;

    const ME: InstanceId = InstanceId(1);
    const REQUEST: Nanos = 10 * MILLISECOND;

    /// An instance alone, with more requests than seats: each further seat brings as much as the others.
    struct Alone {
        finder: SeatFinder,
        ledger: Ledger,
        revision: u64,
        publication: Publication,
        publications: u64,
        now: Instant,
    }

    impl Alone {
        fn new() -> Self {
            let found = FoundSeats::unknown(1..=400, 20);
            let mut ledger = Ledger::new(&FleetSettings::default().auto(found));
            let (process, terms) = (ProcessNonce(1), Terms::default());
            let entry = LedgerEntry { process, id: ME, terms, grant: 20, hold: 20, floor: 10, floor_held: 10, low: 1 };
            ledger.entries.push(entry);
            let publication = Publication {
                ack: 1,
                hold: 20,
                is_draining: false,
                load: Arc::default(),
                totals: Some(Totals::default()),
                is_held_down: false,
                rates: Arc::default(),
            };
            let (finder, now) = (SeatFinder::new(&found, ME), Instant::default());
            Self { finder, ledger, revision: 1, publication, publications: 0, now }
        }

        /// So many seats are in use for a while, and it publishes what has happened. The seats that are found are in the next ledger.
        fn pass(&mut self, span: Nanos, seats: u32) {
            let mut sample = Sample::default();
            sample.passed(span, seats, true);
            (0..i64::from(seats) * span / REQUEST).for_each(|_| sample.ended(0, REQUEST, 1, true));
            self.publication.totals.iter_mut().for_each(|totals| totals.add(span, &sample));
            self.publications += 1;
            self.now = self.now + span;
            let present = [Present { id: ME, mod_revision: self.publications, publication: &self.publication }];
            self.finder.look(self.now, &self.ledger, self.revision, &present);
            if self.ledger.seats != self.finder.seats() {
                self.ledger.seats = self.finder.seats();
                self.revision += 1;
            }
            (self.publication.ack, self.publication.hold) = (self.revision, self.ledger.seats);
        }

        fn seats(&self) -> u32 {
            self.finder.status().applied
        }

        /// Whether what happens from now on decides about a trial.
        fn is_trying(&self) -> bool {
            self.finder.status().phase == Phase::Trying && self.finder.seen.values().all(|seen| seen.is_settled)
        }
    }

    /// A minute on floors once counted as a trial of all seats.
    #[test]
    fn fl_13_a_round_in_which_grants_may_have_ended_decides_nothing() {
        let mut alone = Alone::new();
        for _ in 0..1000 {
            if !alone.is_trying() {
                alone.pass(ROUND, alone.seats());
            }
        }
        assert!(alone.is_trying(), "{:?}", alone.finder.status());
        let before = (alone.finder.status().phase, alone.seats());
        alone.pass(60 * SECOND, alone.seats() / 2);
        assert_eq!((alone.finder.status().phase, alone.seats()), before);
        // The trial goes on when etcd is back.
        (0..200).for_each(|_| alone.pass(ROUND, alone.seats()));
        assert!(alone.finder.status().limit > 20.0, "{:?}", alone.finder.status());
    }
}
