//! At no time do all instances together use more than the service has, whatever goes wrong; and the simulation finds every
//! fault that is put into the protocol.
//!
//! The short form runs in seconds. `cargo xtask fleet` runs the long one.

use crate::figures::{figure, told};
use crate::simulation::{Plan, SeededFault, World};

#[test]
fn fl_6_the_service_never_gets_more_than_it_has() {
    let (seeds, events) = (from_environment("FLEET_SEEDS", 20), from_environment("FLEET_EVENTS", 20_000));
    let first = from_environment("FLEET_FIRST_SEED", 0);
    let (mut is_full, mut overrun_max, mut ledgers) = (false, 0, 0);
    for seed in first..first + seeds {
        let mut world = World::new(Plan::faulty(seed, None));
        world.run(events);
        assert_eq!(world.checker.violation, None, "seed {seed}, event {}", world.events);
        let plan = Plan::faulty(seed, None);
        if !plan.is_resized {
            is_full |= world.checker.in_use_max == plan.settings.seats;
        }
        overrun_max = overrun_max.max(world.checker.overrun_max);
        ledgers += world.etcd.counts().ledger_writes;
    }
    figure(
        &format!("seeds of {seeds} with {events} events in which more is used, or may start, than there is"),
        &format!("0, in {ledgers} ledgers"),
        "0",
        true,
    );
    told("requests that outlived the grants of lost instances, at most", &overrun_max.to_string());
    // The simulation is not idle: all seats are used, and requests outlive grants.
    assert!(is_full && overrun_max > 0 && ledgers > seeds * events / 1000);
}

#[test]
fn fl_6_every_seeded_fault_is_found() {
    let events = from_environment("FLEET_EVENTS", 60_000);
    let mut missed = Vec::new();
    for fault in SeededFault::ALL {
        let found = (0..200).find_map(|seed| {
            let mut world = World::new(Plan::faulty(seed, Some(fault)));
            world.run(events);
            world.checker.violation.map(|violation| (seed, world.events, violation))
        });
        match found {
            Some((seed, event, violation)) => println!("{fault:?}: seed {seed}, event {event}, {violation}"),
            None => missed.push(fault),
        }
    }
    let (all, found) = (SeededFault::ALL.len(), SeededFault::ALL.len() - missed.len());
    figure(
        "faults that were put into the protocol and are found",
        &found.to_string(),
        &all.to_string(),
        missed.is_empty(),
    );
    assert!(missed.is_empty(), "not found: {missed:?}");
}

pub(crate) fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}
