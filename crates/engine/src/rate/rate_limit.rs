//! `RateLimit`: the generic cell rate algorithm (RL-1, RL-2).

use super::parts::RatePart;
use crate::time::{Instant, Nanos, SECOND};

/// A rate: an amount for each period, and a burst that may pass at once.
///
/// ```
/// use evenkeel_engine::rate::RateLimit;
/// use evenkeel_engine::time::{Instant, SECOND};
///
/// // Ten a second, two at once.
/// let limit = RateLimit::new(10, SECOND, 2);
/// let now = Instant::from_nanos(0);
/// let (first, stamp) = limit.pass(None, now, 1);
/// let (second, stamp) = limit.pass(Some(stamp), now, 1);
/// let (third, _) = limit.pass(Some(stamp), now, 1);
/// assert_eq!([first, second, third].map(|at| at - now), [0, 0, SECOND / 10]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    amount: u64,
    period: Nanos,
    /// How long the rate takes to give a whole burst.
    burst_time: Nanos,
    burst: u64,
    /// How long the rate takes to give one.
    one: Nanos,
}

/// A request that would have to wait for too long.
///
/// Not `#[non_exhaustive]`: it is a moment with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverRate {
    /// When it would conform.
    pub conforms_at: Instant,
}

/// The longest that one request may hold up its flow: eleven days. Sums of it stay far from the end of time.
const SPAN_MAX: Nanos = 1_000_000_000_000_000;

// === impl RateLimit ===

impl RateLimit {
    /// `amount` for each `period`, and `burst` at once. None is below 1.
    pub fn new(amount: u64, period: Nanos, burst: u64) -> Self {
        let (amount, period, burst) = (amount.max(1), period.max(1), burst.max(1));
        let mut limit = Self { amount, period, burst_time: 0, burst, one: 0 };
        (limit.burst_time, limit.one) = (limit.reckon(burst), limit.reckon(1));
        limit
    }

    /// How long the rate takes to give so much, to the nanosecond.
    #[inline]
    pub fn span_of(&self, cost: u64) -> Nanos {
        if cost == 1 { self.one } else { self.reckon(cost) }
    }

    fn reckon(&self, cost: u64) -> Nanos {
        let half = self.amount / 2;
        // Whole requests fit into a word; a cost in bytes may not.
        let product = cost.checked_mul(self.period.unsigned_abs()).and_then(|product| product.checked_add(half));
        let span = match product {
            Some(product) => Nanos::try_from(product / self.amount).ok(),
            None => {
                let product = u128::from(cost) * u128::from(self.period.unsigned_abs()) + u128::from(half);
                Nanos::try_from(product / u128::from(self.amount)).ok()
            }
        };
        span.unwrap_or(SPAN_MAX).min(SPAN_MAX)
    }

    /// When a request of that cost may pass, at `now` at the earliest, and the stamp of its flow if it does then. A flow at rest has no
    /// stamp. A request that costs more than what may pass at once passes when its flow is at rest.
    #[inline]
    pub fn pass(&self, stamp: Option<Instant>, now: Instant, cost: u64) -> (Instant, Instant) {
        let span = self.span_of(cost);
        let from = stamp.map_or(now, |stamp| stamp.max(now));
        let conforms_at = from + (span.min(self.burst_time) - self.burst_time);
        (conforms_at.max(now), from + span)
    }

    /// How much a flow with that stamp may still take at once.
    pub fn left(&self, stamp: Option<Instant>, now: Instant) -> u64 {
        let ahead = stamp.map_or(0, |stamp| (stamp - now).max(0));
        let free = u128::from((self.burst_time - ahead).max(0).unsigned_abs());
        let left = free * u128::from(self.amount) / u128::from(self.period.unsigned_abs());
        let left = u64::try_from(left).unwrap_or(u64::MAX).min(self.burst);
        // A flow at rest may always send one request, also where its part of the burst is less than one.
        if ahead == 0 { left.max(1) } else { left }
    }

    /// The rate of a flow that has a part of it here, by the clock of that part: it gives as much as the whole in the same time, and that part
    /// at once.
    pub(super) fn in_part(&self, part: RatePart) -> Self {
        if part == RatePart::WHOLE {
            return *self;
        }
        let burst = part.of(i64::try_from(self.burst).unwrap_or(i64::MAX)).max(1).unsigned_abs();
        Self { burst_time: part.of(self.burst_time), burst, ..*self }
    }

    /// How long the rate takes to give what may pass at once.
    pub(super) fn burst_time(&self) -> Nanos {
        self.burst_time
    }

    /// How much in a second.
    #[expect(clippy::cast_precision_loss, reason = "an average is compared with it")]
    pub(super) fn in_a_second(&self) -> f64 {
        self.amount as f64 * (SECOND as f64 / self.period as f64)
    }

    /// How much in each [`period`](Self::period).
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// The period, in nanoseconds.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// How much may pass at once.
    pub fn burst(&self) -> u64 {
        self.burst
    }
}
