//! Random numbers from a seed (xorshift64*): quick, and good enough to sample with.

/// A source of random numbers.
#[derive(Debug)]
pub(super) struct Random(u64);

// === impl Random ===

impl Random {
    /// The numbers that follow from a seed.
    pub(super) fn new(seed: u64) -> Self {
        // Nothing else follows from zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below another one, each as likely as the others as far as that matters; zero if there is none.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
