//! The time stamps of all flows of a schema, behind locks that threads seldom share.

use evenkeel_engine::rate::{FlowStamps, OverRate, RateLimit, Standing};
use evenkeel_engine::time::Instant;

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The stamps of the flows of one schema. A table that grows is copied while its lock is held: several small ones are never copied for
/// long.
#[derive(Debug)]
pub(crate) struct FlowRates(Box<[Mutex<FlowStamps>]>);

/// How many tables there are.
const TABLES: usize = 64;
/// How many flows are remembered that are not at rest; sixteen bytes each, and at most 32 MB for all of them.
const FLOWS_MAX: usize = 1 << 20;

// === impl FlowRates ===

impl FlowRates {
    pub(crate) fn take(
        &self,
        limit: &RateLimit,
        flow: u64,
        cost: u64,
        now: Instant,
        latest: Instant,
    ) -> Result<Instant, OverRate> {
        self.table(flow).take(limit, flow, cost, now, latest)
    }

    /// A request took too little of the rate by that much, or too much if the number is below zero.
    pub(crate) fn correct(&self, limit: &RateLimit, flow: u64, more: i64, now: Instant) {
        self.table(flow).correct(limit, flow, more, now);
    }

    pub(crate) fn standing(&self, limit: &RateLimit, flow: u64, now: Instant) -> Standing {
        self.table(flow).standing(limit, flow, now)
    }

    fn table(&self, flow: u64) -> MutexGuard<'_, FlowStamps> {
        // The tables themselves go by the low bits.
        let index = usize::try_from(flow >> 58).unwrap_or(0) % TABLES;
        self.0[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for FlowRates {
    fn default() -> Self {
        Self((0..TABLES).map(|_| Mutex::new(FlowStamps::new(FLOWS_MAX / TABLES))).collect())
    }
}
