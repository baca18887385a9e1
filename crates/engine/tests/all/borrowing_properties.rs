//! What holds for every division of seats: they are conserved, bounds are kept, and no input is too odd (CL-8 to CL-21).

use evenkeel_engine::borrowing::{
    Adjustment, Allocator, Class, DemandIntegrator, DemandStatistics, LevelDemand, adjust,
};
use evenkeel_engine::limits::{LevelLimits, nominal_sum};
use evenkeel_engine::time::Instant;
use proptest::prelude::*;

/// Sums of allocations are exact but for the rounding of binary64.
const TOLERANCE: f64 = 1e-6;

proptest! {
    #[test]
    fn allocations_have_the_total_within_all_bounds((total, classes) in feasible_problem()) {
        let mut allocator = Allocator::default();
        let solved = allocator.allocate(total, &classes).expect("a solution");
        let sum: f64 = solved.allocations.iter().sum();
        prop_assert!((sum - total).abs() < TOLERANCE, "{sum} instead of {total}");
        for (class, allocation) in classes.iter().zip(solved.allocations) {
            let (lower, upper) = (class.lower - TOLERANCE, class.upper + TOLERANCE);
            prop_assert!((lower..=upper).contains(allocation), "{allocation} for {class:?}");
        }
    }

    #[test]
    fn allocations_are_those_of_a_slow_solver((total, classes) in feasible_problem()) {
        let mut allocator = Allocator::default();
        let solved = allocator.allocate(total, &classes).expect("a solution");
        for (allocation, expected) in solved.allocations.iter().zip(bisect(total, &classes)) {
            prop_assert!((allocation - expected).abs() < TOLERANCE, "{allocation} instead of {expected}");
        }
    }

    #[test]
    fn any_allocation_problem_has_numbers_for_an_answer(
        total in prop::num::f64::ANY,
        classes in prop::collection::vec(any_class(), 0..6),
    ) {
        if let Ok(solved) = Allocator::default().allocate(total, &classes) {
            prop_assert!(!solved.proportion.is_nan());
            prop_assert!(solved.allocations.iter().all(|allocation| !allocation.is_nan()));
        }
    }

    #[test]
    fn seats_are_conserved_and_bounds_are_kept(levels in prop::collection::vec(sound_level(), 1..12)) {
        check_division(&levels, &adjust(&levels))?;
    }

    #[test]
    fn any_level_has_a_limit(levels in prop::collection::vec(any_level(), 0..6)) {
        let adjustment = adjust(&levels);
        prop_assert_eq!(adjustment.levels.len(), levels.len());
        prop_assert!(!adjustment.fair_fraction.is_nan());
        prop_assert!(adjustment.levels.iter().all(|level| level.target.is_none_or(|target| !target.is_nan())));
    }

    #[test]
    fn any_course_of_demand_has_statistics(
        start in any::<i64>(),
        events in prop::collection::vec((any_nanos(), any_seats(), any::<bool>()), 0..200),
    ) {
        let mut demand = DemandIntegrator::new(Instant::from_nanos(start));
        let mut statistics = DemandStatistics::default();
        for (nanos, seats, ends_period) in events {
            let now = Instant::from_nanos(nanos);
            demand.set(now, seats);
            if ends_period {
                statistics.update(&demand.read_and_reset(now));
            }
            prop_assert!(statistics.average.is_finite() && statistics.deviation.is_finite());
            prop_assert!(statistics.smoothed.is_finite());
        }
    }
}

/// Says which rule was at work, and what it promises.
fn check_division(levels: &[LevelDemand], adjustment: &Adjustment) -> Result<(), TestCaseError> {
    let pairs = || levels.iter().zip(&adjustment.levels).filter(|(level, _)| !level.is_exempt);
    let current: i64 = pairs().map(|(_, adjusted)| adjusted.current).sum();
    let min: i64 = pairs().map(|(level, _)| level.limits.min).sum();
    let min_current: i64 = pairs().map(|(_, adjusted)| adjusted.min_current).sum();
    let total = nominal_sum(levels.iter().map(|level| &level.limits));
    let exempt = levels.iter().zip(&adjustment.levels).filter(|(level, _)| level.is_exempt);
    let remaining = total - exempt.map(|(_, adjusted)| adjusted.current).sum::<i64>();
    let rounding = i64::try_from(pairs().count().div_ceil(2)).expect("a few levels");
    let max: i64 = pairs().map(|(level, _)| level.limits.max).sum();

    if remaining <= min {
        prop_assert_eq!(current, min, "CL-13");
    } else if remaining <= min_current {
        prop_assert!((current - remaining).abs() <= rounding, "CL-14: {current} of {remaining}");
        for (level, adjusted) in pairs() {
            prop_assert!((level.limits.min..=adjusted.min_current).contains(&adjusted.current), "{adjusted:?}");
        }
    } else if total <= max {
        prop_assert!((current - total).abs() <= rounding, "CL-15: {current} of {total}");
        for (level, adjusted) in pairs() {
            prop_assert!((adjusted.min_current..=level.limits.max).contains(&adjusted.current), "{adjusted:?}");
        }
    } else {
        prop_assert!(pairs().all(|(level, adjusted)| adjusted.current == level.current), "CL-17");
    }
    Ok(())
}

/// Halves the range of the proportion until the total is met.
fn bisect(total: f64, classes: &[Class]) -> Vec<f64> {
    let at = |proportion: f64| -> Vec<f64> {
        let allocation = |class: &Class| (proportion * class.target.max(0.001)).clamp(class.lower, class.upper);
        classes.iter().map(allocation).collect()
    };
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        let is_enough = at(middle).iter().sum::<f64>() >= total;
        if is_enough { high = middle } else { low = middle }
    }
    at(high)
}

/// Classes, and a total between their lower and upper bounds. Many bounds and targets are equal.
fn feasible_problem() -> impl Strategy<Value = (f64, Vec<Class>)> {
    let number = || prop_oneof![(0..20_u32).prop_map(f64::from), 0.0..1000.0_f64, Just(0.0)];
    let class = (number(), number(), number()).prop_map(|(lower, target, room)| Class {
        lower,
        upper: lower + room,
        target: lower + target,
    });
    (prop::collection::vec(class, 1..12), 0.0..=1.0_f64).prop_map(|(classes, part)| {
        let lower: f64 = classes.iter().map(|class| class.lower).sum();
        let upper: f64 = classes.iter().map(|class| class.upper).sum();
        (lower + (upper - lower) * part, classes)
    })
}

fn any_class() -> impl Strategy<Value = Class> {
    let number = || prop_oneof![prop::num::f64::ANY, Just(0.0), Just(f64::MAX), Just(f64::INFINITY), Just(1.0)];
    (number(), number(), number()).prop_map(|(lower, upper, target)| Class { lower, upper, target })
}

fn sound_level() -> impl Strategy<Value = LevelDemand> {
    (0..2000_i64, 0.0..=1.0_f64, 0..3000_i64, 0..4000_i64, 0.0..4000.0_f64, prop::bool::weighted(0.1)).prop_map(
        |(nominal, lent, borrowing, high_watermark, smoothed, is_exempt)| {
            #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small numbers")]
            let lendable = (nominal as f64 * lent) as i64;
            let limits =
                LevelLimits { nominal, lendable, borrowing, min: nominal - lendable, max: nominal + borrowing };
            let statistics = DemandStatistics { high_watermark, smoothed, ..DemandStatistics::default() };
            LevelDemand { is_exempt, limits, statistics, current: limits.provisional() }
        },
    )
}

fn any_level() -> impl Strategy<Value = LevelDemand> {
    let limits = prop::array::uniform5(any_seats());
    (limits, any_seats(), prop::num::f64::ANY, any_seats(), any::<bool>()).prop_map(
        |([nominal, lendable, borrowing, min, max], high_watermark, smoothed, current, is_exempt)| LevelDemand {
            is_exempt,
            limits: LevelLimits { nominal, lendable, borrowing, min, max },
            statistics: DemandStatistics { high_watermark, smoothed, ..DemandStatistics::default() },
            current,
        },
    )
}

fn any_seats() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -5..100_i64, Just(0), Just(i64::MAX), Just(i64::MIN)]
}

fn any_nanos() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), 0..1_000_000_000_000_i64, Just(0), Just(i64::MAX), Just(i64::MIN)]
}
