//! The bars of costs and rates that are about the engine alone: how good estimates are, and what a request costs in time. What learning
//! is good for is measured with the simulator.

mod random;

use std::cell::LazyCell;
use std::hint::black_box;

use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use evenkeel_engine::cost::{CostAccount, CostClass, LearntCosts, SeatRule, SeatTimePrice};
use evenkeel_engine::rate::{FlowStamps, RateLimit};
use evenkeel_engine::time::{Instant, SECOND};
use random::Random;

const ROUND: u32 = 10_000;

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    estimates(&mut bars);
    steps(&mut bars);
    rates(&mut bars);
    bars.print("Costs and rates");
}

fn estimates(bars: &mut Bars) {
    bars.measure(
        "cost: error of the estimate after 50 requests, lognormal σ 0.5, median of 1,000 classes",
        "%",
        || {
            let mut errors: Vec<f64> = (1..=1000).map(error_after_fifty).collect();
            errors.sort_by(f64::total_cmp);
            (100.0 * errors[500], Bar::AtMost(30.0, "%"))
        },
    );
    bars.measure("cost: error 25 requests after a class got ten times dearer", "%", || {
        let (mut costs, class) = (LearntCosts::new(1), CostClass::new(1, 1, 1));
        (0..100).for_each(|_| costs.learn(&class, 1.0));
        (0..25).for_each(|_| costs.learn(&class, 10.0));
        let expected = costs.expected(&class).map_or(0.0, |expected| expected.cost);
        (100.0 * (expected / 10.0 - 1.0).abs(), Bar::AtMost(30.0, "%"))
    });
}

fn error_after_fifty(seed: u64) -> f64 {
    let (mut costs, mut random) = (LearntCosts::new(seed), Random(seed));
    let class = CostClass::new(1, 1, seed);
    for _ in 0..50 {
        costs.learn(&class, random.lognormal(0.5));
    }
    let mean = (0.5f64 * 0.5 / 2.0).exp();
    (costs.expected(&class).map_or(0.0, |expected| expected.cost) / mean - 1.0).abs()
}

/// What a request and a step of progress cost in time (CO-7).
fn steps(bars: &mut Bars) {
    bars.measure("cost: a request more, with 1,000 classes: expected, account, settled, learnt", "ns", || {
        let (mut costs, mut price) = (LearntCosts::new(1), SeatTimePrice::default());
        let (rule, mut random) = (SeatRule::new(10.0, 100), Random(1));
        let classes: Vec<CostClass> = (0..1000).map(|flow| CostClass::new(1, flow % 7, flow)).collect();
        let at = Instant::from_nanos;
        let nanos = nanos_per_operation(ROUND, || {
            for _ in 0..ROUND {
                let class = &classes[random.below(1000)];
                let expected = costs.expected(class).map_or(0.0, |expected| expected.cost);
                let mut account = CostAccount::open(expected, rule.seats(expected), Some(rule), price.per_unit());
                let _ = black_box(account.arise(20.0));
                let settled = account.settle(at(0), at(1_000_000));
                costs.learn(class, settled.cost);
                price.learn(settled.seat_time, settled.cost);
                black_box(settled.charge);
            }
        });
        (nanos, Bar::AtMost(60.0, "ns"))
    });
    bars.measure("cost: a step of progress", "ns", || {
        let mut account = CostAccount::open(1e9, 1, Some(SeatRule::new(1e9, 100)), Some(1.0));
        let nanos = nanos_per_operation(ROUND, || {
            for _ in 0..ROUND {
                black_box(account.arise(black_box(0.001)));
            }
        });
        (nanos, Bar::AtMost(15.0, "ns"))
    });
}

fn instant(seconds: f64) -> Instant {
    #[expect(clippy::cast_possible_truncation, reason = "some minutes")]
    let nanos = (seconds * 1e9) as i64;
    Instant::from_nanos(nanos)
}

/// A key by its number: a table of them would be as large as what is measured.
fn key(number: usize) -> u64 {
    Random(number as u64).next() | 1
}

/// A million keys, each of which owes something.
fn rates(bars: &mut Bars) {
    let limit = RateLimit::new(1, 3600 * SECOND, 1 << 20);
    let filled = LazyCell::new(|| {
        let mut tables: Vec<FlowStamps> = (0..64).map(|_| FlowStamps::new(1 << 14)).collect();
        for number in 0..1_000_000 {
            let (key, now) = (key(number), Instant::from_nanos(1));
            let _ = tables[(key >> 58) as usize].take(&limit, key, 1, now, now);
        }
        tables
    });
    bars.measure("cost: rates of 1,000,000 keys, memory", "MB", || {
        let bytes: usize = filled.iter().map(FlowStamps::bytes).sum();
        #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
        let megabytes = bytes as f64 / 1e6;
        (megabytes, Bar::AtMost(64.0, "MB"))
    });
    bars.measure("cost: rates of 1,000,000 keys, a request more", "ns", || {
        let (mut tables, mut random, mut now) = (filled.clone(), Random(3), 2);
        let nanos = nanos_per_operation(ROUND, || {
            for _ in 0..ROUND {
                now += 1000;
                let (key, now) = (key(random.below(1_000_000)), Instant::from_nanos(now));
                let _ = black_box(tables[(key >> 58) as usize].take(&limit, key, 1, now, now));
            }
        });
        (nanos, Bar::AtMost(40.0, "ns"))
    });
    bars.measure(
        "cost: rate of 100/s at 1.2 × Poisson for 60 s in virtual time: off the rate, nothing rejected",
        "%",
        || {
            let limit = RateLimit::new(100, SECOND, 10);
            let (mut stamps, mut random, mut now) = (FlowStamps::new(16), Random(11), 0.0);
            let (mut accepted, mut rejected) = (0, 0);
            while now < 60.0 {
                now += random.exponential(120.0);
                let at = instant(now);
                match stamps.take(&limit, 1, 1, at, at + 30 * SECOND) {
                    Ok(start) => accepted += u32::from(start <= instant(60.0)),
                    Err(_) => rejected += 1,
                }
            }
            assert_eq!(rejected, 0, "the wait limit allows all of them");
            (100.0 * (f64::from(accepted) / 6000.0 - 1.0).abs(), Bar::AtMost(0.5, "%"))
        },
    );
}
