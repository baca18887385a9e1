//! `Terms`: the costs of the requests of a flow schema, and the rate of each of its flows (CO-2, CO-3, RL-1).

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
    /// The rate, as the object says it.
    pub rate: Rate,
    /// The rate as a limit to apply.
    pub limit: RateLimit,
}

// === impl Terms ===

impl Terms {
    /// The terms of a schema with these annotations; `None` if they say nothing.
    pub fn of(noted: &BTreeMap<String, String>) -> Option<Self> {
        let (cost, rate) = (annotations::cost(noted), annotations::rate(noted));
        let seats = annotations::learnt_seats(noted)
            .map(|learnt: LearntSeats| SeatRule::new(learnt.cost_per_seat, learnt.seats_max.unwrap_or(u32::MAX)));
        let says_nothing = seats.is_none() && rate.is_none() && cost.is_none();
        (!says_nothing).then(|| Self { cost, seats, rate: rate.map(FlowRate::new) })
    }

    /// Whether its requests have accounts. Charging by the time is the default, so a schema that says only that needs none; but no
    /// route of its requests says otherwise.
    pub fn needs_accounts(&self) -> bool {
        self.seats.is_some() || self.rate.is_some() || !matches!(self.cost, None | Some(CostUnit::Time))
    }

    /// The unit of cost that the schema's object names; `None` if it names none, so that routes decide.
    pub fn own_unit(&self) -> Option<CostUnit> {
        self.cost.clone().or_else(|| self.rate.and_then(|flow| flow.rate.unit.cost_unit()))
    }

    /// The unit of cost where no route says otherwise; `None` if nothing depends on costs.
    pub fn counts(&self) -> Option<CostUnit> {
        self.own_unit().or_else(|| self.seats.map(|_| CostUnit::Time))
    }

    /// Whether flows are charged by the cost: not where only a rate needs to know it, or where it is the time alone.
    pub fn charges(&self) -> bool {
        self.needs_accounts() && (self.cost.is_some() || self.seats.is_some())
    }
}

// === impl FlowRate ===

impl FlowRate {
    /// The rate with the limit that follows from it.
    pub fn new(rate: Rate) -> Self {
        let period = Nanos::try_from(rate.period.duration().as_nanos()).unwrap_or(SECOND);
        Self { rate, limit: RateLimit::new(rate.amount, period, rate.burst()) }
    }

    /// The part of the rate that a request of this expected cost takes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast stays within bounds")]
    pub fn taken_by(&self, expected: f64) -> u64 {
        match self.rate.unit {
            RateUnit::Requests => 1,
            RateUnit::Bytes | RateUnit::Tokens => expected.round() as u64,
        }
    }
}
