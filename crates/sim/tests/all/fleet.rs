//! Instances that share the seats of one service (FL): the product's state machine, with messages that are delayed and lost.

use evenkeel_api::Preset;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_sim::report::{FleetReport, Report};
use evenkeel_sim::workload::Workload;
use evenkeel_sim::{AutoSettings, Scenario, ServerSettings, run};

fn workload(instances: &str, flows: &str) -> Workload {
    workload_of(20, instances, flows)
}

fn workload_of(seconds: u32, instances: &str, flows: &str) -> Workload {
    let text = format!(
        "apiVersion: evenkeel.dev/v1\nkind: Workload\nmetadata: {{name: fleet}}\nspec:\n  seconds: {seconds}\n  warmup: 4\n  \
         instances: {instances}\n  flows:\n{flows}"
    );
    Workload::parse("fleet.yaml", text.as_bytes(), Preset::Plain).unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn simulate(workload: &Workload, seats: i64, seed: u64) -> Report {
    let mut settings = ServerSettings::new(seats);
    (settings.preset, settings.borrowing) = (Preset::Plain, Borrowing::Immediate);
    let scenario = Scenario { settings, objects: Objects::from(Preset::Plain), applied: Vec::new() };
    run(workload, &scenario, seed, &mut |_| {}).report
}

fn fleet(report: &Report) -> &FleetReport {
    report.fleet.as_ref().unwrap()
}

/// FL-4, FL-6, FL-12: calls of up to the longest time that is waited for, and one in twenty messages lost.
#[test]
fn fl_6_thirty_two_instances_never_use_more_than_there_is() {
    let instances =
        "{count: 32, delay: {mix: [[0.95, {uniform: [1ms, 20ms]}], [0.05, {uniform: [20ms, 500ms]}]]}, loss: 0.05}";
    let flow = |name: &str, count: u32, more: &str| {
        format!(
            "  - {{name: {name}, count: {count}, arrivals: {{closed: {{clients: 40, think: 0ms}}}}, \
             service: {{uniform: [50ms, 150ms]}}, patience: 60s, {more}}}\n"
        )
    };
    // In the middle of it, demand moves from four instances to four others.
    let flows = [
        flow("everywhere", 8, "from: 0s"),
        flow("early", 4, "instances: [0, 1, 2, 3], to: 8s"),
        flow("late", 4, "instances: [28, 29, 30, 31], from: 8s"),
    ];
    let report = simulate(&workload_of(12, instances, &flows.concat()), 160, 7);
    let fleet = fleet(&report);
    assert!(fleet.in_use.max <= 160.0, "{fleet:?}");
    assert!(fleet.lost_messages > 1000 && fleet.instances.len() == 32, "{fleet:?}");
    // Most seats are used although one message in twenty is lost, and the fleet is fairer than fixed parts.
    println!(
        "{:?} in use, beside {:?}; Jain index {:?}, beside {:?}",
        fleet.in_use, fleet.apart.in_use, fleet.jain, fleet.apart.jain
    );
    assert!(fleet.in_use.mean > 0.6 * 160.0, "{:?}", fleet.in_use);
    assert!(fleet.jain > fleet.apart.jain, "{:?} {:?}", fleet.jain, fleet.apart.jain);
    assert!(fleet.apart.in_use.max <= 160.0);
}

/// The bar of RL-6: 100 a second for a flow that is spread 90/5/5, then 5/5/90, then alone on one instance. Messages are late and lost. Without
/// what is known of the others' demand, each instance applies the whole rate.
#[test]
fn rl_6_a_fleet_accepts_the_rate_of_a_flow_wherever_its_demand_is() {
    let instances =
        "{count: 3, delay: {mix: [[0.95, {uniform: [1ms, 20ms]}], [0.05, {uniform: [20ms, 500ms]}]]}, loss: 0.02}";
    let spread = |phase: &str, rates: [u32; 3], from: u32, to: u32| {
        let flow = |(at, rate): (usize, u32)| {
            format!(
                "  - {{name: {phase}-{at}, instances: [{at}], arrivals: {{poisson: {{rate: {rate}}}}}, service: {{fixed: 5ms}}, from: {from}s, \
                 to: {to}s}}\n"
            )
        };
        rates.into_iter().enumerate().filter(|(_, rate)| *rate > 0).map(flow).collect::<String>()
    };
    let (early, late, alone) = ([108, 6, 6], [6, 6, 108], [0, 120, 0]);
    for (name, flows) in [
        ("spread 90/5/5", spread("early", early, 0, 34)),
        ("moves to 5/5/90", spread("early", early, 0, 17) + &spread("late", late, 17, 34)),
        ("on one instance", spread("alone", alone, 0, 34)),
    ] {
        let workload = workload_of(34, instances, &flows);
        let mut settings = ServerSettings::new(60);
        (settings.preset, settings.borrowing) = (Preset::Plain, Borrowing::Immediate);
        let objects = crate::costs::objects_told_apart("evenkeel.dev/rate: 100/s;burst=10", "null");
        let scenario = Scenario { settings, objects, applied: Vec::new() };
        for seed in 0..3 {
            let report = run(&workload, &scenario, seed, &mut |_| {}).report;
            // 30 s are counted.
            let accepted = fleet(&report).completed;
            println!("100/s, {name}: {accepted} of 3000 in 30 s, apart {}", fleet(&report).apart.completed);
            assert!((2850..=3150).contains(&accepted), "{name}, seed {seed}: {accepted}");
        }
    }
}

#[test]
fn fl_3_instances_at_rest_write_once_a_second() {
    let flows = "  - {name: few, arrivals: {periodic: {every: 500ms}}, service: {fixed: 5ms}}\n";
    let report = simulate(&workload("3", flows), 60, 1);
    let fleet = fleet(&report);
    // 16 seconds are counted.
    assert!(fleet.publications <= 3 * 17, "{fleet:?}");
    assert_eq!((fleet.divisions, fleet.lost_messages), (0, 0), "{fleet:?}");
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let flows = "  - {name: a, count: 4, arrivals: {poisson: {rate: 100}}, service: {exponential: 20ms}}\n";
    let workload = workload("{count: 4, loss: 0.1}", flows);
    assert_eq!(simulate(&workload, 10, 3), simulate(&workload, 10, 3));
    assert_ne!(fleet(&simulate(&workload, 10, 3)).lost_messages, fleet(&simulate(&workload, 10, 4)).lost_messages);
}

/// Three instances in front of a service of twenty slots that collapses, at three times its capacity.
fn collapse(seconds: u32, warmup: u32, more: &str) -> Workload {
    let text = format!(
        "apiVersion: evenkeel.dev/v1\nkind: Workload\nmetadata: {{name: fleet}}\nspec:\n  seconds: {seconds}\n  warmup: {warmup}\n  \
         instances: 3\n  service: {{slots: 20, degradation: 0.4, sharing: processor}}\n{more}  flows:\n  - {{name: a, count: 6, \
         arrivals: {{poisson: {{rate: 200}}}}, service: {{exponential: 50ms}}, patience: 2s}}\n"
    );
    Workload::parse("fleet.yaml", text.as_bytes(), Preset::Plain).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A limit that the fleet finds, beginning at so many seats, or that is so many.
fn simulate_auto(workload: &Workload, start: u32, is_auto: bool, seed: u64) -> FleetReport {
    let mut settings = ServerSettings::new(start.into());
    (settings.preset, settings.borrowing) = (Preset::Plain, Borrowing::Immediate);
    settings.auto = is_auto.then(|| AutoSettings::new(1..=400, start));
    let scenario = Scenario { settings, objects: Objects::from(Preset::Plain), applied: Vec::new() };
    run(workload, &scenario, seed, &mut |_| {}).report.fleet.unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "some thousand requests")]
fn share(found: &FleetReport, right: &FleetReport) -> f64 {
    found.completed as f64 / right.completed as f64
}

#[expect(clippy::cast_precision_loss, reason = "some thousand requests")]
fn apart_share(found: &FleetReport, right: &FleetReport) -> f64 {
    found.apart.completed as f64 / right.completed as f64
}

/// FL-13, AL-12
#[test]
fn fl_13_three_instances_find_the_seats_of_a_service_that_collapses() {
    for (start, seed) in [(20, 1), (6, 2), (80, 3)] {
        let workload = collapse(60, 30, "");
        let right = simulate_auto(&workload, 20, false, seed);
        let found = simulate_auto(&workload, start, true, seed);
        let share = share(&found, &right);
        println!(
            "from {start}: {} seats, {share:.3} of the goodput of 20 (bar: 0.9); each for itself: {:.3}; {} publications, {} ledgers",
            found.seats,
            apart_share(&found, &right),
            found.publications,
            found.divisions
        );
        assert!(found.is_found && share >= 0.9, "from {start}: {share} {found:?}");
        // Four a second for each instance.
        assert!(found.publications <= 3 * 4 * 31, "{found:?}");
    }
}

/// FL-13
#[test]
fn fl_13_the_seats_of_a_fleet_follow_the_service() {
    let workload = collapse(80, 50, "  events: [{at: 30s, slots: 10}]\n");
    let right = simulate_auto(&workload, 10, false, 5);
    let found = simulate_auto(&workload, 20, true, 5);
    let share = share(&found, &right);
    println!("from 20 s after the capacity was halved: {} seats, {share:.3} of the goodput of 10", found.seats);
    assert!(share >= 0.85, "{share} {found:?}");
}

/// A message that does not say what is wrong, where, and what to do is of no use.
#[test]
fn instances_that_make_no_sense_are_problems() {
    let problem = |spec: &str| {
        let text = format!(
            "apiVersion: evenkeel.dev/v1\nkind: Workload\nmetadata: {{name: fleet}}\nspec:\n  seconds: 1\n{spec}\n  flows:\n  \
             - {{name: a, instances: [3], arrivals: {{poisson: {{rate: 1}}}}, service: {{fixed: 1ms}}}}\n"
        );
        Workload::parse("fleet.yaml", text.as_bytes(), Preset::Plain).unwrap_err().to_string()
    };
    let cases = [
        ("  instances: 1", "spec.instances: is 1, but must be a whole number from 2 to 32"),
        (
            "  instances: {loss: 0.1}",
            "spec.instances.count: is missing; say how many instances there are, as `count: 3`",
        ),
        ("  instances: {count: 4, loss: 0.9}", "spec.instances.loss: is 0.9, but must be a number from 0 to 0.5"),
        ("  instances: 3", "spec: the flow \"a\" names an instance that does not exist; use 0 to 2"),
        (
            "  warmup: 0",
            "spec: the flow \"a\" names an instance that does not exist; say how many there are, as `instances: 3` in spec",
        ),
        (
            "  instances: 4\n  service: {slots: 5}",
            "spec.service: needs `sharing: processor` with instances; set that, or leave it out",
        ),
        (
            "  instances: 4\n  events: [{at: 0s, slots: 5}]",
            "spec: events with slots need `service: {sharing: processor}` with instances; set that, or leave them out",
        ),
        (
            "  instances: 4\n  events: [{at: 0s, concurrency: 5}]",
            "spec: events with concurrency cannot be combined with instances; leave out either",
        ),
    ];
    for (spec, wanted) in cases {
        let found = problem(spec);
        assert!(found.contains(wanted), "{spec}: {found}");
    }
}
