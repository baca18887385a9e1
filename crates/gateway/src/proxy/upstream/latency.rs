//! How long an upstream takes to respond, as the dashboard shows it.
//!
//! Every worker counts for itself. It measures some requests in each tick of its timer only, so that a busy worker does
//! not read the clock twice for each request.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The counters of one worker, on a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LatencyCounters {
    responses: AtomicU64,
    timed: AtomicU64,
    sum_ns: AtomicU64,
}

/// The counters of all workers for one upstream.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Mutex<Vec<Weak<LatencyCounters>>>);

/// The latency of an upstream, as one worker measures it.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    counters: Arc<LatencyCounters>,
    /// The tick of the timer, and how many requests may still be measured in it.
    budget: Cell<(u64, u8)>,
}

/// How many requests are measured in one tick, at most.
const TIMED_PER_TICK: u8 = 8;

// === impl Latencies ===

impl Latencies {
    /// A stopwatch for another worker.
    pub(crate) fn stopwatch(&self) -> Stopwatch {
        let counters = Arc::<LatencyCounters>::default();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The samples of workers that a new generation has replaced.
        all.retain(|counters| counters.strong_count() > 0);
        all.push(Arc::downgrade(&counters));
        Stopwatch { counters, budget: Cell::new((0, TIMED_PER_TICK)) }
    }

    /// Responses, how many were measured, and the sum of their latencies in nanoseconds.
    pub(crate) fn sums(&self) -> [u64; 3] {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums = [0_u64; 3];
        for counters in all.iter().filter_map(Weak::upgrade) {
            let of = [&counters.responses, &counters.timed, &counters.sum_ns];
            sums.iter_mut().zip(of).for_each(|(sum, one)| *sum += one.load(Ordering::Relaxed));
        }
        sums
    }
}

// === impl Stopwatch ===

impl Stopwatch {
    /// A request is sent. `tick` is the time of the worker's timer.
    #[inline]
    pub(crate) fn start(&self, tick: u64) -> Option<Instant> {
        let (of, left) = self.budget.get();
        let left = if of == tick { left } else { TIMED_PER_TICK };
        self.budget.set((tick, left.saturating_sub(1)));
        (left > 0).then(Instant::now)
    }

    /// The response has begun. Returns how long that took, if it was measured.
    #[inline]
    pub(crate) fn stop(&self, started: Option<Instant>) -> Option<Duration> {
        self.counters.responses.fetch_add(1, Ordering::Relaxed);
        let elapsed = started?.elapsed();
        let ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.counters.timed.fetch_add(1, Ordering::Relaxed);
        self.counters.sum_ns.fetch_add(ns, Ordering::Relaxed);
        Some(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_requests_of_each_tick_are_measured_and_all_are_counted() {
        let latencies = Latencies::default();
        let (first, second) = (latencies.stopwatch(), latencies.stopwatch());
        for _ in 0..20 {
            first.stop(first.start(1));
        }
        second.stop(second.start(1));
        second.stop(second.start(2));
        assert_eq!(latencies.sums()[..2], [22, 10]);
        drop(first);
        assert_eq!(latencies.sums()[..2], [2, 2]);
    }
}
