//! The monotonic clock of the machine, read from the processor's counter for a millisecond at a time.
//!
//! Reading the machine's clock takes about 25 ns, the counter 9 ns, and a request reads the time twice. Each thread compares the two
//! now and then: it keeps an anchor (a reading of both, and the rate between them), and counts on from there. See decision 170.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Instant;

use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};

use super::nanos;

/// One moment by the counter and by the clock, and how to count on from there.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    counter: u64,
    /// Nanoseconds since [`origin`].
    at: Nanos,
    /// Nanoseconds for each tick of the counter, times 2^32; 0 if that is not known.
    rate: u64,
    /// For how many ticks the anchor may be used: none unless two comparisons in a row found the same rate.
    window: u64,
    /// The window of a clock that follows tokio's time.
    tokio_window: u64,
}

/// A reading of both clocks.
#[derive(Debug, Clone, Copy)]
struct Comparison {
    counter: u64,
    at: Nanos,
    /// How far the two may be apart.
    uncertainty: Nanos,
}

const MICROSECOND: Nanos = MILLISECOND / 1_000;
/// How long a thread counts on before it reads the clock again. The clock is adjusted by less than a microsecond in that time (by
/// at most 500 millionths).
const WINDOW: Nanos = MILLISECOND;
/// Comparisons that are closer to each other say too little about the rate.
const DISTANCE_MIN: Nanos = 50 * MICROSECOND;
/// After a longer time, a comparison says nothing: the machine may have been suspended.
const DISTANCE_MAX: Nanos = SECOND;
/// A comparison that took longer was interrupted.
const UNCERTAINTY_MAX: Nanos = MICROSECOND;

thread_local! {
    static ANCHOR: Cell<Anchor> = const { Cell::new(Anchor::NONE) };
}

/// Nanoseconds since [`origin`] by the clock of the machine. `None` where there is no counter to read, and if `follows_tokio`, where
/// tokio's time may be paused: the caller has to ask tokio then.
#[inline]
pub(super) fn now(follows_tokio: bool) -> Option<Nanos> {
    if !HAS_COUNTER {
        return None;
    }
    let anchor = ANCHOR.get();
    let window = if follows_tokio { anchor.tokio_window } else { anchor.window };
    if window > 0 {
        let passed = counter().wrapping_sub(anchor.counter);
        if passed < window {
            return Some(anchor.at + anchor.nanos_of(passed));
        }
    }
    look(follows_tokio)
}

/// The moment that all threads count from.
pub(super) fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

#[cold]
fn look(follows_tokio: bool) -> Option<Nanos> {
    if !is_reliable() || (follows_tokio && may_be_paused()) {
        return None;
    }
    let origin = origin();
    let before = nanos(origin.elapsed());
    let counter = counter();
    let uncertainty = nanos(origin.elapsed()) - before;
    let found = Comparison { counter, at: before + uncertainty / 2, uncertainty };
    ANCHOR.set(ANCHOR.get().next(found, follows_tokio));
    Some(found.at)
}

/// Whether the kernel itself takes its time from the counter: only if it runs at one rate, and is the same for all processors.
fn is_reliable() -> bool {
    static IS_RELIABLE: OnceLock<bool> = OnceLock::new();
    *IS_RELIABLE.get_or_init(|| {
        let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        source.is_ok_and(|source| source.trim() == "tsc")
    })
}

/// Whether tokio's time may stand still in this thread: tests can pause that of a runtime with one thread, and of no other.
fn may_be_paused() -> bool {
    use tokio::runtime::{Handle, RuntimeFlavor};
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::MultiThread)
}

const HAS_COUNTER: bool = cfg!(all(target_arch = "x86_64", target_os = "linux", not(miri)));

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
#[inline]
fn counter() -> u64 {
    // SAFETY: the instruction is part of x86-64. It takes no argument, touches no memory and changes nothing but the registers that its
    // result is in. A kernel could forbid it to the process; it would then forbid `clock_gettime` too, which executes it wherever
    // `is_reliable` is true, and which the standard library has called before.
    #[expect(unsafe_code, reason = "see above; there is no memory access that Miri could look at")]
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
#[inline]
fn counter() -> u64 {
    0
}

// === impl Anchor ===

impl Anchor {
    const NONE: Self = Self { counter: 0, at: 0, rate: 0, window: 0, tokio_window: 0 };

    /// The nanoseconds of so many ticks, of which there are no more than in a window.
    #[inline]
    fn nanos_of(&self, ticks: u64) -> Nanos {
        // The product of a window and its rate is a millisecond, times 2^32.
        Nanos::try_from((ticks * self.rate) >> 32).unwrap_or(0)
    }

    /// The anchor after a comparison.
    fn next(self, found: Comparison, follows_tokio: bool) -> Self {
        let Comparison { counter, at, uncertainty } = found;
        let passed = at - self.at;
        let is_first = self.counter == 0;
        if uncertainty > UNCERTAINTY_MAX || (!is_first && passed < DISTANCE_MIN) {
            return self;
        }
        if is_first || passed > DISTANCE_MAX {
            return Self { counter, at, rate: self.rate, window: 0, tokio_window: 0 };
        }
        let rate = (passed.unsigned_abs() << 32) / counter.wrapping_sub(self.counter).max(1);
        let is_as_before = rate > 0 && rate.abs_diff(self.rate) <= self.rate / 64;
        // The nearer the two comparisons are, the less certain is the rate.
        let window = if is_as_before { (WINDOW.min(2 * passed).unsigned_abs() << 32) / rate } else { 0 };
        Self { counter, at, rate, window, tokio_window: if follows_tokio { window } else { 0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 2.5 GHz that was switched on a second before the clock.
    fn comparison(at: Nanos) -> Comparison {
        let ticks = |time: Nanos| time.unsigned_abs() * 5 / 2;
        Comparison { counter: ticks(at + SECOND), at, uncertainty: 30 }
    }

    fn after(comparisons: &[Comparison]) -> Anchor {
        comparisons.iter().fold(Anchor::NONE, |anchor, found| anchor.next(*found, true))
    }

    #[test]
    fn two_equal_rates_make_a_window() {
        let (first, second, third) = (comparison(7), comparison(60_007), comparison(1_060_007));
        assert_eq!(after(&[first, second]).window, 0, "one rate may be wrong");
        let anchor = after(&[first, second, third]);
        assert_eq!((anchor.window, anchor.tokio_window), (2_500_000, 2_500_000));
        for passed in [0, 1, 999, 500_000, 999_999] {
            let found = anchor.at + anchor.nanos_of(comparison(anchor.at + passed).counter - anchor.counter);
            assert!((found - anchor.at - passed).abs() <= 1, "{found} after {passed}");
        }
    }

    #[test]
    fn near_comparisons_make_a_short_window() {
        let anchor = after(&[comparison(7), comparison(60_007), comparison(120_007)]);
        assert_eq!(anchor.window, 120_000 * 5 / 2);
    }

    #[test]
    fn comparisons_that_say_nothing_are_left_out() {
        let known = [comparison(7), comparison(60_007)];
        let anchor = after(&known);
        let too_close = anchor.next(comparison(70_007), true);
        assert_eq!((too_close.counter, too_close.window), (anchor.counter, 0));
        let interrupted = anchor.next(Comparison { uncertainty: 5_000_000, ..comparison(200_007) }, true);
        assert_eq!((interrupted.counter, interrupted.window), (anchor.counter, 0));
        let much_later = anchor.next(comparison(60 * SECOND), true);
        assert_eq!((much_later.at, much_later.window), (60 * SECOND, 0));
        assert_eq!(much_later.next(comparison(60 * SECOND + MILLISECOND), true).window, 2_500_000);
    }

    #[test]
    fn a_counter_that_jumps_or_changes_its_rate_is_not_used() {
        let known = after(&[comparison(7), comparison(60_007), comparison(120_007)]);
        let faster = Comparison { counter: known.counter + 3_000_000, ..comparison(1_120_007) };
        assert_eq!(known.next(faster, true).window, 0);
        let suspended = Comparison { counter: known.counter + 9_000_000_000_000, ..comparison(1_120_007) };
        assert_eq!(known.next(suspended, true).window, 0);
        let reset = Comparison { counter: 12, ..comparison(1_120_007) };
        assert_eq!(known.next(reset, true).window, 0);
        let stopped = Comparison { counter: known.counter, ..comparison(1_120_007) };
        assert_eq!(known.next(stopped, true).window, 0);
    }

    #[test]
    fn a_clock_that_follows_tokio_uses_only_what_such_a_clock_has_found() {
        let known = after(&[comparison(7), comparison(60_007)]);
        let anchor = known.next(comparison(1_060_007), false);
        assert_eq!((anchor.window, anchor.tokio_window), (2_500_000, 0));
    }

    /// Whatever the machine is busy with, the time is between two readings of the clock itself, but for a microsecond.
    #[test]
    fn the_time_is_that_of_the_machine() {
        let origin = origin();
        let mut furthest = 0;
        for _ in 0..300_000 {
            let before = nanos(origin.elapsed());
            let Some(found) = now(false) else { return };
            let after = nanos(origin.elapsed());
            furthest = furthest.max(before - found).max(found - after);
        }
        assert!(furthest <= 10 * MICROSECOND, "{furthest} ns away");
    }
}
