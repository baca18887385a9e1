//! The parts of a flow's rate that the instances of a fleet have (RL-6).

use crate::fleet_division::proportional;

/// A part of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RatePart(u32);

/// What an instance says of its demand for the rate of a flow.
///
/// Not `#[non_exhaustive]`: callers make it, and have to know every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateDemand {
    /// The demand is known: so much, in a unit that is the same for all instances.
    Known(u64),
    /// The demand is not known: the instance has more flows than it can list, or cannot be understood.
    Unknown,
}

/// The whole, in the units of a part: equal parts of up to sixteen are whole numbers.
const WHOLE: u32 = 720_720;

/// No demand counts for more, so that sums do not overflow, whatever an instance publishes.
const DEMAND_MAX: u64 = 1 << 40;

/// The part of the rate that each instance gets, in the order of the instances: in proportion to its demand.
///
/// A pure function of what all publish, in whole numbers: all of them compute it, and get the same. The parts add up to the whole at
/// most. Who has the only demand has the whole rate; an instance whose demand is not known has an equal part; and if nobody has any
/// demand, the parts are equal.
///
/// ```
/// use evenkeel_engine::rate::{RateDemand, RatePart, rate_parts};
///
/// let parts = rate_parts(&[RateDemand::Known(90), RateDemand::Known(10), RateDemand::Known(0)]);
/// assert_eq!(parts.iter().map(|part| (part.as_f64() * 100.0).round()).collect::<Vec<_>>(), [90.0, 10.0, 0.0]);
/// assert_eq!(rate_parts(&[RateDemand::Known(1), RateDemand::Known(0)])[0], RatePart::WHOLE);
/// ```
pub fn rate_parts(demands: &[RateDemand]) -> Vec<RatePart> {
    let equal = RatePart::one_of(demands.len()).0;
    let unknown = demands.iter().filter(|demand| **demand == RateDemand::Unknown).count() as u64;
    let left = u64::from(WHOLE) - unknown * u64::from(equal);
    let is_any = demands.iter().any(|demand| matches!(demand, RateDemand::Known(1..)));
    let weight = |demand: &RateDemand| match demand {
        RateDemand::Known(demand) if is_any => (*demand).min(DEMAND_MAX),
        RateDemand::Known(_) => 1,
        RateDemand::Unknown => 0,
    };
    let weights: Vec<u64> = demands.iter().map(weight).collect();
    let parts = proportional(left, &weights);
    let part = |(demand, part): (&RateDemand, u64)| match demand {
        // No part is greater than the whole.
        RateDemand::Known(_) => RatePart(u32::try_from(part).unwrap_or(WHOLE)),
        RateDemand::Unknown => RatePart(equal),
    };
    demands.iter().zip(parts).map(part).collect()
}

// === impl RatePart ===

impl RatePart {
    /// All of it.
    pub const WHOLE: Self = Self(WHOLE);
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// The part of one of so many that all have the same.
    pub fn one_of(instances: usize) -> Self {
        Self(WHOLE / u32::try_from(instances).unwrap_or(WHOLE).clamp(1, WHOLE))
    }

    /// Whether it is nothing.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The part as a fraction.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// The part in percent, rounded.
    pub fn as_percent(self) -> u32 {
        (self.0 * 100 + WHOLE / 2) / WHOLE
    }

    /// This part of a span or an amount, rounded down.
    pub(super) fn of(self, amount: i64) -> i64 {
        if self == Self::WHOLE {
            return amount;
        }
        let part = i128::from(amount) * i128::from(self.0) / i128::from(WHOLE);
        i64::try_from(part).unwrap_or(amount)
    }

    /// The span of which that one is this part, rounded up; `None` if the part is nothing.
    pub(super) fn whole_of(self, span: i64) -> Option<i64> {
        if self == Self::WHOLE {
            return Some(span);
        }
        let (product, part) = (i128::from(span) * i128::from(WHOLE), i128::from(self.0));
        (part > 0).then(|| i64::try_from((product + part - 1).div_euclid(part)).unwrap_or(i64::MAX))
    }
}
