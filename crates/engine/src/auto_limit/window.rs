//! `Window`: what the limit knows of a span of time, as sums over the requests that ended in it.

use super::sample::{CLASSES, ClassSums, Sample, Sums};
use crate::elementary::ln;

/// A span of time at one limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    pub(super) sums: Sums,
    classes: [ClassSums; CLASSES],
}

/// How much more throughput comes of more seats: `d ln(throughput) / d ln(seats)`, from two windows at different limits.
///
/// 1: each further seat brings as much as the others. 0: further seats bring nothing. Below 0: they do harm.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Elasticity {
    /// The estimate.
    pub value: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// The least squared coefficient of variation that is assumed for the time of a request. In a queue inside of the service, all
/// times of a window share the same noise, so that they look more certain than they are.
const VARIATION_MIN: f64 = 0.3;

/// A class has a say in the comparison of two windows if it has so many good responses in both.
const CLASS_GOOD_MIN: f64 = 8.0;

/// The classes are compared one by one if those with a say have this share of the good responses.
const CLASSES_SHARE_MIN: f64 = 0.8;

// === impl Window ===

impl Window {
    pub(super) fn add(&mut self, seconds: f64, sample: &Sample) {
        self.sums.add(seconds, &sample.sums);
        for (sums, more) in self.classes.iter_mut().zip(&sample.classes) {
            sums.add(more);
        }
    }

    /// The mean number of seats in use.
    pub(super) fn seats(&self) -> f64 {
        self.sums.in_use / self.sums.seconds.max(1e-9)
    }

    /// The logarithm of K, the seat-time for a good response. Time that failed requests took is part of what the good ones cost.
    pub(super) fn ln_cost(&self) -> f64 {
        ln_cost(self.sums.seat_seconds, self.sums.good)
    }

    /// The variance of [`ln_cost`](Self::ln_cost).
    pub(super) fn variance(&self) -> f64 {
        variance(self.sums.seat_seconds, self.sums.squares, self.sums.ended(), self.sums.good)
    }

    /// The elasticity between an earlier window and this one; `None` if their seats hardly differ.
    ///
    /// By Little's law, throughput is seats / K, so the elasticity is 1 − d ln K / d ln seats.
    pub(super) fn elasticity_since(&self, base: &Self, difference_min: f64) -> Option<Elasticity> {
        let seats = ln(self.seats().max(1e-9) / base.seats().max(1e-9));
        if !seats.is_finite() || seats.abs() < difference_min {
            return None;
        }
        let (cost, variance) = self.by_class(base).unwrap_or_else(|| {
            let cost = self.ln_cost() - base.ln_cost();
            (cost, self.variance() + base.variance())
        });
        Some(Elasticity { value: 1.0 - cost / seats, deviation: variance.sqrt() / seats.abs() })
    }

    /// The change of ln K and its variance, class by class (AL-9): a change of the shares of cheap and dear classes is no change of the
    /// service. `None` unless several classes have something to say.
    fn by_class(&self, base: &Self) -> Option<(f64, f64)> {
        let (mut weighted, mut weight, mut classes, mut good) = (0.0, 0.0, 0, 0.0);
        for (now, before) in self.classes.iter().zip(&base.classes) {
            if now.good < CLASS_GOOD_MIN || before.good < CLASS_GOOD_MIN {
                continue;
            }
            let change = now.ln_cost() - before.ln_cost();
            let certainty = 1.0 / (now.variance() + before.variance());
            weighted += certainty * change;
            weight += certainty;
            classes += 1;
            good += now.good;
        }
        let is_enough = classes > 1 && good >= CLASSES_SHARE_MIN * self.sums.good;
        is_enough.then(|| (weighted / weight, 1.0 / weight))
    }
}

// === impl ClassSums ===

impl ClassSums {
    fn ln_cost(&self) -> f64 {
        ln_cost(self.seat_seconds, self.good)
    }

    fn variance(&self) -> f64 {
        variance(self.seat_seconds, self.squares, self.ended, self.good)
    }
}

fn ln_cost(seat_seconds: f64, good: f64) -> f64 {
    ln(seat_seconds.max(1e-9) / good.max(0.5))
}

/// The squared coefficient of variation of the times, over the number of good responses.
fn variance(seat_seconds: f64, squares: f64, ended: f64, good: f64) -> f64 {
    if good < 2.0 {
        return 1.0;
    }
    let mean = (seat_seconds / ended).max(1e-9);
    (squares / ended / (mean * mean) - 1.0).max(VARIATION_MIN) / good
}
