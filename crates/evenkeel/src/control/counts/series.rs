//! `Series`: the counts of one flow schema in a level (OB-2 to OB-4).

use std::sync::Arc;

use evenkeel_api::v1::FlowDistinguisherMethod;

use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::Nanos;

use super::histogram::{Bounds, Histogram};

/// The numbers of one flow schema in one level.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) schema: Arc<str>,
    /// What tells its flows apart, as dumps show it.
    pub(crate) method: Option<FlowDistinguisherMethod>,
    pub(crate) numbers: Numbers,
}

/// The numbers themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    /// Rejected requests by [`Rejection`](evenkeel_engine::queue_set::Rejection).
    pub(crate) rejected: [u64; 5],
    pub(crate) dispatched: u64,
    pub(crate) blocked: u64,
    pub(crate) waiting: i64,
    pub(crate) waiting_seats: i64,
    pub(crate) executing: i64,
    pub(crate) executing_seats: i64,
    /// The waits of requests rejected on arrival, and those of all others.
    pub(crate) wait: [Histogram<13>; 2],
    /// The execution times of ordinary requests, and those of watches.
    pub(crate) execution: [Histogram<13>; 2],
    pub(crate) queue_length: Histogram<8>,
    pub(crate) seats: Histogram<8>,
    pub(crate) watches: Histogram<6>,
}

const MILLISECOND: i64 = 1_000_000;

/// The bounds of durations, which are observed in nanoseconds and shown in seconds.
pub(crate) const DURATIONS: Bounds<13> = Bounds {
    values: [
        0,
        5 * MILLISECOND,
        20 * MILLISECOND,
        50 * MILLISECOND,
        100 * MILLISECOND,
        200 * MILLISECOND,
        500 * MILLISECOND,
        1_000 * MILLISECOND,
        2_000 * MILLISECOND,
        5_000 * MILLISECOND,
        10_000 * MILLISECOND,
        15_000 * MILLISECOND,
        30_000 * MILLISECOND,
    ],
    per_unit: 1e9,
};
pub(crate) static QUEUE_LENGTHS: Bounds<8> = Bounds { values: [0, 10, 25, 50, 100, 250, 500, 1000], per_unit: 1.0 };
pub(crate) static SEATS: Bounds<8> = Bounds { values: [1, 2, 4, 8, 16, 32, 64, 100], per_unit: 1.0 };
pub(crate) static WATCHES: Bounds<6> = Bounds { values: [0, 1, 10, 100, 1000, 10000], per_unit: 1.0 };

// === impl Series ===

impl Series {
    pub(crate) fn new(schema: &str) -> Self {
        Self { schema: schema.into(), method: None, numbers: Numbers::new() }
    }

    /// Whether a request of the schema has ever come to the level: only then is there anything to show (OB-7).
    pub(crate) fn is_used(&self) -> bool {
        self.numbers.seats.count() > 0
    }
}

// === impl Numbers ===

impl Numbers {
    const fn new() -> Self {
        Self {
            rejected: [0; 5],
            dispatched: 0,
            blocked: 0,
            waiting: 0,
            waiting_seats: 0,
            executing: 0,
            executing_seats: 0,
            wait: [Histogram::new(); 2],
            execution: [Histogram::new(); 2],
            queue_length: Histogram::new(),
            seats: Histogram::new(),
            watches: Histogram::new(),
        }
    }

    /// A request starts, after it has waited for so long.
    #[inline]
    pub(crate) fn start(&mut self, seats: i64, waited: Nanos, is_exempt: bool) {
        self.dispatched += 1;
        self.executing += 1;
        self.executing_seats += seats;
        // In a level without a limit no waiting is counted (OB-4).
        if !is_exempt {
            self.wait[1].observe(&DURATIONS, waited);
        }
    }

    /// A request is rejected after it has waited for so long, and its wait belongs to the one histogram or to the other.
    pub(crate) fn reject(&mut self, reason: Rejection, waited: Nanos, histogram: usize) {
        if let Some(count) = self.rejected.get_mut(reason as usize) {
            *count += 1;
        }
        self.wait[histogram].observe(&DURATIONS, waited);
    }
}
