//! Random numbers from a seed: the same on every machine.

use evenkeel_engine::time::Nanos;

/// A generator of random numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

// === impl Random ===

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a binary64 holds")]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Between the two, evenly.
    pub(crate) fn between(&mut self, least: Nanos, most: Nanos) -> Nanos {
        least + scaled(most - least, self.fraction())
    }

    /// Exponentially distributed with that mean.
    pub(crate) fn exponential(&mut self, mean: Nanos) -> Nanos {
        scaled(mean, -(1.0 - self.fraction()).ln())
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "spans of seconds are exact enough")]
fn scaled(span: Nanos, factor: f64) -> Nanos {
    (span as f64 * factor) as Nanos
}
