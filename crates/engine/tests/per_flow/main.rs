//! Queues per flow: the discipline beside a plain model of its rules, event by event, and the rules one by one.

mod driver;
mod modes;
mod plain;
mod rules;

use driver::{Driver, Load};

const TICK: i64 = 250_000;
const HOUR: i64 = 3_600_000_000_000;

/// What the driver is to do: each shape brings other rules into play.
const LOADS: [Load; 5] = [
    // Few seats, long queues.
    Load { seats: 3, flows: 5, limits: (16, 4, 8), seats_max: 1, weight_max: 1, linger: false, tick: TICK },
    // Wide requests, lingering, weights.
    Load { seats: 6, flows: 9, limits: (32, 4, 8), seats_max: 9, weight_max: 8, linger: true, tick: TICK },
    // The level is full most of the time (PF-7).
    Load { seats: 4, flows: 30, limits: (4, 2, 4), seats_max: 3, weight_max: 3, linger: false, tick: TICK },
    // Many flows that come and go (PF-6).
    Load { seats: 20, flows: 2000, limits: (64, 2, 8), seats_max: 2, weight_max: 100, linger: true, tick: TICK },
    // Many years of seat-time (PF-9).
    Load { seats: 50, flows: 20, limits: (64, 4, 8), seats_max: 2, weight_max: 5, linger: true, tick: 2 * HOUR },
];

fn run(seeds: std::ops::Range<u64>, events: usize) {
    for seed in seeds {
        for (number, load) in LOADS.into_iter().enumerate() {
            println!("load {number}, seed {seed}");
            let mut driver = Driver::new(load, seed);
            driver.run(events);
            assert_eq!(driver.rebased > 0, load.tick > HOUR, "keys are counted anew after years");
        }
    }
}

/// PF-1 to PF-9 hold for every decision: starts, rejections and their order are those of the plain model.
#[test]
fn every_decision_is_that_of_the_plain_model() {
    run(0..4, 3_000);
}

/// 10^7 events: `cargo test --release -p evenkeel-engine --test per_flow -- --ignored`.
#[test]
#[ignore = "takes minutes without optimisation"]
fn ten_million_decisions_are_those_of_the_plain_model() {
    run(100..125, 100_000);
}
