//! Tests of the limits that Kubernetes gives levels.

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
                let _ = (limits.provisional(), nominal_sum(&[limits; 3]), ratio_denominator(limits.max, limits.min));
            }
        }
    }
}
