//! `Terms`: what the requests of a flow schema cost, and how much each of its flows may take (CO-2, CO-3, RL-1).

use std::collections::BTreeMap;

use evenkeel_api::annotations::{self, CostUnit, LearntSeats, Rate, RateUnit};

use crate::cost::SeatRule;
use crate::rate::RateLimit;
use crate::time::{Nanos, SECOND};

/// What the annotations of a flow schema say of costs and rates.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Terms {
    /// What flows are charged by, if not by the time alone.
    pub cost: Option<CostUnit>,
    /// The seats of a request by its cost, if that says so.
    pub seats: Option<SeatRule>,
    /// How much each flow may take.
    pub rate: Option<FlowRate>,
}

/// How much each flow of a schema may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowRate {
    /// As the object says it.
    pub rate: Rate,
    /// The same to reckon with.
    pub limit: RateLimit,
}

// === impl Terms ===

impl Terms {
    /// The terms of a schema with these annotations; `None` if they say nothing.
    pub fn of(noted: &BTreeMap<String, String>) -> Option<Self> {
        let (cost, rate) = (annotations::cost(noted), annotations::rate(noted));
        let seats = annotations::learnt_seats(noted)
            .map(|learnt: LearntSeats| SeatRule::new(learnt.cost_per_seat, learnt.seats_max.unwrap_or(u32::MAX)));
        // To be charged by the time is what happens anyway.
        let is_usual = seats.is_none() && rate.is_none() && matches!(cost, None | Some(CostUnit::Time));
        (!is_usual).then(|| Self { cost, seats, rate: rate.map(FlowRate::new) })
    }

    /// What the objects say that costs are counted in: those of a schema that does not say it are counted as routes say.
    pub fn own_unit(&self) -> Option<CostUnit> {
        self.cost.clone().or_else(|| self.rate.and_then(|flow| flow.rate.unit.cost_unit()))
    }

    /// What costs are counted in, if anything depends on them and no route says otherwise.
    pub fn counts(&self) -> Option<CostUnit> {
        self.own_unit().or_else(|| self.seats.map(|_| CostUnit::Time))
    }

    /// Whether flows are charged by the cost: not where only a rate needs to know it.
    pub fn charges(&self) -> bool {
        self.cost.is_some() || self.seats.is_some()
    }
}

// === impl FlowRate ===

impl FlowRate {
    /// The rate to reckon with.
    pub fn new(rate: Rate) -> Self {
        let period = Nanos::try_from(rate.period.duration().as_nanos()).unwrap_or(SECOND);
        Self { rate, limit: RateLimit::new(rate.amount, period, rate.burst()) }
    }

    /// What a request takes of the rate that is expected to cost so much.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast stays within bounds")]
    pub fn taken_by(&self, expected: f64) -> u64 {
        match self.rate.unit {
            RateUnit::Requests => 1,
            RateUnit::Bytes | RateUnit::Tokens => expected.round() as u64,
        }
    }
}
