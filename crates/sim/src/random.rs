//! Random numbers from a seed: the same on every machine.

use evenkeel_engine::elementary::{exp, ln};
use evenkeel_engine::time::Nanos;

/// A generator of random numbers (xoshiro256++). Each use has a stream of its own, so that one does not shift the others.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u64; 4],
}

/// The purpose of a stream's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DrawPurpose {
    Arrivals = 1,
    ServiceTimes = 2,
    Retries = 3,
    Costs = 4,
    Messages = 5,
}

// === impl Random ===

impl Random {
    /// The stream of a flow for a purpose. It depends on the flow's name and number, and not on other flows.
    pub(crate) fn stream(seed: u64, flow: &str, number: u32, purpose: DrawPurpose) -> Self {
        // FNV-1a over the name, then mixed with the rest.
        let name = flow.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut state = mix(mix(seed) ^ name) ^ (u64::from(number) << 8 | purpose as u64);
        Self { state: [(); 4].map(|()| split_mix(&mut state)) }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// From 0 to below 1.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a binary64 holds")]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From the one to the other, both included, evenly.
    pub(crate) fn between(&mut self, least: Nanos, most: Nanos) -> Nanos {
        let choices = u128::from((most - least).max(0).unsigned_abs()) + 1;
        let chosen = (u128::from(self.next()) * choices) >> 64;
        least + Nanos::try_from(chosen).unwrap_or_default()
    }

    /// Exponentially distributed with that mean.
    #[inline]
    pub(crate) fn exponential(&mut self, mean: f64) -> Nanos {
        nanos(mean * -ln(1.0 - self.fraction()))
    }

    /// Distributed so that the logarithm is normal.
    #[expect(clippy::cast_precision_loss, reason = "a span of some seconds")]
    pub(crate) fn lognormal(&mut self, median: Nanos, sigma: f64) -> Nanos {
        nanos(median as f64 * exp(sigma * self.normal()))
    }

    /// Normally distributed with mean 0 and variance 1, by Marsaglia's polar method.
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.fraction() - 1.0, 2.0 * self.fraction() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is too long is as long as possible")]
fn nanos(span: f64) -> Nanos {
    span as Nanos
}

/// `SplitMix64`.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(flow: &str, number: u32) -> Random {
        Random::stream(7, flow, number, DrawPurpose::Arrivals)
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = |mut random: Random| random.next();
        assert_eq!(first(stream("a", 0)), first(stream("a", 0)));
        let others = [
            stream("a", 1),
            stream("b", 0),
            Random::stream(8, "a", 0, DrawPurpose::Arrivals),
            Random::stream(7, "a", 0, DrawPurpose::ServiceTimes),
        ];
        assert!(others.into_iter().all(|other| first(other) != first(stream("a", 0))));
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn distributions_have_their_means() {
        const COUNT: usize = 200_000;
        let mut random = stream("a", 0);
        let mut mean = |draw: &mut dyn FnMut(&mut Random) -> Nanos| {
            (0..COUNT).map(|_| draw(&mut random) as f64).sum::<f64>() / COUNT as f64
        };
        let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.02, "{found} is not {wanted}");
        near(mean(&mut |random| random.exponential(1e6)), 1e6);
        near(mean(&mut |random| random.between(1_000_000, 3_000_000)), 2e6);
        // The mean of a lognormal distribution is the median times exp(sigma² / 2).
        near(mean(&mut |random| random.lognormal(1_000_000, 0.5)), 1e6 * 0.125_f64.exp());
        near(mean(&mut |random| nanos((random.normal() * 1e3).powi(2))), 1e6);
    }
}
