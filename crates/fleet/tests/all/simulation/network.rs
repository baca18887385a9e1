//! The network between processes and etcd: delays and losses.

use super::{MS, SEC, Time};

#[derive(Debug)]
pub(crate) struct Network {
    /// Whether anything is delayed for long, or lost.
    pub(crate) is_faulty: bool,
    pub(crate) slow_until: Time,
    pub(crate) etcd_down_until: Time,
}

// === impl Network ===

impl Network {
    pub(crate) fn new(is_faulty: bool) -> Self {
        Self { is_faulty, slow_until: 0, etcd_down_until: 0 }
    }

    pub(crate) fn delay(&self, now: Time, random: &mut fastrand::Rng) -> Time {
        if !self.is_faulty {
            random.i64(300_000..2 * MS)
        } else if now < self.slow_until || random.u32(0..1000) < 20 {
            random.i64(0..2 * SEC)
        } else {
            random.i64(200_000..20 * MS)
        }
    }

    /// Whether a message is lost that is lost once in a thousand times `permille`.
    pub(crate) fn loses(&self, permille: u32, random: &mut fastrand::Rng) -> bool {
        self.is_faulty && random.u32(0..1000) < permille
    }
}
