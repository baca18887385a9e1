//! `Core`: the part of a queue set that does not depend on its discipline: seats, requests and counters.
//!
//! Events are methods of [`Core`] that get the order of turns as an argument: the queue set chooses it once for each event, and the
//! code of either discipline is what it would be alone.

use super::requests::Requests;
use super::seats::Seats;
use super::turn_order::TurnOrder;
use super::{Effects, Mode, QueueSetConfig};
use crate::borrowing::DemandIntegrator;
use crate::time::Instant;

/// The seats and the requests of a queue set. `T` is what the caller keeps with each request.
#[derive(Debug)]
pub(super) struct Core<T> {
    pub(super) mode: Mode,
    pub(super) seats: Seats,
    pub(super) requests: Requests<T>,
    pub(super) waiting: usize,
    /// Stays too large for ever once a request was narrowed at its start (FQ-24).
    pub(super) seats_waiting: i64,
    pub(super) demand: DemandIntegrator,
    pub(super) totals: Totals,
}

/// How many requests there have been.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) dispatched: u64,
    /// Of these, the requests that had waited.
    pub(super) dispatched_late: u64,
    pub(super) rejected: u64,
    pub(super) cancelled: u64,
}

// === impl Core ===

impl<T> Core<T> {
    pub(super) fn new(config: QueueSetConfig, now: Instant) -> Self {
        Self {
            mode: config.mode,
            seats: Seats::new(config.concurrency_limit),
            requests: Requests::new(),
            waiting: 0,
            seats_waiting: 0,
            demand: DemandIntegrator::new(now),
            totals: Totals::default(),
        }
    }

    /// Brings the virtual time of the discipline up to now.
    #[inline]
    pub(super) fn advance(&mut self, order: &mut impl TurnOrder, now: Instant, effects: &mut impl Effects<T>) {
        if let Some(is_clean) = order.advance(now, self.seats.limit, &mut self.requests) {
            effects.epoch_advanced(is_clean);
        }
    }

    /// Tells the demand what is in use and what is waited for (FQ-39).
    #[inline]
    pub(super) fn signal_demand(&mut self, now: Instant) {
        self.demand.set(now, self.seats.in_use + self.seats_waiting);
    }
}
