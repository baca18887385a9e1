//! `LevelRecord`: the counts of a level while a simulation runs.

use evenkeel_engine::limits::LevelLimits;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::Nanos;

use crate::series::{REASONS, Series, reason_index};

/// Names a level of a simulation: an index into [`Simulator::levels`](crate::Simulator::levels). It stays when the level goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelNumber(pub(crate) u32);

/// A level, as it was over the whole run.
#[derive(Debug)]
pub struct LevelRecord {
    name: Box<str>,
    limits: LevelLimits,
    series: Series,
    totals: Occupancy,
    /// As of the last event.
    as_of: Nanos,
    seats: i64,
    waiting: u64,
}

/// How much of a level was in use, since counting began.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Occupancy {
    /// How long was counted.
    pub span: Nanos,
    /// Seat-nanoseconds in use.
    pub seat_time: i128,
    /// Request-nanoseconds of waiting.
    pub waiting_time: i128,
    /// The most seats in use.
    pub seats_max: i64,
    /// The most requests that waited.
    pub waiting_max: u64,
    /// Rejected requests, by the place of their reason in [`REASONS`].
    pub rejected: [u64; REASONS.len()],
}

/// What a level does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PresentLevel {
    seats: i64,
    waiting: u64,
    rejected: [u64; REASONS.len()],
}

// === impl LevelNumber ===

impl LevelNumber {
    /// The index into [`Simulator::levels`](crate::Simulator::levels).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl LevelRecord ===

impl LevelRecord {
    pub(crate) fn new(name: &str, now: Nanos, bucket_width: Nanos) -> Self {
        let mut record = Self {
            name: name.into(),
            limits: LevelLimits::default(),
            series: Series::new(bucket_width),
            totals: Occupancy::default(),
            as_of: 0,
            seats: 0,
            waiting: 0,
        };
        // A level that comes later has buckets from time zero on too.
        record.advance(now);
        record.totals = Occupancy::default();
        record
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The seats that its configuration gives it, as it is now or was last.
    pub fn limits(&self) -> LevelLimits {
        self.limits
    }

    /// Its time series.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// How much of it was in use since counting began.
    pub fn totals(&self) -> &Occupancy {
        &self.totals
    }

    /// Notes the seats in use and the waiting requests from now on.
    #[inline]
    pub(crate) fn note(&mut self, now: Nanos, seats: i64, waiting: u64) {
        self.advance(now);
        (self.seats, self.waiting) = (seats, waiting);
        self.totals.seats_max = self.totals.seats_max.max(seats);
        self.totals.waiting_max = self.totals.waiting_max.max(waiting);
        let bucket = &mut self.series.open;
        bucket.seats_max = bucket.seats_max.max(seats);
        bucket.waiting_max = bucket.waiting_max.max(waiting);
    }

    /// The seats in use, the waiting requests and all rejected ones, as of the last event.
    pub(crate) fn present(&self) -> PresentLevel {
        PresentLevel { seats: self.seats, waiting: self.waiting, rejected: self.totals.rejected }
    }

    /// The same level of a server has changed, of several whose levels are one here.
    pub(crate) fn add_change(&mut self, now: Nanos, before: &PresentLevel, after: &PresentLevel) {
        let (seats, waiting) = (self.seats + after.seats - before.seats, self.waiting + after.waiting - before.waiting);
        self.note(now, seats, waiting);
        for (reason, (before, after)) in before.rejected.iter().zip(after.rejected).enumerate() {
            let more = after.saturating_sub(*before);
            self.totals.rejected[reason] += more;
            self.series.open.rejected[reason] += more;
        }
    }

    /// Notes the limits, and how many seats the level may use, from now on.
    pub(crate) fn set_limits(&mut self, now: Nanos, limits: LevelLimits, limit: i64) {
        self.advance(now);
        self.limits = limits;
        let bucket = &mut self.series.open;
        (bucket.limit, bucket.nominal, bucket.floor) = (limit, limits.nominal, limits.min);
    }

    /// A request is rejected, at the time of the last event.
    pub(crate) fn count_rejection(&mut self, reason: Rejection) {
        let reason = reason_index(reason);
        self.totals.rejected[reason] += 1;
        self.series.open.rejected[reason] += 1;
    }

    /// Starts counting; earlier events are only in the series.
    pub(crate) fn reset(&mut self, now: Nanos) {
        self.advance(now);
        self.totals = Occupancy { seats_max: self.seats, waiting_max: self.waiting, ..Occupancy::default() };
    }

    /// Accounts for the time up to now, in which nothing has changed.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        let span = now - self.as_of;
        if span <= 0 {
            return;
        }
        self.totals.span += span;
        while self.series.end() <= now {
            let end = self.series.end();
            self.add(end - self.as_of);
            self.as_of = end;
            self.series.close_bucket(end, self.seats, self.waiting);
        }
        self.add(now - self.as_of);
        self.as_of = now;
    }

    /// Ends the run: the last bucket counts, whether it is full or not.
    pub(crate) fn close(&mut self, now: Nanos) {
        self.advance(now);
        if self.series.end() - self.series.width() < now {
            self.series.close_bucket(now, self.seats, self.waiting);
        }
    }

    #[inline]
    fn add(&mut self, span: Nanos) {
        let seat_time = i128::from(self.seats) * i128::from(span);
        let waiting_time = i128::from(self.waiting) * i128::from(span);
        self.totals.seat_time += seat_time;
        self.totals.waiting_time += waiting_time;
        self.series.open.seat_time += seat_time;
        self.series.open.waiting_time += waiting_time;
    }
}

// === impl Occupancy ===

impl Occupancy {
    /// The seats in use, on average.
    pub fn seats_mean(&self) -> f64 {
        mean(self.seat_time, self.span)
    }

    /// The requests that waited, on average.
    pub fn waiting_mean(&self) -> f64 {
        mean(self.waiting_time, self.span)
    }
}

#[expect(clippy::cast_precision_loss, reason = "an average for people")]
fn mean(sum: i128, span: Nanos) -> f64 {
    if span <= 0 { 0.0 } else { sum as f64 / span as f64 }
}
