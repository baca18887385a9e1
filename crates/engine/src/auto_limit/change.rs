//! Every change of the limit, with its reason and figures (AL-7).

use std::collections::VecDeque;
use std::fmt;

use super::window::Elasticity;
use crate::time::Instant;

/// Something that the limit did, or decided not to do.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LimitChange {
    /// The time of the change.
    pub at: Instant,
    /// The limit before it, and the limit that it leads to. They are equal for what was decided against.
    pub from: u32,
    /// See `from`.
    pub to: u32,
    /// The cause of the change.
    pub reason: LimitReason,
}

/// Why the limit changed, or stayed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum LimitReason {
    /// Trials begin.
    Search(SearchCause),
    /// A trial at another limit has ended, and the limit stays there or goes back.
    Trial {
        /// The limit that was tried.
        tried: u32,
        /// What the trial showed.
        elasticity: Elasticity,
        /// Whether the limit stays there.
        is_taken: bool,
    },
    /// The trials are over: the limit is known.
    SearchDone,
    /// The first trial did not confirm what the probes suggested.
    NotConfirmed,
    /// No request waits any more. A search that had not ended is void.
    NobodyWaits,
    /// A pair of probes with one more seat and one seat less, or some.
    Probe(Elasticity),
    /// No limit above this one for a while.
    Ceiling {
        /// The highest limit.
        seats: u32,
        /// What happens above it.
        cause: CeilingCause,
    },
    /// Requests waited for moments at light load: bursts may go this far above the limit.
    Room(f64),
    /// Too many requests failed.
    Brake {
        /// The share of failed requests.
        failed: f64,
    },
    /// Fewer seats did not help: the failures do not come from load.
    BrakeReleased,
    /// Requests no longer fail.
    FailuresOver,
}

/// The cause of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchCause {
    /// The first overload of a service that nobody knows yet.
    Start,
    /// A response costs more seat-time than usual at the same limit.
    Dearer,
    /// A response costs less seat-time than usual at the same limit.
    Cheaper,
    /// Probes say that more seats bring more responses.
    MoreHelps,
    /// Probes say that fewer seats bring more responses.
    FewerHelps,
}

/// What happens above a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CeilingCause {
    /// Requests fail.
    Failures,
    /// Throughput falls.
    Collapse,
}

/// The latest changes. Older ones go first.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeLog {
    changes: VecDeque<LimitChange>,
    /// How many there have been in all.
    count: u64,
}

/// So many changes are kept.
pub(super) const KEPT: usize = 256;

// === impl ChangeLog ===

impl ChangeLog {
    pub(super) fn push(&mut self, change: LimitChange) {
        if self.changes.len() >= KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
        self.count += 1;
    }

    /// The changes that are kept, the oldest first, with their numbers.
    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = (u64, &LimitChange)> {
        let first = self.count - self.changes.len() as u64;
        (first..).zip(&self.changes).skip_while(move |(at, _)| *at < number)
    }
}

// === impl LimitReason ===

impl LimitReason {
    /// Whether it happens all the time, and matters only to those who look closely.
    pub fn is_routine(&self) -> bool {
        matches!(self, Self::Probe(_))
    }

    /// A short name, for metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Search(_) => "search",
            Self::Trial { is_taken: true, .. } => "trial-taken",
            Self::Trial { is_taken: false, .. } => "trial-not-taken",
            Self::SearchDone => "search-done",
            Self::NotConfirmed => "not-confirmed",
            Self::NobodyWaits => "nobody-waits",
            Self::Probe(_) => "probe",
            Self::Ceiling { .. } => "ceiling",
            Self::Room(_) => "room",
            Self::Brake { .. } => "brake",
            Self::BrakeReleased => "brake-released",
            Self::FailuresOver => "failures-over",
        }
    }
}

// === impl LimitChange ===

impl fmt::Display for LimitChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, reason, .. } = self;
        match reason {
            LimitReason::Search(cause) => write!(f, "search from {from}: {cause}"),
            LimitReason::Trial { tried, elasticity, is_taken } => {
                let taken = if *is_taken { "taken" } else { "not taken" };
                write!(f, "trial {from} → {tried}: {elasticity}: {taken}")
            }
            LimitReason::SearchDone => write!(f, "{to}: the search has ended"),
            LimitReason::NotConfirmed => write!(f, "{to}: a trial did not confirm the probes"),
            LimitReason::NobodyWaits => write!(f, "{to}: nobody waits"),
            LimitReason::Probe(elasticity) => write!(f, "probe {from} → {to}: {elasticity}"),
            LimitReason::Ceiling { seats, cause } => write!(f, "ceiling {seats}: {cause} above it"),
            LimitReason::Room(factor) => {
                write!(f, "room for bursts up to {factor:.2} × {from}: short waits at light load")
            }
            LimitReason::Brake { failed } => {
                write!(f, "brake {from} → {to}: {:.0} % of the requests failed", failed * 100.0)
            }
            LimitReason::BrakeReleased => {
                write!(f, "back {from} → {to}: braking does not help, the failures do not come from load")
            }
            LimitReason::FailuresOver => write!(f, "{to}: requests no longer fail"),
        }
    }
}

impl fmt::Display for SearchCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "the capacity of the service is not known yet",
            Self::Dearer => "a response takes more seat-time than usual",
            Self::Cheaper => "a response takes less seat-time than usual",
            Self::MoreHelps => "more seats seem to bring more responses",
            Self::FewerHelps => "fewer seats seem to bring more responses",
        })
    }
}

impl fmt::Display for CeilingCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failures => "requests fail",
            Self::Collapse => "throughput falls",
        })
    }
}

impl fmt::Display for Elasticity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "elasticity {:.2} ± {:.2}", self.value, self.deviation)
    }
}
