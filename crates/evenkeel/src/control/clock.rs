//! Where the library reads the time that the engine is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use evenkeel_engine::time::{Instant, Nanos, SECOND};

/// A clock: that of the machine, or one that is set by hand.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// Time since the library was set up. It stands still when a test pauses tokio's time.
    Tokio(tokio::time::Instant),
    /// Whatever somebody has set it to.
    Manual(ManualClock),
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
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(match self {
            Self::Tokio(start) => nanos(start.elapsed()),
            Self::Manual(clock) => clock.0.load(Ordering::Acquire),
        })
    }

    /// The same moment as tokio's timers know it; `None` for a clock that no timer follows, and where there are no
    /// timers because there is no runtime.
    pub(crate) fn timer(&self, at: Instant) -> Option<tokio::time::Instant> {
        match self {
            Self::Tokio(start) => {
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
            Self::Tokio(start) => Some(start.into_std()),
            Self::Manual(_) => None,
        }
    }

    /// When this clock began, in nanoseconds since 1970 did. A clock that is set by hand began then too. To be asked once
    /// for all times that are shown together: the two clocks that it compares are not read at the same moment.
    pub(crate) fn unix_start(&self) -> Nanos {
        match self {
            Self::Tokio(_) => {
                let passed = self.now().as_nanos();
                nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()).saturating_sub(passed)
            }
            Self::Manual(_) => 0,
        }
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
pub(crate) fn nanos(time: Duration) -> Nanos {
    let seconds = Nanos::try_from(time.as_secs()).unwrap_or(Nanos::MAX);
    seconds.saturating_mul(SECOND).saturating_add(Nanos::from(time.subsec_nanos()))
}
