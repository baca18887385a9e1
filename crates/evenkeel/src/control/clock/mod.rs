//! `Clock`: the source of the times that the library passes to the engine.

mod machine_time;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use evenkeel_engine::time::{Instant, Nanos, SECOND};

/// A clock: that of the machine, or one that is set by hand.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// Time since the library was set up.
    Started(Start),
    /// Time that is set by hand.
    Manual(ManualClock),
}

/// When a clock began that follows the machine's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    at: tokio::time::Instant,
    /// The same as nanoseconds since [`machine_time::origin`].
    offset: Nanos,
    /// Whether the clock stands still when a test pauses tokio's time.
    follows_tokio: bool,
}

/// A clock that is set by hand, for services with a time of their own and for tests. Clones are the same clock: hand one
/// to [`FlowControlBuilder::manual_clock`](crate::FlowControlBuilder::manual_clock), and one to
/// [`KubernetesWork::with_manual_clock`](crate::work::KubernetesWork::with_manual_clock) if that is used.
///
/// ```
/// use std::time::Duration;
/// use evenkeel::clock::ManualClock;
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(10));
/// assert_eq!(clock.elapsed(), Duration::from_secs(10));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicI64>);

// === impl Clock ===

impl Clock {
    /// A clock that begins now, and stands still when a test pauses tokio's time.
    pub(crate) fn of_tokio() -> Self {
        Self::Started(Start::now(true))
    }

    /// A clock that begins now, and stands still at no time.
    pub(crate) fn of_machine() -> Self {
        Self::Started(Start::now(false))
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(match self {
            Self::Started(start) => start.passed(),
            Self::Manual(clock) => clock.0.load(Ordering::Acquire),
        })
    }

    /// The time by which allowances of a fleet end: it also runs while the machine is suspended (FL-8).
    #[cfg(feature = "fleet")]
    pub(crate) fn boot_time(&self) -> Instant {
        match self {
            Self::Started(_) => evenkeel_fleet::boot_time(),
            Self::Manual(_) => self.now(),
        }
    }

    /// The same moment as tokio's timers know it; `None` for a clock that no timer follows, and where there are no
    /// timers because there is no runtime.
    pub(crate) fn timer(&self, at: Instant) -> Option<tokio::time::Instant> {
        match self {
            Self::Started(Start { at: start, .. }) => {
                tokio::runtime::Handle::try_current().ok()?;
                let nanos = u64::try_from(at.as_nanos()).unwrap_or(0);
                Some(*start + Duration::from_nanos(nanos))
            }
            Self::Manual(_) => None,
        }
    }

    /// When this clock began, by the monotonic clock of the machine; `None` for a clock that is set by hand.
    pub(crate) fn std_start(&self) -> Option<std::time::Instant> {
        match self {
            Self::Started(Start { at: start, .. }) => Some(start.into_std()),
            Self::Manual(_) => None,
        }
    }

    /// When this clock began, in nanoseconds since 1970. A clock that is set by hand begins in 1970. Call it once for all times
    /// that are shown together: the two clocks that it compares are not read at the same moment.
    pub(crate) fn unix_start(&self) -> Nanos {
        match self {
            Self::Started(_) => {
                let passed = self.now().as_nanos();
                nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()).saturating_sub(passed)
            }
            Self::Manual(_) => 0,
        }
    }
}

// === impl Start ===

impl Start {
    fn now(follows_tokio: bool) -> Self {
        let origin = machine_time::origin();
        let at = if follows_tokio { tokio::time::Instant::now() } else { std::time::Instant::now().into() };
        // Time that is paused may have been so before there was an origin.
        let begun = at.into_std();
        let offset = nanos(begun.saturating_duration_since(origin)) - nanos(origin.saturating_duration_since(begun));
        Self { at, offset, follows_tokio }
    }

    /// The time since then.
    #[inline]
    fn passed(&self) -> Nanos {
        machine_time::now(self.follows_tokio).map_or_else(|| self.passed_by_clock(), |now| now - self.offset)
    }

    #[inline(never)]
    fn passed_by_clock(&self) -> Nanos {
        if self.follows_tokio { nanos(self.at.elapsed()) } else { nanos(self.at.into_std().elapsed()) }
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// A clock that starts at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        self.0.fetch_add(nanos(time), Ordering::AcqRel);
    }

    /// How much time has passed.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.load(Ordering::Acquire)).unwrap_or(0))
    }
}

/// A span of time as the engine counts it; one of more than three centuries stops there.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "what would wrap is out of range of the product too")]
pub(crate) const fn nanos(time: Duration) -> Nanos {
    let seconds = if time.as_secs() > Nanos::MAX as u64 { Nanos::MAX } else { time.as_secs() as Nanos };
    seconds.saturating_mul(SECOND).saturating_add(time.subsec_nanos() as Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_of_tokio_stands_still_when_a_test_says_so() {
        let clock = Clock::of_tokio();
        let machine = Clock::of_machine();
        // For longer than a thread counts on without reading the clock.
        while machine.now() < Instant::from_nanos(5_000_000) {
            assert_eq!(clock.now(), Instant::from_nanos(0));
        }
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), Instant::from_nanos(5 * SECOND));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn both_clocks_agree_with_the_timers_of_tokio() {
        for clock in [Clock::of_tokio(), Clock::of_machine()] {
            let at = Instant::from_nanos(20_000_000);
            tokio::time::sleep_until(clock.timer(at).unwrap()).await;
            assert!(clock.now() >= at, "{:?}", clock.now());
        }
    }
}
