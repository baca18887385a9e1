//! The clock by which grants end: it also runs while the machine is suspended.

use evenkeel_engine::time::{Instant, Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};

/// Linux has a clock of its own for this; elsewhere the monotonic clock runs on while the machine sleeps.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The time by which allowances end (FL-8). A monotonic clock that stopped with the machine would prolong a grant that others
/// have taken back.
pub fn boot_time() -> Instant {
    let time = clock_gettime(CLOCK);
    Instant::from_nanos(Nanos::from(time.tv_sec).saturating_mul(SECOND).saturating_add(Nanos::from(time.tv_nsec)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_8_time_does_not_go_backwards() {
        let first = boot_time();
        assert!(first.as_nanos() > 0 && boot_time() >= first);
    }
}
