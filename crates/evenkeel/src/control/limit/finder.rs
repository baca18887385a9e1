//! `Finder`: the engine's limit, and the library's own state beside it. Part of the control plane.

use std::collections::BTreeMap;
use std::time::Duration;

#[cfg(feature = "fleet")]
use evenkeel_engine::auto_limit::Totals;
use evenkeel_engine::auto_limit::{AutoLimit, LimitChange, Load, Sample};
use evenkeel_engine::time::{Instant, Nanos};

use super::{LimitState, LimitStep, Pace};

/// Finds the limit.
#[derive(Debug)]
pub(crate) struct Finder {
    pub(crate) limit: AutoLimit,
    /// When it last looked.
    looked_at: Instant,
    /// The number of the first change that has not been reported.
    untold: u64,
    /// How many changes there have been, by reason.
    counts: BTreeMap<&'static str, u64>,
    is_held_down: bool,
    floor: u32,
    /// What has happened since an instance of the fleet finds the limit for all (FL-13).
    #[cfg(feature = "fleet")]
    totals: Totals,
}

/// The sums of all levels since the limit was last looked at.
#[derive(Debug, Default)]
pub(crate) struct LimitTick {
    pub(crate) sample: Sample,
    /// The seats in use in levels that have a limit.
    pub(crate) limited_seats: u32,
    pub(crate) somebody_waits: bool,
    /// The fewest seats that the levels need (AL-6).
    pub(crate) floor: u32,
}

// === impl Finder ===

impl Finder {
    pub(crate) fn new(limit: AutoLimit, now: Instant) -> Self {
        Self {
            limit,
            looked_at: now,
            untold: 0,
            counts: BTreeMap::new(),
            is_held_down: false,
            floor: 1,
            #[cfg(feature = "fleet")]
            totals: Totals::default(),
        }
    }

    /// When it is due at this pace.
    pub(crate) fn due(&self, pace: Pace) -> Option<Instant> {
        pace.span().map(|span| self.looked_at + span)
    }

    /// Looks at the sums. Returns the limit, how often to look from now on, and the changes to report.
    pub(crate) fn look(&mut self, now: Instant, tick: &LimitTick) -> (u32, Pace, Vec<LimitChange>) {
        self.looked_at = now;
        self.floor = tick.floor;
        self.limit.set_floor(tick.floor);
        let seats = self.limit.tick(now, &tick.sample, tick.limited_seats);
        let pace = if tick.somebody_waits || self.limit.status().load != Load::Light {
            Pace::Fast
        } else if tick.sample.ends() > 0.0 {
            Pace::Slow
        } else {
            Pace::Resting
        };
        (seats, pace, self.take_news())
    }

    /// Only adds up what has happened, for the instance of the fleet that finds the limit for all.
    #[cfg(feature = "fleet")]
    pub(crate) fn sum_up(&mut self, now: Instant, tick: &LimitTick) -> Totals {
        self.totals.add(now - std::mem::replace(&mut self.looked_at, now), &tick.sample);
        self.totals
    }

    pub(crate) fn hold_down(&mut self, is_held_down: bool) {
        self.is_held_down = is_held_down;
        self.limit.hold_down(is_held_down);
    }

    pub(crate) fn is_held_down(&self) -> bool {
        self.is_held_down
    }

    fn take_news(&mut self) -> Vec<LimitChange> {
        let (numbers, changes): (Vec<u64>, Vec<LimitChange>) = self.limit.changes_since(self.untold).unzip();
        self.untold = numbers.last().map_or(self.untold, |last| last + 1);
        for change in &changes {
            *self.counts.entry(change.reason.as_str()).or_default() += 1;
        }
        changes
    }

    pub(crate) fn state(&self, now: Instant) -> LimitState {
        let ago = |at: Instant| Duration::from_nanos(u64::try_from((now - at).max(0 as Nanos)).unwrap_or(0));
        let steps = self.limit.changes_since(0).map(|(number, change)| LimitStep {
            number,
            ago: ago(change.at),
            change: *change,
        });
        LimitState {
            bounds: self.limit.bounds(),
            floor: self.floor,
            found_by: None,
            is_held_down: self.is_held_down,
            status: self.limit.status(),
            counts: self.counts.clone(),
            steps: steps.collect(),
        }
    }
}
