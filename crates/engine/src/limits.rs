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

use evenkeel_api::v1::{
    CONCURRENCY_SHARES_DEFAULT, EXEMPT_CONCURRENCY_SHARES_DEFAULT, LENDABLE_PERCENT_DEFAULT,
    PriorityLevelConfigurationSpec, PriorityLevelEnablement,
};

use crate::seats;

/// The shares of all levels in play, added up (CL-2).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct ShareSum(f64);

/// The limits that follow from a level's specification and its share of the server's seats.
///
/// No number is out of range for any specification: what would be too large stops at the largest number.
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

/// The seats that all levels together have of their own: `NominalCLSum` (CL-6).
///
/// Every level's share is rounded up, so this may be a little more than the server has.
pub fn nominal_sum<'a>(levels: impl IntoIterator<Item = &'a LevelLimits>) -> i64 {
    levels.into_iter().fold(0, |sum, level| sum.saturating_add(level.nominal))
}

/// What the seats in use are divided by in metrics that show a ratio (CL-19).
///
/// ```
/// use evenkeel_engine::limits::ratio_denominator;
///
/// assert_eq!(ratio_denominator(30, 600), 30);
/// assert_eq!(ratio_denominator(0, 600), 60);
/// assert_eq!(ratio_denominator(0, 4), 1);
/// ```
pub fn ratio_denominator(current: i64, server_limit: i64) -> i64 {
    if current > 0 { current } else { seats::round(seats::to_f64(server_limit) / 10.0).max(1) }
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
    /// They last only if that adjustment finds no way to divide the seats (CL-17).
    pub const fn provisional(&self) -> i64 {
        self.nominal.saturating_sub(self.lendable / 2)
    }
}

fn nominal(server_limit: i64, shares: i32, all: ShareSum) -> i64 {
    // Nobody has shares: CL-3 asks for this guard.
    if all.0.abs() < 1.0 {
        return 0;
    }
    seats::round_up((seats::to_f64(server_limit) * f64::from(shares)) / all.0)
}

fn percent_of(nominal: i64, percent: i32) -> i64 {
    seats::round((seats::to_f64(nominal) * f64::from(percent)) / 100.0)
}

#[cfg(test)]
mod tests {
    use evenkeel_api::bootstrap;
    use evenkeel_api::v1::PriorityLevelConfiguration;

    use super::*;

    fn bootstrap_limits(server_limit: i64) -> Vec<(&'static str, LevelLimits)> {
        let levels = bootstrap::priority_levels();
        let all = ShareSum::of(levels.iter().map(|level| &level.spec));
        levels.iter().map(|level| (level.name(), LevelLimits::new(&level.spec, server_limit, all))).collect()
    }

    fn of<'a>(limits: &'a [(&str, LevelLimits)], name: &str) -> &'a LevelLimits {
        &limits.iter().find(|(found, _)| *found == name).unwrap().1
    }

    #[test]
    fn cl_2_all_shares_are_added_up() {
        let levels = bootstrap::priority_levels();
        assert_eq!(ShareSum::of(levels.iter().map(|level| &level.spec)).get().to_bits(), 245.0_f64.to_bits());
        assert_eq!(shares(&PriorityLevelConfiguration::builder("exempt").exempt(|e| e).build().spec), 0);
        assert_eq!(shares(&PriorityLevelConfiguration::builder("exempt").exempt(|e| e.shares(7)).build().spec), 7);
    }

    #[test]
    fn cl_3_without_any_shares_no_level_has_seats() {
        let spec = PriorityLevelConfiguration::builder("a").limited(|l| l.shares(0).reject()).build().spec;
        let limits = LevelLimits::new(&spec, 600, ShareSum::of([&spec]));
        assert_eq!(limits, LevelLimits { nominal: 0, lendable: 0, borrowing: 600, min: 0, max: 600 });
    }

    #[test]
    fn cl_25_bootstrap_limits_of_a_server_with_600_seats() {
        let limits = bootstrap_limits(600);
        for (name, nominal, lendable, min, max) in [
            ("exempt", 0, 0, 0, 600),
            ("catch-all", 13, 0, 13, 613),
            ("system", 74, 24, 50, 674),
            ("node-high", 98, 25, 73, 698),
            ("leader-election", 25, 0, 25, 625),
            ("workload-high", 98, 49, 49, 698),
            ("workload-low", 245, 221, 24, 845),
            ("global-default", 49, 25, 24, 649),
        ] {
            let expected = LevelLimits { nominal, lendable, borrowing: 600, min, max };
            assert_eq!(*of(&limits, name), expected, "{name}");
        }
        assert_eq!(nominal_sum(limits.iter().map(|(_, limits)| limits)), 602);
    }

    #[test]
    fn cl_26_bootstrap_limits_of_a_server_with_10_seats() {
        let limits = bootstrap_limits(10);
        for (name, nominal, min) in [
            ("catch-all", 1, 1),
            ("system", 2, 1),
            ("node-high", 2, 1),
            ("leader-election", 1, 1),
            ("workload-high", 2, 1),
            ("workload-low", 5, 0),
            ("global-default", 1, 0),
        ] {
            let found = of(&limits, name);
            assert_eq!((found.nominal, found.min), (nominal, min), "{name}");
        }
        assert_eq!(nominal_sum(limits.iter().map(|(_, limits)| limits)), 14);
    }

    #[test]
    fn cl_28_limits_on_borrowing() {
        let limited = |lendable, borrowing| {
            let level = PriorityLevelConfiguration::builder("a")
                .limited(|l| l.shares(100).lendable_percent(lendable).borrowing_limit_percent(borrowing).reject());
            level.build().spec
        };
        for (lendable, borrowing, min, max) in [(50, 67, 6, 20), (33, 50, 8, 18), (50, 33, 6, 16), (67, 50, 4, 18)] {
            let limits = LevelLimits::new(&limited(lendable, borrowing), 24, ShareSum(205.0));
            assert_eq!((limits.nominal, limits.min, limits.max), (12, min, max), "{lendable} % and {borrowing} %");
        }
    }

    #[test]
    fn cl_7_half_of_what_is_lendable_is_lent_at_first() {
        let limits = bootstrap_limits(600);
        for (name, expected) in [("workload-low", 245 - 110), ("node-high", 98 - 12), ("catch-all", 13)] {
            assert_eq!(of(&limits, name).provisional(), expected, "{name}");
        }
    }

    #[test]
    fn cl_19_denominator_of_ratios() {
        for (current, server_limit, expected) in
            [(1, 600, 1), (0, 600, 60), (0, 14, 1), (0, 15, 2), (0, 1, 1), (-3, 600, 60), (0, i64::MIN, 1)]
        {
            assert_eq!(ratio_denominator(current, server_limit), expected, "{current} of {server_limit}");
        }
    }

    #[test]
    fn no_specification_is_out_of_range() {
        let numbers = [i32::MIN, -1, 0, 1, i32::MAX];
        for server_limit in [i64::MIN, -1, 0, 1, i64::MAX] {
            for (shares, lendable) in numbers.into_iter().flat_map(|a| numbers.map(|b| (a, b))) {
                for borrowing in numbers {
                    let level = PriorityLevelConfiguration::builder("a").limited(|l| {
                        l.shares(shares).lendable_percent(lendable).borrowing_limit_percent(borrowing).reject()
                    });
                    let spec = level.build().spec;
                    let limits = LevelLimits::new(&spec, server_limit, ShareSum::of([&spec]));
                    assert_eq!(limits.min, limits.nominal.saturating_sub(limits.lendable));
                    assert_eq!(limits.max, limits.nominal.saturating_add(limits.borrowing));
                    let _ =
                        (limits.provisional(), nominal_sum(&[limits; 3]), ratio_denominator(limits.max, limits.min));
                }
            }
        }
    }
}
