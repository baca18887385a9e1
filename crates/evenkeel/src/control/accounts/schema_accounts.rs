//! `SchemaAccounts`: the accounts of one flow schema: the expected cost of its requests, the seats and turns that follow from it,
//! and its rate.

use std::sync::Arc;

use evenkeel_api::annotations::{CostUnit, Excess, RateUnit};
use evenkeel_engine::cost::{ClassPlace, CostClass, Expectation, SeatRule, Settlement, route_key, unit_key};
use evenkeel_engine::rate::{OverRate, RatePart, RatePassage, RateTicket, Standing};
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Attributes, FlowRate, Schema, WorkEstimate};
use http::HeaderName;

use super::ledgers::{CostLedger, RateLedger};
use super::request_account::Taken;

/// The accounts of a flow schema under one set of objects, for requests whose costs are counted in one unit.
#[derive(Debug)]
pub(crate) struct SchemaAccounts {
    /// The unit of cost, if anything depends on costs.
    pub(crate) unit: Option<CostUnit>,
    /// The response header that costs are read from, if there is one.
    pub(crate) header: Option<HeaderName>,
    /// The seats of a request by its cost, if that says so.
    pub(crate) seat_rule: Option<SeatRule>,
    /// How much each flow may take.
    pub(crate) rate: Option<FlowRate>,
    charges: bool,
    /// The hash of its name and its unit.
    key: u64,
    rates: Option<Arc<RateLedger>>,
    costs: Option<Arc<CostLedger>>,
}

/// When a request may go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    pub(crate) at: Instant,
    /// Set if others share the rate: whoever waits has to look again then.
    pub(crate) ticket: Option<RateTicket>,
}

// === impl SchemaAccounts ===

impl SchemaAccounts {
    pub(super) fn new(
        schema: &Schema,
        rates: Option<Arc<RateLedger>>,
        costs: Option<(CostUnit, Arc<CostLedger>)>,
    ) -> Self {
        let terms = schema.terms.as_deref();
        let (unit, costs) = costs.unzip();
        let header = match &unit {
            Some(CostUnit::Header { name, .. }) => HeaderName::try_from(name).ok(),
            _ => None,
        };
        Self {
            header,
            seat_rule: terms.and_then(|terms| terms.seats),
            rate: terms.and_then(|terms| terms.rate),
            // A unit that only a rate needs to know is not what flows are charged by.
            charges: terms.is_none_or(|terms| terms.charges() || terms.counts() != unit),
            key: schema.key() ^ unit.as_ref().map_or(0, unit_key),
            unit,
            rates,
            costs,
        }
    }

    /// The class of a request. `route`: the number of its route, if it is known by one; otherwise its method and its path say.
    pub(crate) fn class_of(&self, attributes: Attributes<'_>, route: Option<u64>, flow: u64) -> CostClass {
        CostClass::new(self.key, route.unwrap_or_else(|| route_key(attributes.request)), flow)
    }

    /// What requests of a class are expected to cost, if anything is known of them.
    pub(crate) fn expected(&self, class: &CostClass) -> Option<Expectation> {
        self.costs.as_ref()?.expected(class)
    }

    /// What is expected of a class, for explanations: it does not count as a use of the class.
    pub(crate) fn peek(&self, class: &CostClass) -> Option<Expectation> {
        self.costs.as_ref()?.peek(class)
    }

    /// The work of a request that is expected to cost so much; `otherwise` if that does not say.
    pub(crate) fn work_of(&self, expected: Option<f64>, otherwise: impl FnOnce() -> WorkEstimate) -> WorkEstimate {
        match self.seat_rule {
            Some(rule) => WorkEstimate::seats(expected.map_or(1, |cost| rule.seats(cost))),
            None => otherwise(),
        }
    }

    /// The seat-nanoseconds that a flow is charged for each unit, if it is charged by the cost and that is known.
    pub(crate) fn price(&self) -> Option<f64> {
        self.costs.as_ref().filter(|_| self.charges)?.per_unit()
    }

    /// Notes a request that has ended, with its class and the place of that, and its expected cost. Its actual cost is learnt if it was not
    /// cut off.
    pub(crate) fn note_end(
        &self,
        class: (&CostClass, Option<ClassPlace>),
        expected: f64,
        ended: &Settlement,
        teaches: bool,
    ) {
        if let Some(costs) = &self.costs {
            costs.note(ended, expected, teaches.then_some(class), self.charges);
        }
    }

    /// The rates of its flows, if they have any.
    pub(crate) fn rates(&self) -> Option<&RateLedger> {
        self.rates.as_deref()
    }

    /// A request of a flow takes its part of the rate: tells when it may go on.
    pub(crate) fn take(&self, flow: u64, cost: u64, now: Instant, latest: Instant) -> Result<Passed, OverRate> {
        let (Some(FlowRate { rate, limit, .. }), Some(ledger)) = (&self.rate, &self.rates) else {
            return Ok(Passed { at: now, ticket: None });
        };
        let latest = if rate.excess == Excess::Reject { now } else { latest };
        let RatePassage { at, ticket, .. } = ledger.stamps.take(limit, flow, cost, now, latest)?;
        Ok(Passed { at, ticket })
    }

    /// When a request that waits for its part of a rate should look again; `None`: it may go on.
    pub(crate) fn look_again(&self, flow: u64, ticket: &RateTicket, now: Instant) -> Option<Instant> {
        let (Some(FlowRate { limit, .. }), Some(ledger)) = (&self.rate, &self.rates) else { return None };
        ledger.stamps.look_again(limit, flow, ticket, now)
    }

    /// A request with that ticket waits no longer.
    pub(crate) fn end_wait(&self, flow: u64, ticket: &RateTicket) {
        if let Some(ledger) = &self.rates {
            ledger.stamps.end_wait(flow, ticket);
        }
    }

    /// A request took too little of the rate by that much, or too much if the number is below zero.
    pub(crate) fn correct(&self, flow: u64, more: i64, now: Instant) {
        if let (Some(FlowRate { limit, .. }), Some(ledger)) = (&self.rate, &self.rates) {
            ledger.stamps.correct(limit, flow, more, now);
        }
    }

    /// A request that got nowhere gives back what it took of the rate.
    pub(crate) fn give_back(&self, taken: Taken, now: Instant) {
        if taken.amount > 0 {
            self.correct(taken.flow, -i64::try_from(taken.amount).unwrap_or(i64::MAX), now);
        }
    }

    /// How much of its rate a flow has left, if it has a rate.
    pub(crate) fn standing(&self, flow: u64, now: Instant) -> Option<(FlowRate, Standing)> {
        let rate = self.rate?;
        Some((rate, self.rates.as_ref()?.stamps.standing(&rate.limit, flow, now)))
    }

    /// When a request of that cost would pass if it came now, and the part of its rate that its flow has here.
    pub(crate) fn would_pass(&self, flow: u64, cost: u64, now: Instant) -> (Instant, RatePart) {
        let (Some(FlowRate { limit, .. }), Some(ledger)) = (&self.rate, &self.rates) else {
            return (now, RatePart::WHOLE);
        };
        (ledger.stamps.would_pass(limit, flow, cost, now), ledger.stamps.part(flow))
    }

    /// Whether the rate is corrected when a request has ended (RL-3).
    pub(crate) fn corrects_rate(&self) -> bool {
        self.rate.is_some_and(|flow| flow.rate.unit != RateUnit::Requests)
    }
}
