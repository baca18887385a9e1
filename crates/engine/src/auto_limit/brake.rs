//! Fewer seats when requests fail. Works at light load too (AL-5).

use super::sample::Sums;
use super::search::Direction;
use super::{AutoLimit, CEILING_SPAN, Ceiling, CeilingCause, LimitReason, Phase};
use crate::time::{Instant, MILLISECOND};

/// Watches the share of failed requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Brake {
    sums: Sums,
    /// How often the limit was lowered in a row, and what it was before the first time.
    count: u32,
    limit_before: f64,
    quiet_until: Instant,
    /// The share of failures that fewer seats do not change.
    usual_share: f64,
}

/// The share of failed requests that brakes.
const SHARE_MAX: f64 = 0.2;

/// Below this share, the failures are over.
const SHARE_OVER: f64 = SHARE_MAX / 2.0;

/// The brake acts only if the failed share is above the usual share by this much.
const SHARE_ABOVE_USUAL: f64 = 0.1;

/// The factor by which the brake lowers the limit.
const FACTOR: f64 = 0.7;

/// After so many reductions in a row, the failures do not come from load.
const COUNT_MAX: u32 = 6;

// === impl Brake ===

impl Brake {
    pub(super) fn take_in(&mut self, span: f64, sums: &Sums) {
        self.sums.add(span, sums);
    }

    /// The limit is not in effect everywhere: after it was lowered, failures say nothing yet.
    pub(super) fn wait_for_effect(&mut self) {
        if self.count > 0 {
            self.sums = Sums::default();
        }
    }
}

// === impl AutoLimit ===

impl AutoLimit {
    /// Looks at the share of failed requests. Returns whether the limit was changed, or is held.
    pub(super) fn brake(&mut self, now: Instant) -> bool {
        let seats = self.applied_seats();
        let sums = self.brake.sums;
        if sums.seconds < 0.05 || sums.ended() < seats.max(20.0) {
            return false;
        }
        self.brake.sums = Sums::default();
        if now < self.brake.quiet_until {
            return false;
        }
        let share = sums.failed / sums.ended();
        if share > SHARE_MAX && share > self.brake.usual_share + SHARE_ABOVE_USUAL {
            self.brake.quiet_until = now + 30 * MILLISECOND;
            self.load.room = 1.0;
            self.slow_down(now, share);
            return true;
        }
        if self.brake.count > 0 && share < SHARE_OVER {
            self.brake.count = 0;
            self.probing.usual = None;
            self.tell(now, self.limit, LimitReason::FailuresOver);
            self.hold(now, 500 * MILLISECOND);
            return true;
        }
        if share < self.brake.usual_share {
            self.brake.usual_share += 0.2 * (share - self.brake.usual_share);
        }
        false
    }

    fn slow_down(&mut self, now: Instant, share: f64) {
        let before = self.limit;
        let is_own_trial = match self.phase {
            Phase::ProbingUp => true,
            Phase::Trying => self.search.direction() == Direction::Up,
            Phase::Holding | Phase::MeasuringBase | Phase::ProbingDown => false,
        };
        if is_own_trial {
            // Requests fail because of the trial itself: goes back to the limit, and tries nothing above it for a while.
            self.set_ceiling(now, before, CeilingCause::Failures);
            self.hold(now, 500 * MILLISECOND);
        } else if self.brake.count < COUNT_MAX {
            if self.brake.count == 0 {
                self.brake.limit_before = before;
            }
            self.brake.count += 1;
            self.ceiling = Some(Ceiling { seats: before, until: now + CEILING_SPAN });
            self.limit = (before * FACTOR).max(self.min());
            self.tell(now, before, LimitReason::Brake { failed: share });
            self.hold(now, 300 * MILLISECOND);
        } else {
            self.brake.usual_share = share;
            self.limit = self.restored(self.brake.limit_before);
            self.brake.count = 0;
            self.ceiling = None;
            self.tell(now, before, LimitReason::BrakeReleased);
            self.hold(now, 1000 * MILLISECOND);
        }
    }
}
