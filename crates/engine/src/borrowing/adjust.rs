//! Dividing seats as Kubernetes does (CL-12 to CL-17).

use super::{AdjustedLevel, Adjustment, Allocator, Class, DivideSeats, LevelDemand};
use crate::limits::nominal_sum;
use crate::seat_rounding;

/// Divides seats bit for bit as Kubernetes does.
///
/// It keeps the memory that it needed, so that a division allocates nothing once there are no more levels than before.
/// The memory holds no decision: each is made from its arguments alone.
#[derive(Debug, Clone, Default)]
pub struct FaithfulDivision {
    classes: Vec<Class>,
    allocator: Allocator,
}

/// The sums that decide by which rule seats are divided (CL-12).
#[derive(Debug, Clone, Copy)]
struct Sums {
    /// The seats of all levels, exempt ones included.
    nominal: i64,
    /// The part of them that the exempt levels leave.
    remaining: i64,
    /// The seats that nobody can take from the other levels.
    min: i64,
    /// The least that the other levels should get, given their demand.
    min_current: i64,
}

/// Divides seats as Kubernetes does, once: [`FaithfulDivision`] without anything kept.
///
/// The levels come in ascending byte order of their names (CV-8).
///
/// ```
/// use evenkeel_engine::borrowing::{DemandStatistics, LevelDemand, adjust};
/// use evenkeel_engine::limits::LevelLimits;
///
/// let limits = LevelLimits { nominal: 100, lendable: 50, borrowing: 200, min: 50, max: 300 };
/// let idle = LevelDemand { is_exempt: false, limits, statistics: DemandStatistics::default(), current: 75 };
/// let busy = DemandStatistics { high_watermark: 400, smoothed: 350.0, ..DemandStatistics::default() };
///
/// let adjustment = adjust(&[idle, LevelDemand { statistics: busy, ..idle }]);
/// assert_eq!(adjustment.levels[0].current, 50);
/// assert_eq!(adjustment.levels[1].current, 150);
/// assert_eq!(adjustment.levels[1].target, Some(350.0));
/// ```
pub fn adjust(levels: &[LevelDemand]) -> Adjustment {
    let mut adjustment = Adjustment::default();
    FaithfulDivision::default().divide(levels, &mut adjustment);
    adjustment
}

// === impl FaithfulDivision ===

impl DivideSeats for FaithfulDivision {
    fn divide(&mut self, levels: &[LevelDemand], adjustment: &mut Adjustment) {
        let Adjustment { fair_fraction, levels: adjusted } = adjustment;
        adjusted.clear();
        adjusted.extend(levels.iter().map(LevelDemand::wish));

        let sums = Sums::of(levels, adjusted);
        *fair_fraction = if sums.remaining <= sums.min {
            give_min(levels, adjusted);
            0.0
        } else if sums.remaining <= sums.min_current {
            share_the_rest(levels, adjusted, &sums);
            0.0
        } else {
            self.allocate(levels, adjusted, sums.nominal)
        };
    }
}

impl FaithfulDivision {
    /// Gives each level its part of the total, or leaves everything as it is (CL-15, CL-17).
    ///
    /// The total is all seats: those that exempt levels use are not taken off (KW-19).
    fn allocate(&mut self, levels: &[LevelDemand], adjusted: &mut [AdjustedLevel], total: i64) -> f64 {
        self.classes.clear();
        self.classes.extend(limited(levels, adjusted).map(|(level, adjusted)| level.class(adjusted)));
        match self.allocator.allocate(seat_rounding::to_f64(total), &self.classes) {
            Ok(allocation) => {
                for ((_, adjusted), allocated) in limited(levels, adjusted).zip(allocation.allocations) {
                    adjusted.current = seat_rounding::round(*allocated);
                }
                allocation.proportion
            }
            Err(_) => {
                limited(levels, adjusted).for_each(|(level, adjusted)| adjusted.current = level.current);
                0.0
            }
        }
    }
}

/// Exempt levels leave no more than what nobody can take from the others (CL-13).
fn give_min(levels: &[LevelDemand], adjusted: &mut [AdjustedLevel]) {
    limited(levels, adjusted).for_each(|(level, adjusted)| adjusted.current = level.limits.min);
}

/// Exempt levels leave less than the others should get: what is above their minimum is cut in proportion (CL-14).
fn share_the_rest(levels: &[LevelDemand], adjusted: &mut [AdjustedLevel], sums: &Sums) {
    let available = seat_rounding::to_f64(sums.remaining.saturating_sub(sums.min));
    let share = available / seat_rounding::to_f64(sums.min_current.saturating_sub(sums.min));
    for (level, adjusted) in limited(levels, adjusted) {
        let above_min = seat_rounding::to_f64(adjusted.min_current.saturating_sub(level.limits.min));
        adjusted.current = level.limits.min.saturating_add(seat_rounding::round(above_min * share));
    }
}

/// The levels that take part in the division.
fn limited<'a>(
    levels: &'a [LevelDemand],
    adjusted: &'a mut [AdjustedLevel],
) -> impl Iterator<Item = (&'a LevelDemand, &'a mut AdjustedLevel)> {
    levels.iter().zip(adjusted).filter(|(level, _)| !level.is_exempt)
}

// === impl Sums ===

impl Sums {
    fn of(levels: &[LevelDemand], adjusted: &[AdjustedLevel]) -> Self {
        let nominal = nominal_sum(levels.iter().map(|level| &level.limits));
        let mut sums = Self { nominal, remaining: nominal, min: 0, min_current: 0 };
        for (level, adjusted) in levels.iter().zip(adjusted) {
            if level.is_exempt {
                sums.remaining = sums.remaining.saturating_sub(adjusted.current);
            } else {
                sums.min = sums.min.saturating_add(level.limits.min);
                sums.min_current = sums.min_current.saturating_add(adjusted.min_current);
            }
        }
        sums
    }
}

// === impl LevelDemand ===

impl LevelDemand {
    /// The least that the level is to get and what it would like to have (CL-12). An exempt level gets it (CL-16).
    fn wish(&self) -> AdjustedLevel {
        let used = self.statistics.high_watermark;
        if self.is_exempt {
            let current = self.limits.min.max(used);
            return AdjustedLevel { current, min_current: current, target: None };
        }
        let min_current = self.limits.min.max(self.limits.nominal.min(used));
        let target = seat_rounding::to_f64(min_current).max(self.statistics.smoothed);
        AdjustedLevel { current: self.current, min_current, target: Some(target) }
    }

    fn class(&self, wish: &AdjustedLevel) -> Class {
        let lower = seat_rounding::to_f64(wish.min_current);
        Class { lower, upper: seat_rounding::to_f64(self.limits.max), target: wish.target.unwrap_or(lower) }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::bootstrap;

    use super::*;
    use crate::borrowing::DemandStatistics;
    use crate::limits::{LevelLimits, ShareSum};

    /// The bootstrap levels in ascending order of their names, which is also that of the tables of CL-27.
    const NAMES: [&str; 8] = [
        "catch-all",
        "exempt",
        "global-default",
        "leader-election",
        "node-high",
        "system",
        "workload-high",
        "workload-low",
    ];

    /// A level's high watermark and smoothed demand.
    type Demand<'a> = (&'a str, i64, f64);

    fn bootstrap_levels(server_limit: i64, demands: &[Demand<'_>]) -> Vec<LevelDemand> {
        let all = ShareSum::of(bootstrap::priority_levels().iter().map(|level| &level.spec));
        let level = |name: &str| {
            let spec = &bootstrap::all().priority_level(name).unwrap().spec;
            let limits = LevelLimits::new(spec, server_limit, all);
            let demand = demands.iter().find(|(of, ..)| *of == name);
            let (high_watermark, smoothed) = demand.map_or((0, 0.0), |(_, seats, smoothed)| (*seats, *smoothed));
            let statistics = DemandStatistics { high_watermark, smoothed, ..DemandStatistics::default() };
            LevelDemand { is_exempt: name == "exempt", limits, statistics, current: limits.provisional() }
        };
        NAMES.map(level).to_vec()
    }

    fn current(adjustment: &Adjustment) -> Vec<i64> {
        adjustment.levels.iter().map(|level| level.current).collect()
    }

    fn limited(nominal: i64, min: i64, max: i64, demand: i64) -> LevelDemand {
        let limits = LevelLimits { nominal, lendable: nominal - min, borrowing: max - nominal, min, max };
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let smoothed = demand as f64;
        let statistics = DemandStatistics { high_watermark: demand, smoothed, ..DemandStatistics::default() };
        LevelDemand { is_exempt: false, limits, statistics, current: limits.provisional() }
    }

    #[test]
    fn cl_25_idle_limits_of_a_server_with_600_seats() {
        let adjustment = adjust(&bootstrap_levels(600, &[]));
        assert_eq!(current(&adjustment), [30, 0, 56, 58, 170, 117, 114, 56]);
        assert_eq!(current(&adjustment).iter().sum::<i64>(), 601);
        assert_eq!(adjustment.fair_fraction.to_bits(), 2.333_333_333_333_333_5_f64.to_bits());
    }

    #[test]
    fn cl_26_idle_limits_of_a_server_with_10_seats() {
        assert_eq!(current(&adjust(&bootstrap_levels(10, &[]))), [3, 0, 0, 3, 3, 3, 3, 0]);
    }

    #[rustfmt::skip] // a table
    #[test]
    fn cl_27_cases() {
        let busy: Vec<Demand<'_>> =
            NAMES.into_iter().filter(|name| *name != "exempt").map(|name| (name, 1000, 1000.0)).collect();
        let workloads = [("workload-low", 900, 900.0), ("workload-high", 500, 480.0)];
        let and_exempt = |demands: &[Demand<'static>], seats| [demands, &[("exempt", seats, 0.0)]].concat();
        let mixed = [("workload-low", 400, 350.0), ("system", 20, 12.5), ("node-high", 60, 40.0)];
        for (case, demands, expected, fair_fraction) in [
            ("A", and_exempt(&mixed, 10), [13, 10, 25, 26, 75, 52, 51, 361], 1.030_821_917_808_219_2),
            ("B", workloads.to_vec(), [13, 0, 24, 25, 73, 50, 145, 272], 0.302_173_913_043_478_3),
            ("C", and_exempt(&workloads, 200), [13, 200, 24, 25, 73, 50, 75, 142], 0.0),
            ("D", and_exempt(&workloads, 400), [13, 400, 24, 25, 73, 50, 49, 24], 0.0),
            ("E", busy.clone(), [13, 0, 49, 25, 98, 74, 98, 245], 0.0),
            ("F", and_exempt(&busy, 50), [13, 50, 45, 25, 94, 71, 91, 213], 0.0),
        ] {
            let adjustment = adjust(&bootstrap_levels(600, &demands));
            assert_eq!(current(&adjustment), expected, "case {case}");
            assert_eq!(adjustment.fair_fraction.to_bits(), f64::to_bits(fair_fraction), "case {case}: {adjustment:?}");
        }
    }

    #[test]
    fn cl_28_two_levels_that_limit_lending_and_borrowing() {
        let (catch_all, exempt) = (limited(1, 1, 25, 0), LevelDemand { is_exempt: true, ..limited(0, 0, 24, 0) });
        let lendable_limited = [catch_all, exempt, limited(12, 6, 20, 24), limited(12, 8, 18, 6)];
        assert_eq!(current(&adjust(&lendable_limited)), [1, 0, 16, 8]);

        let borrowing_limited = [catch_all, exempt, limited(12, 6, 16, 24), limited(12, 4, 18, 6)];
        let adjustment = adjust(&borrowing_limited);
        assert_eq!(current(&adjustment), [1, 0, 16, 8]);
        assert_eq!(adjustment.fair_fraction.to_bits(), 1.285_714_285_714_285_6_f64.to_bits());
    }

    #[test]
    fn cl_12_wishes_of_a_level() {
        for (demand, min_current, target) in [(0, 6, 6.0), (9, 9, 9.0), (24, 12, 24.0)] {
            let wish = limited(12, 6, 20, demand).wish();
            assert_eq!((wish.min_current, wish.target), (min_current, Some(target)), "{demand} seats");
        }
        let exempt = LevelDemand { is_exempt: true, ..limited(12, 6, 20, 24) };
        assert_eq!(exempt.wish(), AdjustedLevel { current: 24, min_current: 24, target: None }, "CL-16");
    }

    #[test]
    fn cl_17_without_a_solution_limits_stay() {
        let stuck = |current| LevelDemand { current, ..limited(10, 5, 10, 0) };
        let exempt = LevelDemand { is_exempt: true, current: 99, ..limited(20, 20, 40, 0) };
        let adjustment = adjust(&[stuck(7), exempt, stuck(70)]);
        assert_eq!(current(&adjustment), [7, 20, 70]);
        assert_eq!(adjustment.fair_fraction.to_bits(), 0.0_f64.to_bits());
        assert_eq!(adjustment.levels[2].target, Some(5.0), "the target is known all the same");
    }

    #[test]
    fn memory_that_is_used_again_changes_nothing() {
        let mut division = FaithfulDivision::default();
        let mut adjustment = Adjustment::default();
        for demands in [&[("workload-low", 900, 900.0)][..], &[], &[("exempt", 400, 0.0)]] {
            let levels = bootstrap_levels(600, demands);
            division.divide(&levels, &mut adjustment);
            assert_eq!(adjustment, adjust(&levels));
        }
        division.divide(&[], &mut adjustment);
        assert_eq!(adjustment, Adjustment::default());
    }
}
