//! What a scenario came to, over several seeds.

use crate::run::{Bucket, Record, run};
use crate::scenarios::Scenario;

/// What came of a scenario, beside the fixed limit that is right, with the same seeds.
#[derive(Debug)]
pub struct Figures {
    /// Goodput over that of the right limit.
    pub goodput: Worst,
    /// Seconds until nine tenths of that goodput are reached and kept for five seconds; infinite if never.
    pub recovery: Recovery,
    /// The average limit in the second half.
    pub limit: f64,
    /// The 99th percentile of the time that requests held their seats, in seconds.
    pub held_p99: f64,
}

/// The average and the worst of several seeds.
#[derive(Debug, Clone, Copy)]
pub struct Worst {
    /// The average.
    pub mean: f64,
    /// The worst.
    pub worst: f64,
}

/// How fast something was reached.
#[derive(Debug, Clone)]
pub struct Recovery(Vec<f64>);

/// For so many buckets a goodput is averaged, and has to be kept.
const AVERAGED: usize = 10;
const KEPT: usize = 50;

/// Runs a scenario with each of the seeds.
pub fn measure(scenario: &Scenario, seeds: impl Iterator<Item = u64>) -> Figures {
    let (mut ratios, mut times, mut limits, mut held) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for seed in seeds {
        let right = run(&scenario.environment, &scenario.right(), scenario.span, seed);
        let mut found = run(&scenario.environment, &scenario.seats(), scenario.span, seed);
        let goal = mean(good(window(&right, scenario)));
        ratios.push(mean(good(window(&found, scenario))) / goal);
        times.push(recovery(window(&found, scenario), 0.9 * goal));
        let buckets = window(&found, scenario);
        limits.push(mean(buckets[buckets.len() / 2..].iter().map(|bucket| bucket.limit)));
        held.push(percentile(&mut found.held, 0.99));
    }
    Figures {
        goodput: Worst { mean: mean(ratios.iter().copied()), worst: ratios.into_iter().fold(f64::MAX, f64::min) },
        recovery: Recovery(times),
        limit: mean(limits),
        held_p99: mean(held),
    }
}

/// The buckets that count.
fn window<'r>(record: &'r Record, scenario: &Scenario) -> &'r [Bucket] {
    let last = record.buckets.len();
    &record.buckets[bucket(scenario.from).min(last)..bucket(scenario.to).min(last)]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tenths of some seconds")]
fn bucket(seconds: f64) -> usize {
    (seconds * 10.0) as usize
}

fn good(buckets: &[Bucket]) -> impl Iterator<Item = f64> + '_ {
    buckets.iter().map(|bucket| bucket.good)
}

/// Seconds until the goodput over a second reaches a goal and stays there.
#[expect(clippy::cast_precision_loss, reason = "tenths of some seconds")]
fn recovery(buckets: &[Bucket], goal: f64) -> f64 {
    let mut kept = 0;
    for (index, second) in buckets.windows(AVERAGED).enumerate() {
        kept = if mean(good(second)) < goal { 0 } else { kept + 1 };
        if kept > KEPT {
            return (index - KEPT) as f64 * 0.1;
        }
    }
    f64::INFINITY
}

/// The average of some numbers; 0 if there are none.
pub(crate) fn mean(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.into_iter().fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index below the length"
)]
fn percentile(numbers: &mut [f64], part: f64) -> f64 {
    if numbers.is_empty() {
        return 0.0;
    }
    let index = ((numbers.len() - 1) as f64 * part) as usize;
    *numbers.select_nth_unstable_by(index, f64::total_cmp).1
}

// === impl Recovery ===

impl Recovery {
    /// The average of the seeds that got there, and the slowest of all.
    pub fn seconds(&self) -> Worst {
        let reached = self.0.iter().copied().filter(|time| time.is_finite());
        Worst { mean: mean(reached), worst: self.0.iter().copied().fold(0.0, f64::max) }
    }

    /// How many seeds took at most so long.
    pub fn within(&self, seconds: f64) -> usize {
        self.0.iter().filter(|time| **time <= seconds).count()
    }
}
