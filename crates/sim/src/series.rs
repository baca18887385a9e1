//! `Series`: the usage of a level over time, in a bounded number of buckets.

use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::Nanos;

/// The usage of a level in one span of time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Bucket {
    /// Seat-nanoseconds in use.
    pub seat_time: i128,
    /// Request-nanoseconds of waiting.
    pub waiting_time: i128,
    /// The most seats in use.
    pub seats_max: i64,
    /// The most requests that waited.
    pub waiting_max: u64,
    /// The seats that the level could use, as of the end of the span.
    pub limit: i64,
    /// The seats that it has of its own, as of the end of the span.
    pub nominal: i64,
    /// The seats that nobody can borrow from it, as of the end of the span.
    pub floor: i64,
    /// Rejected requests, by [`reason_index`].
    pub rejected: [u64; REASONS.len()],
}

/// Buckets of equal width from time zero on. When there are too many, each two become one.
#[derive(Debug, Clone)]
pub struct Series {
    width: Nanos,
    buckets: Vec<Bucket>,
    /// The bucket that is being filled, and when it ends.
    pub(crate) open: Bucket,
    end: Nanos,
    /// When the last full bucket ended.
    until: Nanos,
}

/// The reasons of rejections, in the order of [`Bucket::rejected`].
pub const REASONS: [Rejection; 5] = [
    Rejection::QueueFull,
    Rejection::ConcurrencyLimit,
    Rejection::TimeOut,
    Rejection::TooManyLongRunning,
    Rejection::RateLimit,
];

/// At this many buckets, an even number, the width doubles.
const BUCKETS_MAX: usize = 600;

/// The place of a reason in [`REASONS`].
pub fn reason_index(reason: Rejection) -> usize {
    REASONS.iter().position(|known| *known == reason).unwrap_or_default()
}

// === impl Series ===

impl Series {
    /// No buckets yet; each is to be that wide, at first.
    pub(crate) fn new(width: Nanos) -> Self {
        let width = width.max(1);
        Self { width, buckets: Vec::new(), open: Bucket::default(), end: width, until: 0 }
    }

    /// How wide a bucket is.
    pub fn width(&self) -> Nanos {
        self.width
    }

    /// The buckets that are full, from time zero on; at the end of a run, the last one too.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// When each bucket begins, and at last when the last one ends: one more than there are buckets.
    pub fn edges(&self) -> Vec<Nanos> {
        let begin = |index| self.width.saturating_mul(Nanos::try_from(index).unwrap_or(Nanos::MAX)).min(self.until);
        (0..=self.buckets.len()).map(begin).collect()
    }

    /// When the bucket ends that is being filled.
    #[inline]
    pub(crate) fn end(&self) -> Nanos {
        self.end
    }

    /// Ends the bucket. The next one starts with the state of the level then.
    pub(crate) fn close_bucket(&mut self, now: Nanos, seats: i64, waiting: u64) {
        self.until = now;
        let Bucket { limit, nominal, floor, .. } = self.open;
        let next = Bucket { limit, nominal, floor, seats_max: seats, waiting_max: waiting, ..Bucket::default() };
        self.buckets.push(std::mem::replace(&mut self.open, next));
        if self.buckets.len() >= BUCKETS_MAX {
            let joined = self.buckets.chunks(2).filter_map(|pair| pair.iter().copied().reduce(Bucket::join));
            self.buckets = joined.collect();
            self.width = self.width.saturating_mul(2);
        }
        self.end = self.end.saturating_add(self.width);
    }
}

// === impl Bucket ===

impl Bucket {
    /// Merges this bucket and the one after it.
    fn join(self, next: Self) -> Self {
        let mut rejected = self.rejected;
        rejected.iter_mut().zip(next.rejected).for_each(|(count, more)| *count += more);
        Self {
            seat_time: self.seat_time + next.seat_time,
            waiting_time: self.waiting_time + next.waiting_time,
            seats_max: self.seats_max.max(next.seats_max),
            waiting_max: self.waiting_max.max(next.waiting_max),
            rejected,
            ..next
        }
    }
}
