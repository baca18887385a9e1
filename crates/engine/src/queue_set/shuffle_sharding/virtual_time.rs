//! Virtual time: how far an imaginary server that serves all active queues at once has come, and what each queue has been
//! charged for its requests (FQ-5, FQ-6, FQ-11 to FQ-13, FQ-20, FQ-23, FQ-30).

use super::super::turn_order::Finished;
use super::line::Front;
use crate::time::{Instant, MILLISECOND, Nanos};
use crate::{SeatSeconds, WorkEstimate};

/// What every request is taken to need until it has finished (FQ-5).
pub const SERVICE_TIME_GUESS: Nanos = 3 * MILLISECOND;

/// The progress meter of a level, and the sums that its rate depends on.
#[derive(Debug)]
pub(super) struct Meter {
    r: SeatSeconds,
    last_time: Instant,
    /// Over all queues: seats in use and the seats of waiting requests.
    pub(super) seats_requested: i64,
    /// Queues with a waiting or an executing request.
    pub(super) active_queues: usize,
    /// The rate for these seats and active queues: in a level that is full neither changes for long, and a division
    /// is what costs most here.
    last_rate: (i64, usize, f64),
    /// The progress at the last start, and the reading of the queue that it was from (FQ-26).
    pub(super) last_start: (SeatSeconds, SeatSeconds),
}

/// The reading of one queue: the progress at which its oldest request would start if all queues were served at once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    pub(super) next_r: SeatSeconds,
}

/// By how much readings are wound back.
const R_DECREMENT: SeatSeconds = SeatSeconds::from_units(u64::MAX / 2);
/// At what progress they are wound back.
const R_HIGH: SeatSeconds = SeatSeconds::from_units(u64::MAX / 2 + u64::MAX / 4);
/// The guess of FQ-5 for one seat, in units of [`SeatSeconds`].
const SERVICE_TIME_GUESS_UNITS: u64 = SERVICE_TIME_GUESS.unsigned_abs() / 10;

/// What a request is charged up front (FQ-6).
#[inline]
pub(super) fn total_work(work: WorkEstimate) -> SeatSeconds {
    // The same as the product of FQ-2, since the guess is a whole number of units.
    SeatSeconds::from_units(u64::from(work.initial_seats) * SERVICE_TIME_GUESS_UNITS) + work.final_work()
}

/// Winds a reading back, and tells whether it stayed above zero (FQ-13).
pub(super) fn wind_back(reading: &mut SeatSeconds) -> bool {
    let is_clean = *reading >= R_DECREMENT;
    *reading -= R_DECREMENT;
    is_clean
}

// === impl Meter ===

impl Meter {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            r: SeatSeconds::ZERO,
            last_time: now,
            seats_requested: 0,
            active_queues: 0,
            last_rate: (0, 1, 0.0),
            last_start: (SeatSeconds::ZERO, SeatSeconds::ZERO),
        }
    }

    /// The progress as of the last event.
    #[inline]
    pub(super) fn r(&self) -> SeatSeconds {
        self.r
    }

    /// Brings the meter up to now, with the state as it has been since the last event (FQ-12). Tells whether it has come so
    /// far that everything has to be wound back.
    #[inline]
    #[must_use]
    pub(super) fn advance(&mut self, now: Instant, limit: i64) -> bool {
        let elapsed = now - self.last_time;
        self.last_time = now;
        if elapsed == 0 || self.active_queues == 0 {
            return false;
        }
        let rate = self.rate(limit);
        self.r += SeatSeconds::of(rate, elapsed);
        self.r >= R_HIGH
    }

    /// Winds the meter itself back (FQ-13).
    pub(super) fn wind_back(&mut self) -> bool {
        wind_back(&mut self.r)
    }

    /// Seats per active queue (FQ-11).
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "FQ-11 asks for binary64")]
    fn rate(&mut self, limit: i64) -> f64 {
        let (seats, queues) = (self.seats_requested.min(limit), self.active_queues);
        if (self.last_rate.0, self.last_rate.1) != (seats, queues) {
            self.last_rate = (seats, queues, seats as f64 / queues as f64);
        }
        self.last_rate.2
    }
}

// === impl Reading ===

impl Reading {
    /// A queue that was not active starts from the present progress (FQ-19).
    #[inline]
    pub(super) fn wake(&mut self, meter: &mut Meter) {
        self.next_r = meter.r;
        meter.active_queues += 1;
    }

    /// A queue has no claim on progress from before its oldest request arrived (FQ-20). Tells whether it had one.
    #[inline]
    pub(super) fn forget_old_claims(&mut self, front: Option<&Front>) -> bool {
        if let Some(front) = front
            && self.next_r < front.arrival_r
        {
            self.next_r = front.arrival_r;
            return true;
        }
        false
    }

    /// When the oldest request would finish (FQ-23).
    #[inline]
    pub(super) fn finish(self, front: Option<&Front>) -> Option<SeatSeconds> {
        front.map(|front| self.next_r + front.total_work)
    }

    /// A request of the queue starts: it is charged what it is taken to need (FQ-23, step 7).
    #[inline]
    pub(super) fn charge(&mut self, meter: &mut Meter, total_work: SeatSeconds) {
        meter.last_start = (meter.r, self.next_r);
        self.next_r += total_work;
    }

    /// A request of the queue has finished: the guess that was charged gives way to the time that it took (FQ-30).
    #[inline]
    pub(super) fn correct(&mut self, finished: Finished) {
        self.settle(finished.work, finished.now - finished.run.resized);
    }

    /// The guess that was charged for some seats gives way to the time that they were held.
    #[inline]
    pub(super) fn settle(&mut self, work: WorkEstimate, held: Nanos) {
        let guessed_too_much = SERVICE_TIME_GUESS.saturating_sub(held);
        self.next_r -= SeatSeconds::of(f64::from(work.initial_seats), guessed_too_much);
    }

    /// Seats that a running request gets are charged as if the request started on them.
    pub(super) fn charge_seats(&mut self, work: WorkEstimate) {
        self.next_r += SeatSeconds::from_units(u64::from(work.initial_seats) * SERVICE_TIME_GUESS_UNITS);
    }
}
