//! `PartClock`: the time of a flow that has a part of its rate (RL-6).

use super::parts::RatePart;
use crate::time::{Instant, Nanos};

/// A clock that runs at the part of the rate that a flow has here: at a tenth, it shows a second when ten have passed.
///
/// By this clock the flow always has its whole rate. So its stamp, and the times at which requests may pass, stay right when the part
/// changes. The clocks of a flow on all instances together never run faster than the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartClock {
    part: RatePart,
    since: Instant,
    /// What it showed then.
    shown: Instant,
}

// === impl PartClock ===

impl PartClock {
    /// A clock that shows the time.
    pub(super) fn new(now: Instant) -> Self {
        Self { part: RatePart::WHOLE, since: now, shown: now }
    }

    pub(super) fn part(&self) -> RatePart {
        self.part
    }

    /// What it shows.
    pub(super) fn at(&self, now: Instant) -> Instant {
        self.shown + self.part.of((now - self.since).max(0))
    }

    /// The clock runs at this part from now on.
    pub(super) fn set(&mut self, part: RatePart, now: Instant) {
        if part != self.part {
            *self = Self { part, since: now.max(self.since), shown: self.at(now) };
        }
    }

    /// When it shows `shown`, if it runs at `part`; the end of time if that is nothing.
    pub(super) fn when(&self, shown: Instant, part: RatePart, now: Instant) -> Instant {
        let left: Nanos = (shown - self.at(now)).max(0);
        now + part.whole_of(left).unwrap_or(Nanos::MAX)
    }
}
