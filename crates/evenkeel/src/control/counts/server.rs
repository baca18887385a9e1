//! `ServerMetrics`: the counts of the whole server: readers beside writers (OB-5, OB-8).
//!
//! Every level knows how many requests of its own there are. A thread that comes a millisecond or more after the last sum adds
//! them up, unless another thread does so already. The time since the last sum is accounted for with the numbers from before the
//! event that brought it about, so a value that holds for less than a millisecond may be missed, and nothing else is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use evenkeel_engine::time::{Instant, MILLISECOND, SECOND};

use super::crowd::{CROWD_KINDS, Doing};
use super::ratio::RatioHistogram;
use crate::control::level::Level;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The counts of the whole server.
#[derive(Debug)]
pub(crate) struct ServerMetrics {
    summed_at: AtomicI64,
    sums: Mutex<ServerSums>,
}

/// The counts of the whole server, as metrics show them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerSample {
    /// The ratios of each kind of request, in the order of [`CROWD_KINDS`].
    pub(crate) ratios: [RatioHistogram<15>; 4],
    /// The most in the last full second, in that order.
    pub(crate) peaks: [i64; 4],
    pub(crate) fair_fraction: f64,
}

/// The sums over all levels.
#[derive(Debug)]
struct ServerSums {
    sample: ServerSample,
    levels: Vec<Arc<Level>>,
    /// The most since the peaks were last reported.
    rising: [i64; 4],
    reported_at: Instant,
}

static RATIOS: [f64; 15] = [0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

// === impl ServerMetrics ===

impl ServerMetrics {
    pub(crate) fn new(now: Instant) -> Self {
        let ratios = [RatioHistogram::new(&RATIOS, now); 4];
        let sample = ServerSample { ratios, peaks: [0; 4], fair_fraction: 0.0 };
        let sums = ServerSums { sample, levels: Vec::new(), rising: [0; 4], reported_at: now };
        Self { summed_at: AtomicI64::new(now.as_nanos()), sums: Mutex::new(sums) }
    }

    /// Something is about to happen in a level: a good moment to account for the time before.
    #[inline]
    pub(crate) fn before_event(&self, now: Instant) {
        if now.as_nanos() - self.summed_at.load(Ordering::Relaxed) >= MILLISECOND {
            self.sum_up(now);
        }
    }

    /// The seats or the levels have changed (CC-17).
    pub(crate) fn configure(
        &self,
        now: Instant,
        levels: Vec<Arc<Level>>,
        waiting_max: i64,
        nominal_sum: i64,
        fair_fraction: f64,
    ) {
        let mut sums = self.lock();
        sums.sum_up(now);
        for ((doing, _), ratio) in CROWD_KINDS.iter().zip(&mut sums.sample.ratios) {
            ratio.set_denominator(now, if *doing == Doing::Waiting { waiting_max } else { nominal_sum });
        }
        sums.sample.fair_fraction = fair_fraction;
        sums.levels = levels;
    }

    /// A copy of the counts, as of now.
    pub(crate) fn sample(&self, now: Instant) -> ServerSample {
        let mut sums = self.lock();
        sums.sum_up(now);
        sums.sample
    }

    #[cold]
    fn sum_up(&self, now: Instant) {
        if let Ok(mut sums) = self.sums.try_lock() {
            sums.sum_up(now);
            self.summed_at.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ServerSums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ServerSums ===

impl ServerSums {
    fn sum_up(&mut self, now: Instant) {
        let mut counts = [0; 4];
        for level in &self.levels {
            let of_level = level.crowd();
            counts.iter_mut().zip(of_level).for_each(|(count, more)| *count += more);
        }
        for ((ratio, rising), count) in self.sample.ratios.iter_mut().zip(&mut self.rising).zip(counts) {
            ratio.correct(count);
            ratio.account(now);
            *rising = (*rising).max(count);
        }
        let passed = now - self.reported_at;
        if passed >= SECOND {
            // Requests that are present now also count in the second that begins.
            let rising = std::mem::replace(&mut self.rising, counts);
            // If more than one second has passed, nothing has happened in the last one.
            self.sample.peaks = if passed < 2 * SECOND { rising } else { counts };
            self.reported_at = self.reported_at + (passed - passed % SECOND);
        }
    }
}
