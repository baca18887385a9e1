//! The bars of the specification that are about the protocol, in virtual time: no machine is too busy for them.

use evenkeel_fleet::FleetSettings;

use crate::figures::figure;
use crate::liveness::time_until;
use crate::simulation::{MS, Plan, SEC, Time, World};

const SEATS: u64 = 600;

/// Each figure is the worst of this many.
const FIGURE_SEEDS: u64 = 8;

fn busy_fleet(seed: u64, demands: &[u64]) -> World {
    let settings = FleetSettings { seats: SEATS, ..FleetSettings::default() };
    let mut world = World::new(Plan::calm(seed, demands.len(), settings));
    set_demands(&mut world, demands);
    world.run_until(5 * SEC);
    world
}

fn set_demands(world: &mut World, demands: &[u64]) {
    for (at, demand) in demands.iter().enumerate() {
        world.want(at, at as u64, *demand);
    }
}

/// The longest time of all seeds.
fn longest(measure: impl Fn(u64) -> Option<Time>) -> Time {
    (0..FIGURE_SEEDS)
        .map(|seed| measure(seed).unwrap_or_else(|| panic!("seed {seed}: never")))
        .max()
        .expect("at least one seed")
}

fn report(what: &str, measured: Time, bar: Time) {
    let ms = |time: Time| format!("{} ms", time / MS);
    figure(&format!("{what} (simulated)"), &ms(measured), &ms(bar), measured <= bar);
    assert!(measured <= bar, "{what}: {} ms, and the bar is {} ms", measured / MS, bar / MS);
}

/// In rounds: what an instance publishes is seen and divided, those that lose seats have published that they did, and those that gain
/// them have them.
fn report_rounds(what: &str, took: Time) {
    let round = 300 * MS;
    let (rounds, rest) = (took / round, took % round * 10 / round);
    let measure = format!("{what}: rounds of {} ms until everybody has its part (simulated)", round / MS);
    figure(&measure, &format!("{rounds}.{rest}"), "3", took <= 3 * round);
    assert!(took <= 3 * round, "{measure}: {rounds}.{rest}");
}

#[test]
fn fl_5_seats_follow_demand_within_a_second() {
    let took = longest(|seed| {
        let mut world = busy_fleet(seed, &[540, 30, 30]);
        assert!(world.in_use() >= SEATS * 95 / 100, "{} seats in use at first", world.in_use());
        set_demands(&mut world, &[30, 30, 540]);
        time_until(&mut world, |world| world.in_use() >= SEATS * 95 / 100 && world.processes[2].in_use >= 500)
    });
    report("90/5/5 to 5/5/90, 95 % of the seats in use", took, SEC);
}

#[test]
fn fl_10_seats_of_a_dead_instance_are_used_by_others() {
    let took = longest(|seed| {
        let mut world = busy_fleet(seed, &[SEATS; 3]);
        let dead = world.processes[0].nonce;
        let floor = world.etcd.ledger().and_then(|ledger| ledger.entry_of(dead)).unwrap().floor_held;
        world.kill_for_good(0);
        time_until(&mut world, |world| world.in_use() >= SEATS - floor)
    });
    report("seats of a dead instance, less its floor", took, 7 * SEC);
}

#[test]
fn fl_9_half_is_served_without_etcd_and_everything_a_second_after() {
    let took = longest(|seed| {
        let mut world = busy_fleet(seed, &[SEATS; 3]);
        let back = world.now + 60 * SEC;
        world.stop_etcd(back);
        world.run_until(back - SEC);
        assert_eq!(world.in_use(), SEATS / 2, "without etcd");
        world.run_until(back);
        time_until(&mut world, |world| world.in_use() == SEATS)
    });
    report("all seats in use after etcd is back", took, SEC);
}

#[test]
fn fl_9_nothing_starts_when_the_floor_has_ended() {
    let mut settings = FleetSettings { seats: SEATS, ..FleetSettings::default() };
    settings.terms.floor_hold_ms = 30_000;
    let mut world = World::new(Plan::calm(1, 3, settings));
    set_demands(&mut world, &[SEATS; 3]);
    world.run_until(5 * SEC);
    world.stop_etcd(60 * SEC);
    world.run_until(30 * SEC);
    assert_eq!(world.in_use(), SEATS / 2);
    world.run_until(40 * SEC);
    assert_eq!(world.in_use(), 0);
}

#[test]
fn fl_11_an_instance_that_begins_to_drain_serves_what_it_has_and_gives_back_the_rest() {
    let mut world = busy_fleet(4, &[SEATS; 3]);
    assert!(world.processes[0].in_use > 50, "{} seats in use at first", world.processes[0].in_use);
    world.give_back(0);
    world.want(0, 0, 50);
    let others = |world: &World| world.processes[1].in_use + world.processes[2].in_use;
    let took = time_until(&mut world, |world| others(world) >= SEATS - 50);
    report("seats that an instance does not need that drains", took.expect("never"), SEC);
    // What waits there is served, and it stays until it leaves.
    world.run_until(world.now + 5 * SEC);
    assert_eq!((world.processes[0].in_use, others(&world)), (50, SEATS - 50));
    world.want(0, 0, 0);
    let took = time_until(&mut world, |world| others(world) == SEATS);
    report("its last seats", took.expect("never"), 2 * SEC);
    assert_eq!(world.etcd.ledger().unwrap().entries.len(), 3);
    assert_eq!(world.checker.violation, None);
}

/// Nothing is written over a ledger of another version, and what it does not say is not used.
#[test]
fn fl_2_a_ledger_of_another_version_is_left_alone() {
    let mut settings = FleetSettings { seats: SEATS, ..FleetSettings::default() };
    settings.terms.floor_hold_ms = 20_000;
    let mut world = World::new(Plan::calm(2, 3, settings));
    set_demands(&mut world, &[SEATS; 3]);
    world.run_until(5 * SEC);
    assert_eq!(world.in_use(), SEATS);
    world.write_foreign_ledger();
    let (revision, writes) = (world.etcd.ledger_revision(), world.etcd.counts().ledger_writes);
    world.run_until(10 * SEC);
    assert_eq!(world.in_use(), SEATS / 2, "grants have ended, floors have not");
    world.run_until(40 * SEC);
    assert_eq!(world.in_use(), 0, "floors have ended");
    assert_eq!((world.etcd.ledger_revision(), world.etcd.counts().ledger_writes), (revision, writes));
    assert_eq!(world.checker.violation, None);
}

#[test]
fn fl_11_a_drained_instance_gives_its_seats_back_and_a_new_one_has_some() {
    let mut world = busy_fleet(3, &[SEATS; 3]);
    world.drain(0);
    let took = time_until(&mut world, |world| world.processes[1].in_use + world.processes[2].in_use == SEATS);
    report("seats of a drained instance", took.expect("never"), 2 * SEC);
    let entries = |world: &World| world.etcd.ledger().unwrap().entries.len();
    assert!(time_until(&mut world, |world| entries(world) == 2).is_some());
    // It comes back as another process, and has a seat as soon as one is free.
    assert!(time_until(&mut world, |world| entries(world) == 3).is_some());
    world.want(0, 0, SEATS);
    let took = time_until(&mut world, |world| world.processes[0].in_use > 0);
    report("a seat for a new instance", took.expect("never"), SEC);
}

#[test]
fn fl_5_thirty_two_instances_converge_and_a_storm_is_no_livelock() {
    let mut world = busy_fleet(5, &[10; 32]);
    // One wants everything: a round is that its demand is seen, the others' grants fall, and its own rises.
    world.want(7, 7, SEATS);
    let took = time_until(&mut world, |world| world.processes[7].in_use >= SEATS - 31 * 10);
    report_rounds("32 instances, of which one wants everything", took.expect("never"));

    let (start, writes) = (world.now, world.etcd.counts().ledger_writes);
    let (publications, conflicts) = (world.etcd.counts().publications, world.etcd.counts().conflicts);
    for step in 0..100_u64 {
        for at in 0..32_u64 {
            if (at * 7 + step * 13) % 5 < 2 {
                world.want(usize::try_from(at).unwrap(), at, (at * 31 + step * 17) % 60);
            }
        }
        world.run_until(world.now + 100 * MS);
    }
    let seconds = u64::try_from((world.now - start) / SEC).unwrap();
    let (writes, conflicts) = (world.etcd.counts().ledger_writes - writes, world.etcd.counts().conflicts - conflicts);
    let publications = world.etcd.counts().publications - publications;
    let (ledgers, conflicts) = (writes / seconds, conflicts / seconds);
    figure(
        "a storm of demand on 32 instances: ledgers a second, each a step forward (simulated)",
        &format!("{ledgers}, with {conflicts} conflicts"),
        "at least 5",
        ledgers >= 5,
    );
    let in_a_second = publications / seconds / 32;
    let measure = "the same: publications a second of an instance (simulated)";
    figure(measure, &in_a_second.to_string(), "4", publications <= 4 * 32 * seconds);
    assert!(ledgers >= 5, "{writes} ledgers in {seconds} s: a livelock");
    assert!(publications <= 4 * 32 * seconds, "{publications} publications in {seconds} s");
    // And when it is over, everybody has what it wants after as many rounds.
    (0..32).for_each(|at| world.want(at, at as u64, SEATS / 32));
    let has_all = |world: &World| world.processes.iter().all(|process| process.in_use == SEATS / 32);
    let took = time_until(&mut world, has_all);
    report_rounds("32 instances after the storm", took.expect("never"));
    assert_eq!(world.checker.violation, None);
}

#[test]
fn fl_3_an_instance_at_rest_writes_once_a_second() {
    let mut world = busy_fleet(9, &[100; 3]);
    let (publications, writes) = (world.etcd.counts().publications, world.etcd.counts().ledger_writes);
    world.run_until(world.now + 20 * SEC);
    let (publications, writes) =
        (world.etcd.counts().publications - publications, world.etcd.counts().ledger_writes - writes);
    figure(
        "publications of three instances at rest in 20 s (simulated)",
        &format!("{publications}, with {writes} ledgers"),
        "60",
        publications <= 60 && writes == 0,
    );
    assert!(publications <= 60 && writes == 0, "{publications} publications, {writes} ledgers");
}
