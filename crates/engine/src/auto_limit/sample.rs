//! `Sample`: sums of what happened since the last tick, which the limit is told.

use crate::time::Nanos;

/// So many classes of requests are told apart. Further ones share their sums.
pub const CLASSES: usize = 16;

/// What happened since the last tick. A caller with several parts, such as levels or threads, keeps one for each, and
/// [merges](Self::merge) them.
///
/// ```
/// use evenkeel_engine::auto_limit::Sample;
/// use evenkeel_engine::time::MILLISECOND;
///
/// let mut sample = Sample::default();
/// sample.ended(0, 10 * MILLISECOND, 1, true);
/// sample.ended(0, 30 * MILLISECOND, 2, false);
/// sample.passed(5 * MILLISECOND, 3, true);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    pub(super) sums: Sums,
    pub(super) classes: [ClassSums; CLASSES],
}

/// Sums over a span of time. Times are in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// The length of the span, by the times of the ticks.
    pub(super) seconds: f64,
    /// The requests that ended well, and those that failed, timed out or were refused.
    pub(super) good: f64,
    pub(super) failed: f64,
    /// Seat-time of all requests that ended, and the squares of it.
    pub(super) seat_seconds: f64,
    pub(super) squares: f64,
    /// The integral of the seats in use, and the time in which somebody waited.
    pub(super) in_use: f64,
    pub(super) waited: f64,
}

/// The requests of one class that ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClassSums {
    pub(super) good: f64,
    pub(super) ended: f64,
    pub(super) seat_seconds: f64,
    pub(super) squares: f64,
}

// === impl Sample ===

impl Sample {
    /// A request ended that held so many seats for so long. It was good unless it failed, timed out or was refused (AL-5). The class
    /// is any number that requests of the same kind share, such as that of the flow schema (AL-9).
    #[inline]
    pub fn ended(&mut self, class: usize, held: Nanos, seats: u32, is_good: bool) {
        self.ended_with(class, seat_time(held, seats), is_good);
    }

    /// A request whose seats changed while it ran has ended: it held them for so much seat-time in all.
    #[inline]
    pub fn ended_with(&mut self, class: usize, seat_time: Nanos, is_good: bool) {
        let seat_seconds = seconds(seat_time);
        let square = seat_seconds * seat_seconds;
        let good = f64::from(u8::from(is_good));
        self.sums.good += good;
        self.sums.failed += 1.0 - good;
        self.sums.seat_seconds += seat_seconds;
        self.sums.squares += square;
        self.classes[class % CLASSES].add(&ClassSums { good, ended: 1.0, seat_seconds, squares: square });
    }

    /// A request that held so many seats for so long ended without a response, since its client left. The service did not fail,
    /// so nothing brakes; but the seats brought nothing, so the good responses cost that in addition.
    #[inline]
    pub fn left(&mut self, held: Nanos, seats: u32) {
        self.left_with(seat_time(held, seats));
    }

    /// The client of a request whose seats changed while it ran has left.
    #[inline]
    pub fn left_with(&mut self, seat_time: Nanos) {
        self.sums.seat_seconds += seconds(seat_time);
    }

    /// Time passed in which so many seats were in use, and somebody waited or not.
    #[inline]
    pub fn passed(&mut self, span: Nanos, seats_in_use: u32, somebody_waits: bool) {
        let span = seconds(span);
        self.sums.in_use += span * f64::from(seats_in_use);
        self.sums.waited += span * f64::from(u8::from(somebody_waits));
    }

    /// Time passed in which so many seats were kept by requests that have [ended](Self::ended) already: they cost that in addition.
    #[inline]
    pub fn lingered(&mut self, span: Nanos, seats: u32) {
        self.sums.seat_seconds += seconds(span) * f64::from(seats);
    }

    /// How many requests ended.
    pub fn ends(&self) -> f64 {
        self.sums.ended()
    }

    /// Adds what happened in another part of the same server in the same span of time. Somebody waited for as long as in the part where that
    /// was longest.
    pub fn merge(&mut self, other: &Self) {
        let waited = self.sums.waited.max(other.sums.waited);
        self.sums.add(0.0, &other.sums);
        self.sums.waited = waited;
        for (sums, more) in self.classes.iter_mut().zip(&other.classes) {
            sums.add(more);
        }
    }
}

// === impl Sums ===

impl Sums {
    pub(super) fn add(&mut self, seconds: f64, more: &Self) {
        self.seconds += seconds;
        self.good += more.good;
        self.failed += more.failed;
        self.seat_seconds += more.seat_seconds;
        self.squares += more.squares;
        self.in_use += more.in_use;
        self.waited += more.waited;
    }

    pub(super) fn ended(&self) -> f64 {
        self.good + self.failed
    }
}

// === impl ClassSums ===

impl ClassSums {
    pub(super) fn add(&mut self, more: &Self) {
        self.good += more.good;
        self.ended += more.ended;
        self.seat_seconds += more.seat_seconds;
        self.squares += more.squares;
    }
}

/// So many seats for so long.
fn seat_time(held: Nanos, seats: u32) -> Nanos {
    held.saturating_mul(seats.into())
}

/// A span of time in seconds; one that runs backwards has none.
#[expect(clippy::cast_precision_loss, reason = "spans of days are exact to a microsecond")]
pub(super) fn seconds(span: Nanos) -> f64 {
    span.max(0) as f64 / 1e9
}
