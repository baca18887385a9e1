//! One instance finds out for all how many seats the service should have (FL-13).

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use evenkeel_fleet::FoundSeats;

use crate::safety::from_environment;
use crate::simulation::{Plan, SEC, Time, World};

/// Requests of the service take 100 ms on average, and it works on so many at a time.
const SLOTS: u64 = 20;

/// Three instances with three times as many clients as the service has slots.
fn busy(seed: u64, start: u32) -> World {
    let mut world = World::new(Plan::calm_with_found_seats(seed, 3, SLOTS, start));
    (0..3).for_each(|at| world.want(at, at as u64, 3 * SLOTS));
    world
}

fn found(world: &World) -> FoundSeats {
    world.etcd.ledger().and_then(|ledger| ledger.auto).expect("a ledger with seats that are found")
}

/// Requests that were done in a span.
fn done_in(world: &mut World, span: Time) -> f64 {
    let before = world.finished;
    world.run_until(world.now + span);
    assert_eq!(world.checker.violation, None);
    (world.finished - before) as f64
}

/// FL-6, FL-13: the seats change all the time, in whatever state everything is. `cargo xtask fleet` runs the long form.
#[test]
fn fl_13_seats_that_are_found_are_never_exceeded() {
    let (seeds, events) = (from_environment("FLEET_SEEDS", 10), from_environment("FLEET_EVENTS", 20_000));
    let first = from_environment("FLEET_FIRST_SEED", 0);
    let mut resized = 0;
    for seed in first..first + seeds {
        let mut world = World::new(Plan::faulty_with_found_seats(seed));
        let mut seats = 0;
        for _ in 0..events / 1000 {
            world.run(1000);
            assert_eq!(world.checker.violation, None, "seed {seed}, event {}", world.events);
            let now = world.etcd.ledger().map_or(0, |ledger| ledger.seats);
            resized += u64::from(now != std::mem::replace(&mut seats, now));
        }
    }
    println!(
        "{seeds} seeds of {events} events: the seats were others after {resized} of {} thousands",
        seeds * events / 1000
    );
    assert!(resized > seeds * events / 10_000, "the simulation is not idle: {resized}");
}

#[test]
fn fl_13_a_fleet_finds_the_seats_of_its_service() {
    for (seed, start) in [(1, 20), (2, 5), (3, 100)] {
        let mut world = busy(seed, start);
        world.run_until(40 * SEC);
        let found = found(&world);
        assert!(
            found.is_known && (15..=26).contains(&found.limit_seats()),
            "seed {seed}: {found:?} {:#?}",
            world.decisions
        );
        // As many as the service can do with exactly as many requests inside as it has slots.
        let best = 10.0 * SLOTS as f64 * 30.0;
        let share = done_in(&mut world, 30 * SEC) / best;
        println!("from {start}: {} seats, {share:.3} of what the service can do (bar: 0.9)", found.limit_seats());
        assert!(share >= 0.9, "seed {seed}: {share}");
    }
}

#[test]
fn fl_13_another_instance_goes_on_when_the_one_that_finds_is_gone() {
    for seed in 0..4 {
        let mut world = busy(seed, 10);
        world.run_until(40 * SEC);
        let before = found(&world);
        let dead = world.processes.iter().position(|process| process.member.id() == before.by).expect("somebody finds");
        world.kill_for_good(dead);
        let took = crate::liveness::time_until(&mut world, |world| found(world).by != before.by).expect("another one");
        let after = found(&world);
        println!(
            "seed {seed}: another instance goes on after {:.1} s, from {}",
            took as f64 / 1e9,
            after.limit_seats()
        );
        assert!(took <= 4 * SEC, "{took}");
        assert!(
            after.is_known && after.limit_seats() == before.limit_seats(),
            "{before:?}, {after:?} {:#?}",
            world.decisions
        );
        world.run_until(world.now + 20 * SEC);
        let found = found(&world);
        assert!((14..=26).contains(&found.limit_seats()) && found.by == after.by, "{found:?}");
    }
}

/// One that comes back after a pause is no match for what was found meanwhile.
#[test]
fn fl_13_an_instance_that_was_stopped_begins_with_what_others_have_found() {
    let mut world = busy(7, 10);
    world.run_until(30 * SEC);
    let before = found(&world);
    let stopped = world.processes.iter().position(|process| process.member.id() == before.by).expect("somebody finds");
    world.processes[stopped].stopped_until = world.now + 15 * SEC;
    world.run_until(world.now + 14 * SEC);
    let meanwhile = found(&world);
    assert_ne!(meanwhile.by, before.by);
    world.run_until(world.now + 15 * SEC);
    let after = found(&world);
    assert!(after.is_known && (14..=26).contains(&after.limit_seats()), "{after:?}");
}
