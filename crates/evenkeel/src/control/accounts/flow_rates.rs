//! The time stamps of all flows of a schema, behind locks that threads seldom share.

#[cfg(feature = "fleet")]
use std::collections::BTreeMap;

use evenkeel_engine::rate::{OverRate, RateLimit, RatePart, RatePassage, RateTicket, SharedStamps, Standing};
use evenkeel_engine::time::Instant;

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The stamps of the flows of one schema. A table that grows is copied while its lock is held: several small ones are never copied for
/// long.
#[derive(Debug)]
pub(crate) struct FlowRates(Box<[Mutex<SharedStamps>]>);

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
    ) -> Result<RatePassage, OverRate> {
        self.table(flow).take(limit, flow, cost, now, latest)
    }

    /// A request took too little of the rate by that much, or too much if the number is below zero.
    pub(crate) fn correct(&self, limit: &RateLimit, flow: u64, more: i64, now: Instant) {
        self.table(flow).correct(limit, flow, more, now);
    }

    pub(crate) fn standing(&self, limit: &RateLimit, flow: u64, now: Instant) -> Standing {
        self.table(flow).standing(limit, flow, now)
    }

    /// When a request that waits with this ticket should look again; `None`: it may pass.
    pub(crate) fn look_again(
        &self,
        limit: &RateLimit,
        flow: u64,
        ticket: &RateTicket,
        now: Instant,
    ) -> Option<Instant> {
        self.table(flow).look_again(limit, flow, ticket, now)
    }

    pub(crate) fn end_wait(&self, flow: u64, ticket: &RateTicket) {
        self.table(flow).end_wait(flow, ticket);
    }

    pub(crate) fn leave_wait(&self, limit: &RateLimit, flow: u64, cost: u64, ticket: &RateTicket, now: Instant) {
        self.table(flow).leave_wait(limit, flow, cost, ticket, now);
    }

    /// When a request of that cost would pass if it came now.
    pub(crate) fn would_pass(&self, limit: &RateLimit, flow: u64, cost: u64, now: Instant) -> Instant {
        self.table(flow).would_pass(limit, flow, cost, now)
    }

    /// The part of its rate that a flow has here.
    pub(crate) fn part(&self, flow: u64) -> RatePart {
        self.table(flow).part(flow)
    }

    /// The demand of flows whose rates other instances may share. Tells whether these are all for which an equal part is too little.
    #[cfg(feature = "fleet")]
    pub(crate) fn demands(&self, now: Instant) -> (Vec<(u64, u64)>, bool) {
        let (mut demands, mut is_complete) = (Vec::new(), true);
        for table in &self.0 {
            is_complete &= lock(table).demands(now, &mut demands);
        }
        (demands, is_complete)
    }

    /// So many instances have requests of the flows, and of these flows this one has these parts; without parts, it cannot hear the others.
    #[cfg(feature = "fleet")]
    pub(crate) fn share(&self, instances: usize, parts: Option<&BTreeMap<u64, RatePart>>, now: Instant) {
        let mut by_table = vec![BTreeMap::new(); TABLES];
        for (flow, part) in parts.into_iter().flatten() {
            by_table[table_of(*flow)].insert(*flow, *part);
        }
        for (table, of_table) in self.0.iter().zip(by_table) {
            let mut stamps = lock(table);
            stamps.share(instances, now);
            match parts {
                Some(_) => stamps.set_parts(&of_table, now),
                None => stamps.keep_apart(now),
            }
        }
    }

    fn table(&self, flow: u64) -> MutexGuard<'_, SharedStamps> {
        lock(&self.0[table_of(flow)])
    }
}

fn table_of(flow: u64) -> usize {
    // The tables themselves go by the low bits.
    usize::try_from(flow >> 58).unwrap_or(0) % TABLES
}

fn lock(table: &Mutex<SharedStamps>) -> MutexGuard<'_, SharedStamps> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for FlowRates {
    fn default() -> Self {
        Self((0..TABLES).map(|_| Mutex::new(SharedStamps::new(FLOWS_MAX / TABLES))).collect())
    }
}
