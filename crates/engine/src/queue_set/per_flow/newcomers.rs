//! The seats that are kept for newcomers, and from whom (PF-10).
//!
//! A newcomer is a flow of which nothing runs. When other flows hold every seat for long, no order of turns helps it: a seat has to be free. So flows
//! whose requests are slow, or not known to be quick, leave some seats to newcomers and to flows whose requests are quick.
//! The latter give them back soon, and need not leave any.
//!
//! A request is quick if a newcomer would not wait long for a seat, were all seats held by requests like it: with `S` seats that are held for
//! `W` each, one becomes free every `W / S`. Of a flow, what counts is what its requests are expected to take, or how long those that
//! run have run if that is more.

use evenkeel_api::annotations::{NewcomerSeats, SeatShare};

use super::active_flow::{ActiveFlow, Pace};
use crate::queue_set::FlowLimits;
use crate::time::Instant;

/// How many seats are kept, and which flows use seats.
#[derive(Debug)]
pub(super) struct Newcomers {
    rule: NewcomerSeats,
    /// How long a newcomer may have to wait, in nanoseconds.
    wait: u64,
    /// The seats that the level has of its own.
    nominal: i64,
    /// The seats that all flows hold.
    in_use: i64,
    /// The seats in use by flows that have to leave some free.
    slow_in_use: i64,
    /// The mean time for which slow requests held their seats, in nanoseconds; `None` until one has ended.
    slow_hold: Option<u64>,
}

// === impl Newcomers ===

impl Newcomers {
    pub(super) fn new() -> Self {
        Self { rule: NewcomerSeats::NONE, wait: 0, nominal: 0, in_use: 0, slow_in_use: 0, slow_hold: None }
    }

    pub(super) fn configure(&mut self, limits: FlowLimits) {
        (self.rule, self.wait) = (limits.newcomer_seats, u64::try_from(limits.newcomer_wait).unwrap_or(0));
    }

    /// The level has so many seats of its own.
    pub(super) fn resize(&mut self, nominal: i64) {
        self.nominal = nominal;
    }

    /// All flows are to be counted anew.
    pub(super) fn clear(&mut self) {
        (self.in_use, self.slow_in_use) = (0, 0);
    }

    /// The assumed pace of a flow of which nothing is known.
    #[inline]
    pub(super) fn first_pace(&self) -> Pace {
        match self.rule {
            NewcomerSeats::Share(share) if share.is_none() => Pace::Quick,
            NewcomerSeats::Share(_) => Pace::Slow,
            NewcomerSeats::Auto => Pace::Unknown,
        }
    }

    /// The pace of a flow as of now.
    #[inline]
    pub(super) fn pace(&self, flow: &ActiveFlow, now: Instant) -> Pace {
        match (self.first_pace(), flow.pace) {
            (Pace::Unknown, Pace::Quick | Pace::Slow) => {
                let is_quick = flow.charge(now) <= self.quick_max().saturating_mul(flow.seats);
                if is_quick { Pace::Quick } else { Pace::Slow }
            }
            (pace, _) => pace,
        }
    }

    /// A flow holds more or fewer seats, or its pace has changed: counts those that it holds now instead of those before.
    #[inline]
    pub(super) fn recount(&mut self, before: (i64, i64), after: (i64, i64)) {
        self.in_use += after.0 - before.0;
        self.slow_in_use += after.1 - before.1;
    }

    /// A request has given its seats back after so many nanoseconds.
    #[inline]
    pub(super) fn ended(&mut self, held: u64) {
        if held > self.quick_max() {
            let mean = self.slow_hold.map_or(held, |mean| (mean - mean / 8 + held / 8).min(mean.saturating_mul(4)));
            self.slow_hold = Some(mean);
        }
    }

    /// The seats that a flow which is not known to be quick has to leave free at present: those that are kept, less those that quick
    /// flows use of them.
    #[inline]
    pub(super) fn kept(&self) -> i64 {
        (self.share() - (self.in_use - self.slow_in_use)).max(0)
    }

    /// The seats that are kept while flows that are not known to be quick would take them; none otherwise.
    pub(super) fn shown(&self) -> i64 {
        let share = self.share();
        if self.slow_in_use > 0 && self.slow_in_use + share >= self.seats() { share } else { 0 }
    }

    /// How many seats are kept: none of less than four, and up to a quarter, in steps by how long slow requests hold theirs.
    #[inline]
    fn share(&self) -> i64 {
        match self.rule {
            NewcomerSeats::Share(share) => seats_of(share, self.seats()),
            NewcomerSeats::Auto => {
                let (most, quick_max) = (self.seats() / 4, self.quick_max().max(1));
                let Some(hold) = self.slow_hold else { return most };
                let beyond = u128::from(hold.saturating_sub(quick_max)) * u128::from(most.unsigned_abs());
                let steps = i64::try_from(beyond.div_ceil(u128::from(quick_max))).unwrap_or(i64::MAX);
                steps.max(1).min(most)
            }
        }
    }

    /// The seats of the level: those that it has of its own, or those that it uses if it has borrowed.
    #[inline]
    fn seats(&self) -> i64 {
        self.nominal.max(self.in_use)
    }

    /// The longest time for which a quick request holds its seats, in nanoseconds.
    #[inline]
    fn quick_max(&self) -> u64 {
        self.wait.saturating_mul(self.seats().unsigned_abs())
    }
}

/// A share of so many seats, at least one unless it is none.
pub(super) fn seats_of(share: SeatShare, seats: i64) -> i64 {
    match share {
        SeatShare::Seats(count) => i64::from(count),
        SeatShare::Percent(percent) => {
            let seats = i128::from(seats.max(0)) * i128::from(percent);
            i64::try_from((seats + 99) / 100).unwrap_or(i64::MAX)
        }
    }
}
