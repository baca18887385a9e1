//! How many seats a priority level has of its own, lends and may borrow (CL-2 to CL-7, CL-19).
//!
//! These limits change only with the configuration. How many seats a level may use at a given moment also depends on
//! what the levels ask for: see [`borrowing`](crate::borrowing).
//!
//! ```
//! use evenkeel_api::v1::PriorityLevelConfiguration;
//! use evenkeel_engine::limits::{LevelLimits, ShareSum, nominal_sum};
//!
//! let levels = [
//!     PriorityLevelConfiguration::builder("batch").limited(|l| l.shares(10).reject()).build(),
//!     PriorityLevelConfiguration::builder("people").limited(|l| l.shares(30).lendable_percent(50).reject()).build(),
//! ];
//! let shares = ShareSum::of(levels.iter().map(|level| &level.spec));
//! let limits = levels.map(|level| LevelLimits::new(&level.spec, 600, shares));
//! assert_eq!((limits[0].min, limits[0].nominal, limits[0].max), (150, 150, 750));
//! assert_eq!((limits[1].min, limits[1].nominal, limits[1].max), (225, 450, 1050));
//! assert_eq!(nominal_sum(&limits), 600);
//! ```

mod exact;

pub use exact::exact_limits;

use evenkeel_api::v1::{
    CONCURRENCY_SHARES_DEFAULT, EXEMPT_CONCURRENCY_SHARES_DEFAULT, LENDABLE_PERCENT_DEFAULT,
    PriorityLevelConfigurationSpec, PriorityLevelEnablement,
};

use crate::seat_rounding;

/// The shares of all levels in play, added up (CL-2).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct ShareSum(f64);

/// The limits that follow from a level's specification and its share of the server's seats.
///
/// No number is out of range for any specification: what would be too large stops at the largest number.
///
/// Not `#[non_exhaustive]`: tests of a division make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LevelLimits {
    /// The seats that the level has of its own (CL-3).
    pub nominal: i64,
    /// How many of its own seats others may borrow (CL-4).
    pub lendable: i64,
    /// How many seats it may borrow from others (CL-5).
    pub borrowing: i64,
    /// The seats that nobody can take from it (CL-6).
    pub min: i64,
    /// The seats that it can have at most (CL-6).
    pub max: i64,
}

/// A level that takes part when the server's seats are shared out.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy)]
pub struct LevelShare<'a> {
    /// What its object says.
    pub spec: &'a PriorityLevelConfigurationSpec,
    /// Whether no request can get there, so that seats would be wasted on it. Kubernetes does not ask.
    pub is_unreachable: bool,
}

/// The limits of levels as Kubernetes has them, in the same order (CC-16).
pub fn faithful_limits(levels: &[LevelShare<'_>], server_limit: i64) -> Vec<LevelLimits> {
    let all = ShareSum::of(levels.iter().map(|level| level.spec));
    levels.iter().map(|level| LevelLimits::new(level.spec, server_limit, all)).collect()
}

/// The seats that all levels together have of their own: `NominalCLSum` (CL-6).
///
/// Every level's share is rounded up, so this may be a little more than the server has.
pub fn nominal_sum<'a>(levels: impl IntoIterator<Item = &'a LevelLimits>) -> i64 {
    levels.into_iter().fold(0, |sum, level| sum.saturating_add(level.nominal))
}

/// The denominator of the ratio of seats in use that metrics show (CL-19).
///
/// ```
/// use evenkeel_engine::limits::ratio_denominator;
///
/// assert_eq!(ratio_denominator(30, 600), 30);
/// assert_eq!(ratio_denominator(0, 600), 60);
/// assert_eq!(ratio_denominator(0, 4), 1);
/// ```
pub fn ratio_denominator(current: i64, server_limit: i64) -> i64 {
    if current > 0 { current } else { seat_rounding::round(seat_rounding::to_f64(server_limit) / 10.0).max(1) }
}

/// The shares that a level asks for (CL-2).
pub fn shares(spec: &PriorityLevelConfigurationSpec) -> i32 {
    if is_exempt(spec) {
        let asked = spec.exempt.as_ref().and_then(|exempt| exempt.nominal_concurrency_shares);
        asked.unwrap_or(EXEMPT_CONCURRENCY_SHARES_DEFAULT)
    } else {
        let asked = spec.limited.as_ref().and_then(|limited| limited.nominal_concurrency_shares);
        asked.unwrap_or(CONCURRENCY_SHARES_DEFAULT)
    }
}

fn is_exempt(spec: &PriorityLevelConfigurationSpec) -> bool {
    spec.enablement == PriorityLevelEnablement::Exempt
}

fn lendable_percent(spec: &PriorityLevelConfigurationSpec) -> i32 {
    let asked = if is_exempt(spec) {
        spec.exempt.as_ref().and_then(|exempt| exempt.lendable_percent)
    } else {
        spec.limited.as_ref().and_then(|limited| limited.lendable_percent)
    };
    asked.unwrap_or(LENDABLE_PERCENT_DEFAULT)
}

/// An exempt level never limits what it borrows (CL-5).
fn borrowing_limit_percent(spec: &PriorityLevelConfigurationSpec) -> Option<i32> {
    spec.limited.as_ref().filter(|_| !is_exempt(spec)).and_then(|limited| limited.borrowing_limit_percent)
}

// === impl ShareSum ===

impl ShareSum {
    /// The shares of these levels: all that are in play, exempt and quiescing ones included.
    ///
    /// The rule is ascending byte order of names (CV-8). Shares are whole numbers, which binary64 adds up exactly, so
    /// any other order gives the same sum.
    pub fn of<'a>(levels: impl IntoIterator<Item = &'a PriorityLevelConfigurationSpec>) -> Self {
        Self(levels.into_iter().fold(0.0, |sum, spec| sum + f64::from(shares(spec))))
    }

    /// The sum as a number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

// === impl LevelLimits ===

impl LevelLimits {
    /// The limits of one of the levels whose shares were added up, on a server with that many seats.
    pub fn new(spec: &PriorityLevelConfigurationSpec, server_limit: i64, all: ShareSum) -> Self {
        let nominal = nominal(server_limit, shares(spec), all);
        let lendable = percent_of(nominal, lendable_percent(spec));
        let borrowing = borrowing_limit_percent(spec).map_or(server_limit, |percent| percent_of(nominal, percent));
        Self::of(nominal, lendable, borrowing)
    }

    fn of(nominal: i64, lendable: i64, borrowing: i64) -> Self {
        Self {
            nominal,
            lendable,
            borrowing,
            min: nominal.saturating_sub(lendable),
            max: nominal.saturating_add(borrowing),
        }
    }

    /// The seats of a new level until the adjustment that ends every digest (CL-7).
    ///
    /// These limits last only if that adjustment finds no way to divide the seats (CL-17).
    pub const fn provisional(&self) -> i64 {
        self.nominal.saturating_sub(self.lendable / 2)
    }
}

fn nominal(server_limit: i64, shares: i32, all: ShareSum) -> i64 {
    // No level has shares: CL-3 asks for this guard.
    if all.0.abs() < 1.0 {
        return 0;
    }
    seat_rounding::round_up((seat_rounding::to_f64(server_limit) * f64::from(shares)) / all.0)
}

fn percent_of(nominal: i64, percent: i32) -> i64 {
    seat_rounding::round((seat_rounding::to_f64(nominal) * f64::from(percent)) / 100.0)
}

#[cfg(test)]
mod tests;
