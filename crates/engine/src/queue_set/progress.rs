//! The progress meter: how far an imaginary server that serves all active queues at once has come (FQ-11 to FQ-13).

use super::queue::Queue;
use super::{Effects, QueueSet};
use crate::SeatSeconds;
use crate::time::Instant;

/// The meter, and the sums that its rate depends on.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) r: SeatSeconds,
    last_time: Instant,
    /// Over all queues: seats in use and the seats of waiting requests.
    pub(super) seats_requested: i64,
    /// Queues with a waiting or an executing request.
    pub(super) active_queues: usize,
    /// The rate for these seats and active queues: in a level that is full neither changes for long, and a division
    /// is what costs most here.
    last_rate: (i64, usize, f64),
}

/// By how much the meter is wound back.
const R_DECREMENT: SeatSeconds = SeatSeconds::from_units(u64::MAX / 2);
/// Where the meter is wound back.
const R_HIGH: SeatSeconds = SeatSeconds::from_units(u64::MAX / 2 + u64::MAX / 4);

// === impl Progress ===

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        Self { r: SeatSeconds::ZERO, last_time: now, seats_requested: 0, active_queues: 0, last_rate: (0, 1, 0.0) }
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

// === impl QueueSet ===

impl<T> QueueSet<T> {
    /// Brings the meter up to now, with the state as it has been since the last event (FQ-12).
    #[inline]
    pub(super) fn synchronise(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        let elapsed = now - self.progress.last_time;
        self.progress.last_time = now;
        if elapsed != 0 && self.progress.active_queues > 0 {
            let rate = self.progress.rate(self.limit);
            self.progress.r += SeatSeconds::of(rate, elapsed);
            if self.progress.r >= R_HIGH {
                self.advance_epoch(effects);
            }
        }
    }

    /// Winds the meter back, and everything that is read off it (FQ-13).
    #[cold]
    fn advance_epoch(&mut self, effects: &mut impl Effects<T>) {
        let mut clean = true;
        let mut wind_back = |reading: &mut SeatSeconds| {
            clean &= *reading >= R_DECREMENT;
            *reading -= R_DECREMENT;
        };
        wind_back(&mut self.progress.r);
        for &slot in &self.order {
            let queue = &mut self.queues[slot as usize];
            if queue.is_active() {
                wind_back(&mut queue.next_r);
                queue.line.wind_back(&mut self.requests, &mut wind_back);
            } else {
                queue.next_r = SeatSeconds::ZERO;
            }
        }
        self.rebuild_ready();
        effects.epoch_advanced(clean);
    }

    /// Builds the index of the queues anew, after a change to all of them.
    pub(super) fn rebuild_ready(&mut self) {
        let queues = &self.queues;
        self.ready.rebuild(self.order.iter().map(|&slot| Queue::finish(&queues[slot as usize])));
    }
}
