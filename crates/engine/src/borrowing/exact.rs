//! Dividing seats so that the levels never have more of them than the server.

use evenkeel_api::Preset;

use super::{AdjustedLevel, Adjustment, DemandStatistics, DivideSeats, FaithfulDivision, LevelDemand};
use crate::limits::{LevelLimits, LevelShare, exact_limits, nominal_sum};
use crate::seat_rounding;

/// Divides seats by the same rules as Kubernetes, but never more than there are.
///
/// Kubernetes rounds each level's seats for itself, so that a server of 8 seats may run 11 requests. Here the levels' own
/// seats add up to the server's, and so do those that they may use after each adjustment. Every level with shares has a seat of
/// its own, and keeps one after each adjustment whatever it lends; one without shares starts nothing (LB-2a).
///
/// Seats that a level has to give back are its own again only when the requests on them have ended: until then more may run.
#[derive(Debug, Clone, Default)]
pub struct ExactDivision {
    faithful: FaithfulDivision,
    levels: Vec<LevelDemand>,
}

/// A way to divide seats that is chosen when the program runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SeatDivision {
    /// Seats are divided as Kubernetes does it.
    Faithful(FaithfulDivision),
    /// Never more seats than there are.
    Exact(ExactDivision),
}

// === impl ExactDivision ===

impl DivideSeats for ExactDivision {
    fn divide(&mut self, levels: &[LevelDemand], adjustment: &mut Adjustment) {
        // Seats that exempt requests use are not taken from the other levels: one health check would cost them a seat for ten
        // seconds.
        let unused = DemandStatistics::default();
        self.levels.clear();
        let without_use = |level: &LevelDemand| LevelDemand { statistics: unused, ..*level };
        self.levels.extend(levels.iter().map(|level| if level.is_exempt { without_use(level) } else { *level }));
        self.faithful.divide(&self.levels, adjustment);
        let total = nominal_sum(levels.iter().map(|level| &level.limits));
        let (exempt, mut limited): (Vec<_>, Vec<_>) =
            levels.iter().zip(&mut adjustment.levels).partition(|(level, _)| level.is_exempt);
        for (level, adjusted) in &mut limited {
            // Where the rules find no solution, limits stay as they were (CL-17), for a configuration that may be gone.
            let least = least(level);
            adjusted.current = adjusted.current.clamp(least, level.limits.max.max(least));
        }
        take_back(&mut limited, total);
        hand_out(&mut limited, total.saturating_sub(seats_of(&exempt)));
    }

    fn limits(&self, levels: &[LevelShare<'_>], server_limit: i64) -> Vec<LevelLimits> {
        exact_limits(levels, server_limit)
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// A level and what it gets.
type Adjusting<'a> = (&'a LevelDemand, &'a mut AdjustedLevel);

/// The least that a level has after a division. A level that lends all its seats keeps one: without any it could start nothing
/// until the next division, and the division would not see that it wants seats back.
fn least(level: &LevelDemand) -> i64 {
    level.limits.min.max(level.limits.nominal.clamp(0, 1))
}

fn seats_of(levels: &[Adjusting<'_>]) -> i64 {
    levels.iter().fold(0, |sum, (_, adjusted)| sum.saturating_add(adjusted.current))
}

/// Gives the seats that rounding down has left over to the levels that lack most, one each.
fn hand_out(limited: &mut [Adjusting<'_>], total: i64) {
    let left_over = usize::try_from(total.saturating_sub(seats_of(limited))).unwrap_or(0);
    let lack =
        |(_, adjusted): &Adjusting<'_>| adjusted.target.unwrap_or_default() - seat_rounding::to_f64(adjusted.current);
    limited.sort_by(|one, other| lack(other).total_cmp(&lack(one)));
    let can_have_more = limited.iter_mut().filter(|(level, adjusted)| adjusted.current < level.limits.max);
    can_have_more.take(left_over).for_each(|(_, adjusted)| adjusted.current += 1);
}

/// Takes what is above the total from the levels, in proportion to what each has above its minimum.
fn take_back(limited: &mut [Adjusting<'_>], total: i64) {
    let mut excess = i128::from(seats_of(limited)) - i128::from(total);
    if excess <= 0 {
        return;
    }
    let spare = |(level, adjusted): &Adjusting<'_>| adjusted.current - least(level);
    let all_spare: i128 = limited.iter().map(|level| i128::from(spare(level))).sum();
    limited.sort_by_key(|level| std::cmp::Reverse(spare(level)));
    let to_take = excess;
    for level in limited {
        let spare = i128::from(spare(level));
        // Rounded up, so that the parts are enough together.
        let part = if all_spare > 0 { (to_take * spare + all_spare - 1) / all_spare } else { 0 };
        let taken = part.min(spare).min(excess);
        level.1.current -= i64::try_from(taken).unwrap_or(0);
        excess -= taken;
    }
}

// === impl SeatDivision ===

impl DivideSeats for SeatDivision {
    fn divide(&mut self, levels: &[LevelDemand], adjustment: &mut Adjustment) {
        match self {
            Self::Faithful(division) => division.divide(levels, adjustment),
            Self::Exact(division) => division.divide(levels, adjustment),
        }
    }

    fn limits(&self, levels: &[LevelShare<'_>], server_limit: i64) -> Vec<LevelLimits> {
        match self {
            Self::Faithful(division) => division.limits(levels, server_limit),
            Self::Exact(division) => division.limits(levels, server_limit),
        }
    }

    fn is_exact(&self) -> bool {
        match self {
            Self::Faithful(division) => division.is_exact(),
            Self::Exact(division) => division.is_exact(),
        }
    }
}

impl From<Preset> for SeatDivision {
    fn from(preset: Preset) -> Self {
        match preset {
            Preset::Plain | Preset::Llm => Self::Exact(ExactDivision::default()),
            Preset::Kubernetes => Self::Faithful(FaithfulDivision::default()),
        }
    }
}
