//! `ExplainedCost`: the expected cost of a request and the rate of its flow, for explanations (CO-6).

use std::sync::Arc;

use evenkeel_api::annotations::CostUnit;
use evenkeel_engine::cost::{ClassWidth, Expectation};
use evenkeel_engine::rate::RatePart;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Attributes, Classification, WorkEstimate};

use super::ExplainedRate;
use crate::control::accounts::SchemaAccounts;

/// The expected cost of a request.
pub(super) struct ExplainedCost<'a> {
    accounts: &'a SchemaAccounts,
    expectation: Option<Expectation>,
    flow: u64,
}

// === impl ExplainedCost ===

impl<'a> ExplainedCost<'a> {
    pub(super) fn new(
        accounts: &'a Arc<SchemaAccounts>,
        class: &Classification<'_>,
        attributes: Attributes<'_>,
        route: Option<u64>,
    ) -> Self {
        let flow = class.schema.flow_key(attributes);
        let class = || accounts.class_of(attributes, route, flow);
        let expectation = accounts.unit.as_ref().and_then(|_| accounts.peek(&class()));
        Self { accounts, expectation, flow }
    }

    /// The seats of the request, if they are learnt.
    pub(super) fn work(&self) -> Option<WorkEstimate> {
        let rule = self.accounts.seat_rule?;
        Some(WorkEstimate::seats(self.expectation.map_or(1, |expected| rule.seats(expected.cost))))
    }

    /// Where they come from: "expected 412 tokens, learnt from 1204 requests of its flow and route".
    pub(super) fn rule(&self) -> Option<String> {
        let (rule, unit) = (self.accounts.seat_rule?, self.accounts.unit.as_ref().map_or("units", CostUnit::noun));
        let per_seat = rule.cost_per_seat();
        let Some(Expectation { cost, requests, width, .. }) = self.expectation else {
            return Some(format!("nothing has been learnt yet; {per_seat} {unit} will be one seat"));
        };
        let width = match width {
            ClassWidth::Flow => "its flow on its route",
            ClassWidth::Route => "its route",
            ClassWidth::Schema => "its flow schema",
        };
        let cost = if cost < 10.0 { format!("{cost:.3}") } else { format!("{cost:.0}") };
        let plural = if requests == 1 { "request" } else { "requests" };
        Some(format!(
            "expected {cost} {unit}, learnt from {requests} {plural} of {width}; {per_seat} {unit} are one seat"
        ))
    }

    /// The rate of its flow.
    pub(super) fn rate(&self, now: Instant) -> Option<ExplainedRate> {
        let (flow_rate, standing) = self.accounts.standing(self.flow, now)?;
        let taken = flow_rate.taken_by(self.expectation.map_or(0.0, |expected| expected.cost));
        let (passes, part) = self.accounts.would_pass(self.flow, taken, now);
        let part_percent = (part != RatePart::WHOLE).then(|| part.as_percent());
        let (rate, left) = (flow_rate.rate.to_string(), standing.left);
        Some(ExplainedRate { rate, left, taken, wait_ns: passes - now, part_percent })
    }
}
