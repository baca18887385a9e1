//! Random numbers.

/// Random numbers.
pub(crate) struct Random(pub(crate) u64);

// === impl Random ===

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap_or(0)
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        uniform
    }

    pub(crate) fn exponential(&mut self, rate: f64) -> f64 {
        -(1.0 - self.uniform()).ln() / rate
    }

    /// With a median of 1.
    pub(crate) fn lognormal(&mut self, sigma: f64) -> f64 {
        let (one, other) = (1.0 - self.uniform(), self.uniform());
        let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
        (sigma * normal).exp()
    }
}
