//! The scenarios of the limit with a few seeds, short enough for every run of the tests. `cargo xtask bench limit` has all seeds, the whole
//! spans and the bars of the specification; what is asked for here is what each of these seeds has to reach.

use evenkeel_limit_bench::{Environment, Scenario, measure, run, scenarios};

/// Goodput over that of the right limit, of the worst of some seeds.
fn goodput(scenario: &Scenario, seeds: u64) -> f64 {
    measure(scenario, 1..=seeds).goodput.worst
}

/// When the slowest of some seeds reached nine tenths of it and kept them.
fn recovery(scenario: &Scenario, seeds: u64) -> f64 {
    measure(scenario, 1..=seeds).recovery.seconds().worst
}

/// The same with less time to the end.
fn short(scenario: Scenario, span: f64) -> Scenario {
    Scenario { span, to: scenario.to.min(span), ..scenario }
}

/// The same at a load that is cheaper to simulate.
fn at_load(scenario: Scenario, load: f64) -> Scenario {
    let environment = Environment::load(scenario.environment, load);
    Scenario { environment, ..scenario }
}

#[test]
fn a_learnt_limit_keeps_what_the_right_one_brings() {
    let [light, usual, heavy] = scenarios::learnt().map(|scenario| short(scenario, 15.0));
    assert!(goodput(&light, 2) >= 0.96);
    assert!(goodput(&usual, 1) >= 0.96);
    assert!(goodput(&short(heavy, 6.0), 1) >= 0.95);
}

#[test]
fn a_limit_that_starts_low_finds_the_right_one() {
    let [light, ..] = scenarios::learning().map(|scenario| short(scenario, 30.0));
    assert!(goodput(&light, 2) >= 0.93);
    assert!(recovery(&at_load(short(scenarios::from_low(), 12.0), 3.0), 2) <= 4.0);
}

#[test]
fn a_limit_that_starts_high_finds_the_right_one() {
    assert!(recovery(&at_load(short(scenarios::from_high(), 16.0), 3.0), 2) <= 8.0);
    assert!(recovery(&short(scenarios::stale(), 16.0), 2) <= 8.0);
}

#[test]
fn a_limit_follows_the_capacity() {
    let [halved, back] = scenarios::halved().map(|scenario| at_load(scenario, 2.0));
    assert!(recovery(&short(halved, 36.0), 1) <= 5.0);
    assert!(recovery(&short(back, 52.0), 1) <= 5.0);
}

#[test]
fn a_limit_follows_a_dearer_mix() {
    let [light, _] = scenarios::dearer_mix();
    assert!(recovery(&light, 2) <= 20.0);
}

#[test]
fn a_limit_follows_time_spent_elsewhere() {
    let [servers, _] = scenarios::elsewhere();
    assert!(recovery(&at_load(short(servers, 45.0), 1.5), 1) <= 20.0);
}

/// Two minutes of the half hour.
#[test]
fn a_limit_does_not_drift() {
    let scenario = at_load(scenarios::half_an_hour(), 1.5);
    let found = run(&scenario.environment, &scenario.seats(), 120.0, 1);
    for minute in found.buckets.chunks(600) {
        let limit = minute.iter().map(|bucket| bucket.limit).sum::<f64>() / 600.0;
        assert!((17.0..=23.0).contains(&limit), "{limit}: {:#?}", found.changes);
    }
}

/// AL-4
#[test]
fn the_beginning_of_an_overload_costs_nothing() {
    let scenario = at_step(scenarios::step());
    let [found, right] =
        [scenario.seats(), scenario.right()].map(|seats| run(&scenario.environment, &seats, 15.0, 1).buckets);
    let goal = 0.9 * right[100..150].iter().map(|bucket| bucket.good).sum::<f64>() / 50.0;
    let below = |from: usize, to: usize| found[from..to].iter().filter(|bucket| bucket.good < goal).count();
    assert_eq!(below(100, 110), 0, "in the first second");
    assert!(below(100, 150) <= 5, "in the first five seconds: {}", below(100, 150));
}

/// A step to three times the capacity.
fn at_step(scenario: Scenario) -> Scenario {
    let load = evenkeel_limit_bench::Steps::new(&[(0.0, 0.5), (10.0, 3.0)]);
    Scenario { environment: Environment { load, ..scenario.environment }, ..scenario }
}

#[test]
fn light_load_is_left_alone() {
    let [_, servers] = scenarios::light();
    let found = run(&servers.environment, &servers.seats(), 90.0, 1);
    let sum = |of: fn(&evenkeel_limit_bench::Bucket) -> f64| found.buckets[300..].iter().map(of).sum::<f64>();
    let (delayed, rejected, arrived) =
        (sum(|bucket| bucket.delayed), sum(|bucket| bucket.rejected), sum(|bucket| bucket.arrived));
    assert!(rejected == 0.0 && delayed <= 0.003 * arrived, "{rejected} rejected, {delayed} of {arrived} delayed");
}

/// AL-5
#[test]
fn a_service_that_refuses_is_not_filled_beyond_that() {
    let scenario = at_load(scenarios::refusing(), 1.5);
    let found = run(&scenario.environment, &scenario.seats(), 45.0, 1);
    let late = &found.buckets[300..];
    let (failed, good): (f64, f64) =
        (late.iter().map(|bucket| bucket.failed).sum(), late.iter().map(|bucket| bucket.good).sum());
    assert!(failed <= 0.001 * good, "{failed} of {good}: {:#?}", found.changes);
}

/// AL-5
#[test]
fn a_service_that_fails_for_a_while_gets_its_limit_back() {
    assert!(recovery(&at_load(short(scenarios::all_failing(), 35.0), 2.0), 1) <= 0.5);
}

#[test]
fn other_services_find_their_limits() {
    assert!(goodput(&at_load(short(scenarios::scalability(2.0), 40.0), 2.0), 1) >= 0.88);
    assert!(goodput(&at_load(short(scenarios::scalability(200.0), 40.0), 2.0), 1) >= 0.80);
    assert!(goodput(&at_load(scenarios::noisy(2.0), 1.5), 1) >= 0.70);
    assert!(goodput(&scenarios::slow(), 2) >= 0.75);
}
