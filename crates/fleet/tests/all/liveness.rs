//! After faults every seat is used again, and demand is followed (FL-5, FL-11).

use crate::simulation::{MS, Plan, SEC, Time, World};

#[test]
fn fl_11_after_faults_every_seat_is_used_again() {
    let mut worst = 0;
    for seed in 0..8 {
        let mut plan = Plan::faulty(seed, None);
        plan.is_resized = false;
        let mut world = World::new(plan);
        world.run(20_000);
        world.heal();
        // What dead processes may still use is given back when their floors end.
        let floor_hold = Time::from(plan.settings.terms.floor_hold_ms) * MS;
        world.run_until(world.now + 35 * SEC + floor_hold * 11 / 10);
        let running: Vec<usize> = (0..world.processes.len())
            .filter(|at| world.processes[*at].is_alive && !world.processes[*at].is_draining)
            .collect();
        if running.is_empty() {
            continue;
        }
        // Everybody wants everything; then one wants everything and the others nothing.
        for (phase, others) in [(0, plan.settings.seats), (1, 0)] {
            for at in &running {
                let wanted = if *at == running[0] { plan.settings.seats } else { others };
                world.want(*at, *at as u64, wanted);
            }
            // Every instance keeps a seat for its first request.
            let kept = if phase == 0 { 0 } else { running.len() as u64 - 1 };
            let took = time_until(&mut world, |world| world.in_use() >= plan.settings.seats - kept);
            assert_eq!(world.checker.violation, None, "seed {seed}");
            let took = took.unwrap_or_else(|| {
                panic!(
                    "seed {seed}: {} of {} seats in use: {:?}",
                    world.in_use(),
                    plan.settings.seats,
                    world.etcd.ledger()
                )
            });
            worst = worst.max(took);
        }
    }
    println!("every seat in use after {} ms at most", worst / MS);
}

/// How long it takes until something holds, up to twenty seconds.
pub(crate) fn time_until(world: &mut World, holds: impl Fn(&World) -> bool) -> Option<Time> {
    let start = world.now;
    while world.now - start < 20 * SEC {
        if holds(world) {
            return Some(world.now - start);
        }
        world.run_until(world.now + 10 * MS);
    }
    None
}
