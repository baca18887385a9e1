//! Queues per flow: the discipline beside a plain model of its rules, event by event, and the rules one by one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "a failure says with which load and seed it came")]

mod driver;
mod modes;
mod newcomers;
mod plain;
mod rules;

use driver::{Driver, Load};
use evenkeel_api::annotations::{NewcomerSeats, SeatShare};
use evenkeel_engine::queue_set::FlowLimits;
use evenkeel_engine::time::MILLISECOND;

const TICK: i64 = 250_000;
const HOUR: i64 = 3_600_000_000_000;

/// What the driver is to do: each shape brings other rules into play.
const LOADS: [Load; 12] = [
    // Few seats, long queues.
    Load {
        seats: 3,
        flows: 5,
        limits: (16, 4, 8),
        seats_max: 1,
        weight_max: 1,
        linger: false,
        changes: false,
        tick: TICK,
        flow_limits: [FREE; 2],
    },
    // Wide requests, lingering, weights.
    Load {
        seats: 6,
        flows: 9,
        limits: (32, 4, 8),
        seats_max: 9,
        weight_max: 8,
        linger: true,
        changes: false,
        tick: TICK,
        flow_limits: [FREE; 2],
    },
    // The level is full most of the time (PF-7).
    Load {
        seats: 4,
        flows: 30,
        limits: (4, 2, 4),
        seats_max: 3,
        weight_max: 3,
        linger: false,
        changes: false,
        tick: TICK,
        flow_limits: [FREE; 2],
    },
    // Many flows that come and go (PF-6).
    Load {
        seats: 20,
        flows: 2000,
        limits: (64, 2, 8),
        seats_max: 2,
        weight_max: 100,
        linger: true,
        changes: false,
        tick: TICK,
        flow_limits: [FREE; 2],
    },
    // Many years of seat-time (PF-9).
    Load {
        seats: 50,
        flows: 20,
        limits: (64, 4, 8),
        seats_max: 2,
        weight_max: 5,
        linger: true,
        changes: false,
        tick: 2 * HOUR,
        flow_limits: [FREE; 2],
    },
    // Seats are kept for newcomers: few seats, requests around the limit of what is quick (PF-10).
    Load {
        seats: 8,
        flows: 7,
        limits: (32, 4, 8),
        seats_max: 1,
        weight_max: 1,
        linger: false,
        changes: false,
        tick: 8 * TICK,
        flow_limits: [AUTO; 2],
    },
    // The same with wide requests, lingering and weights.
    Load {
        seats: 13,
        flows: 12,
        limits: (32, 4, 8),
        seats_max: 5,
        weight_max: 8,
        linger: true,
        changes: false,
        tick: 4 * TICK,
        flow_limits: [AUTO; 2],
    },
    // Always so many, and no flow holds more than three (PF-11).
    Load {
        seats: 9,
        flows: 8,
        limits: (16, 4, 8),
        seats_max: 3,
        weight_max: 3,
        linger: false,
        changes: false,
        tick: TICK,
        flow_limits: [CAPPED; 2],
    },
    // All of it, full, with many flows, and other rules now and then (BM-3).
    Load {
        seats: 12,
        flows: 40,
        limits: (4, 2, 4),
        seats_max: 4,
        weight_max: 5,
        linger: true,
        changes: false,
        tick: 4 * TICK,
        flow_limits: [AUTO, SHARES],
    },
    Load {
        seats: 30,
        flows: 500,
        limits: (64, 2, 8),
        seats_max: 2,
        weight_max: 9,
        linger: true,
        changes: false,
        tick: 16 * TICK,
        flow_limits: [AUTO, FREE],
    },
    // Running requests are charged more and less, and get other seats (CO-4).
    Load {
        seats: 6,
        flows: 9,
        limits: (32, 4, 8),
        seats_max: 4,
        weight_max: 8,
        linger: true,
        changes: true,
        tick: TICK,
        flow_limits: [FREE; 2],
    },
    Load {
        seats: 20,
        flows: 30,
        limits: (32, 4, 8),
        seats_max: 3,
        weight_max: 3,
        linger: true,
        changes: true,
        tick: 4 * TICK,
        flow_limits: [AUTO, SHARES],
    },
];

const FREE: FlowLimits = FlowLimits::NONE;
const AUTO: FlowLimits =
    FlowLimits { newcomer_seats: NewcomerSeats::Auto, newcomer_wait: MILLISECOND, flow_seats_max: None };
const CAPPED: FlowLimits = FlowLimits {
    newcomer_seats: NewcomerSeats::Share(SeatShare::Seats(2)),
    flow_seats_max: Some(SeatShare::Seats(3)),
    ..AUTO
};
const SHARES: FlowLimits = FlowLimits {
    newcomer_seats: NewcomerSeats::Share(SeatShare::Percent(20)),
    flow_seats_max: Some(SeatShare::Percent(30)),
    ..AUTO
};

fn run(seeds: std::ops::Range<u64>, events: usize) {
    for seed in seeds {
        for (number, load) in LOADS.into_iter().enumerate() {
            println!("load {number}, seed {seed}");
            let mut driver = Driver::new(load, seed);
            driver.run(events);
            assert_eq!(driver.rebased > 0, load.tick > HOUR, "keys are counted anew after years");
            let keeps = load.flow_limits.iter().any(|limits| !limits.newcomer_seats.is_none());
            assert_eq!(driver.kept > 0, keeps, "seats are kept for newcomers");
        }
    }
}

/// PF-1 to PF-11 hold for every decision: starts, rejections and their order are those of the plain model.
#[test]
fn every_decision_is_that_of_the_plain_model() {
    run(0..2, 2_500);
}

/// 10^7 events: `cargo test --release -p evenkeel-engine --test per_flow -- --ignored`.
#[test]
#[ignore = "takes minutes without optimisation"]
fn ten_million_decisions_are_those_of_the_plain_model() {
    run(100..125, 100_000);
}
