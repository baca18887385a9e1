//! `ActiveFlow`: a flow with waiting or running requests: its queue, and the seat-time that it has used (PF-2, PF-3).

use crate::queue_set::requests::NO_SLOT;
use crate::queue_set::requests::Run;
use crate::time::{Instant, Nanos};

/// A flow. It is in one cache line: with many flows, fetching it is most of what a turn costs.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct ActiveFlow {
    /// The completed seat-time by weight, as a key.
    pub(super) base: i64,
    /// The seats of each running request times its start, added up modulo 2^64. The difference to now is right as long as what
    /// the running requests of the flow have used together is less than 584 years of seat-time.
    starts: u64,
    /// The expected seat-time of one request, in seat-nanoseconds.
    pub(super) estimate: u64,
    /// How many seats its requests hold.
    pub(super) seats: u64,
    /// How many seats its waiting requests ask for.
    pub(super) seats_waiting: u64,
    /// How many of its requests hold seats, lingering ones included.
    pub(super) running: u32,
    /// How many of its requests wait.
    pub(super) waiting: u32,
    /// The slots of the oldest and the youngest request that wait, or [`NO_SLOT`].
    pub(super) first: u32,
    pub(super) last: u32,
    /// The seats that the oldest one asks for.
    pub(super) first_seats: u32,
    pub(super) weight: u16,
    pub(super) pace: Pace,
    /// The heap that the flow is in while it waits.
    pub(super) standing: FlowStanding,
}

/// How long the requests of a flow hold their seats (PF-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// No request of the flow has ended, so that its pace is not known.
    Unknown,
    /// A newcomer would not wait long for one of their seats.
    Quick,
    Slow,
}

/// Which seats a flow that waits may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowStanding {
    /// Any seat: nothing of the flow runs, or its requests are quick.
    Open,
    /// Only seats that are not kept for newcomers (PF-10).
    Held,
    /// No seat: the flow holds as many as it may (PF-11).
    Full,
}

/// The fraction bits of a key. A key is an amount of seat-nanoseconds divided by a weight.
const KEY_BITS: u32 = 4;
/// The fraction bits of the inverse of a weight.
const INVERSE_BITS: u32 = 32;
/// The expected seat-time is never less than a microsecond: from nothing it could not grow any more.
const ESTIMATE_MIN: u64 = 1000;

// === impl ActiveFlow ===

impl ActiveFlow {
    pub(super) fn new(weight: u16, estimate: u64, base: i64, pace: Pace) -> Self {
        Self {
            base,
            starts: 0,
            estimate,
            seats: 0,
            seats_waiting: 0,
            running: 0,
            waiting: 0,
            first: NO_SLOT,
            last: NO_SLOT,
            first_seats: 0,
            weight: weight.max(1),
            pace,
            standing: FlowStanding::Open,
        }
    }

    /// Whether nothing of it waits or runs.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.running == 0
    }

    /// What it has used up to now, by its weight (PF-2).
    #[inline]
    pub(super) fn key(&self, now: Instant) -> i64 {
        if self.running == 0 {
            return self.base;
        }
        self.base.saturating_add(key_of(self.charge(now), self.weight))
    }

    /// The seat-time that it is charged for what runs: what it has taken up to now, or is expected to take if that is more.
    #[inline]
    pub(super) fn charge(&self, now: Instant) -> u64 {
        let by_time = self.seats.wrapping_mul(nanos(now)).wrapping_sub(self.starts);
        let at_dispatch = u64::from(self.running).saturating_mul(self.estimate);
        by_time.max(at_dispatch)
    }

    /// The seats that it holds, and those of them that count as held by a flow which is not known to be quick.
    #[inline]
    pub(super) fn held(&self) -> (i64, i64) {
        let seats = self.seats.cast_signed();
        (seats, if self.pace == Pace::Quick { 0 } else { seats })
    }

    /// A request that takes that many seats starts.
    #[inline]
    pub(super) fn start(&mut self, now: Instant, seats: u32) {
        self.running += 1;
        self.take(now, seats);
    }

    /// A request has given its seats back; tells its seat-time. The exact seat-time takes the place of what it was charged. The
    /// pace of the flow is known from now on, and to be judged anew.
    #[inline]
    pub(super) fn end(&mut self, run: Run, now: Instant, seats: u32) -> u64 {
        self.running -= 1;
        self.give_back(run.resized, now, seats);
        // The seat-time of the whole request on the seats that it had last: the next request is likely to have as many.
        let used = seat_time(run.started, now, seats);
        self.estimate = learnt(self.estimate, used);
        if self.pace == Pace::Unknown {
            self.pace = Pace::Quick;
        }
        used
    }

    /// A request that runs has other seats from now on. The exact seat-time of those that it had takes the place of what it was
    /// charged for them.
    pub(super) fn resize(&mut self, since: Instant, now: Instant, before: u32, after: u32) {
        self.give_back(since, now, before);
        self.take(now, after);
    }

    /// Charges the flow that much more seat-time, or less.
    pub(super) fn add_charge(&mut self, seat_time: Nanos) {
        let key = key_of(seat_time.unsigned_abs(), self.weight);
        self.base = self.base.saturating_add(if seat_time < 0 { -key } else { key });
    }

    #[inline]
    fn take(&mut self, now: Instant, seats: u32) {
        self.seats += u64::from(seats);
        self.starts = self.starts.wrapping_add(u64::from(seats).wrapping_mul(nanos(now)));
    }

    #[inline]
    fn give_back(&mut self, since: Instant, now: Instant, seats: u32) {
        self.seats -= u64::from(seats);
        self.starts = self.starts.wrapping_sub(u64::from(seats).wrapping_mul(nanos(since)));
        self.base = self.base.saturating_add(key_of(seat_time(since, now, seats), self.weight));
    }

    /// The waiting seats of the flow by its weight, with some more (PF-7).
    #[inline]
    pub(super) fn load(&self, more_seats: u32) -> i64 {
        load(self.seats_waiting + u64::from(more_seats), self.weight)
    }
}

/// The seat-time of seats that are held from one time to another, in seat-nanoseconds.
#[inline]
fn seat_time(since: Instant, now: Instant, seats: u32) -> u64 {
    u64::try_from(now - since).unwrap_or(0).saturating_mul(u64::from(seats))
}

/// A time as a number to calculate with modulo 2^64.
#[inline]
fn nanos(at: Instant) -> u64 {
    at.as_nanos().cast_unsigned()
}

/// An amount of seat-nanoseconds divided by a weight, in units of 1/16.
///
/// A key has room for 18 years of seat-time. A flow that is farther ahead of the virtual time stays there.
#[inline]
pub(super) fn key_of(amount: u64, weight: u16) -> i64 {
    if weight == 1 {
        return i64::try_from(u128::from(amount) << KEY_BITS).unwrap_or(i64::MAX);
    }
    // A multiplication in the place of a division. The error is below 10^-6, and the same each time.
    let inverse = (1_u64 << (KEY_BITS + INVERSE_BITS)) / u64::from(weight);
    i64::try_from((u128::from(amount) * u128::from(inverse) + (1 << (INVERSE_BITS - 1))) >> INVERSE_BITS)
        .unwrap_or(i64::MAX)
}

/// Seats by weight, for comparison.
#[inline]
pub(super) fn load(seats: u64, weight: u16) -> i64 {
    i64::try_from((u128::from(seats) << INVERSE_BITS) / u128::from(weight.max(1))).unwrap_or(i64::MAX)
}

/// The expected seat-time after one more request: an average in which the newest has the weight 1/8, and which one request
/// moves fourfold at most (PF-3).
#[inline]
pub(super) fn learnt(estimate: u64, used: u64) -> u64 {
    let average = estimate - estimate / 8 + used / 8;
    average.min(estimate.saturating_mul(4)).max(ESTIMATE_MIN)
}
