//! `StartGate`: notices that an allowance of the fleet has ended. It is checked before everything that may start a request
//! (FL-8).

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{OnceLock, Weak};

use evenkeel_engine::time::{Instant, MILLISECOND, Nanos};
use evenkeel_fleet::{Allowance, Footing};

use crate::control::clock::Clock;
use crate::control::flow_control::FlowControlShared;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Watches for the end of an allowance. Without a fleet there is none, and a check costs one comparison with a number that never
/// changes.
#[derive(Debug)]
pub(crate) struct StartGate {
    /// When to look again, by the clock of the flow control.
    look_at: AtomicI64,
    /// When the allowance ends, by the clock that also runs while the machine is suspended.
    ends_at: AtomicI64,
    /// When an allowance last ended before another took its place, by the clock of the flow control.
    lapsed_at: AtomicI64,
    allowance: Mutex<Option<Given>>,
    /// The footing that was last reported.
    told: AtomicU8,
    /// The flow control that the allowance limits.
    flow: OnceLock<Weak<FlowControlShared>>,
}

/// The clock of the flow control may stand still while the machine is suspended. So the other one, by which grants end, is looked at
/// this often at least.
const LOOK_PERIOD: Nanos = MILLISECOND / 10;

/// The allowance, and what it was when it was last looked at.
#[derive(Debug, Clone, Copy)]
struct Given {
    allowance: Allowance,
    footing: Footing,
}

/// The seats that may be used at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    pub(super) seats: u32,
    pub(super) footing: Footing,
    /// When it ends; `None` if it ends when something else is allowed.
    ends: Option<Instant>,
    /// When it was looked at, by the same clock.
    boot_time: Instant,
}

// === impl StartGate ===

impl StartGate {
    pub(crate) fn new() -> Self {
        Self {
            look_at: AtomicI64::new(i64::MAX),
            ends_at: AtomicI64::new(i64::MAX),
            lapsed_at: AtomicI64::new(i64::MIN),
            allowance: Mutex::new(None),
            told: AtomicU8::new(u8::MAX),
            flow: OnceLock::new(),
        }
    }

    /// To be called before everything that may start a request, without any lock.
    #[inline]
    pub(crate) fn check(&self, now: Instant, clock: &Clock) {
        if now.as_nanos() >= self.look_at.load(Ordering::Relaxed) {
            self.look(now, clock);
        }
    }

    /// Whether there is a fleet.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.flow.get().is_some()
    }

    /// Whether an allowance has ended since a request was started that has not begun to run, and there are too few seats for it
    /// now: the process may have been stopped in between.
    pub(crate) fn forbids(&self, started: Instant, clock: &Clock) -> bool {
        self.check(clock.now(), clock);
        started.as_nanos() <= self.lapsed_at.load(Ordering::Relaxed)
            && self.flow.get().and_then(Weak::upgrade).is_some_and(|flow| flow.is_overdrawn())
    }

    /// Looks whether the allowance has ended. It nearly never has, and then this costs one more look at the clock. A thread that
    /// is overtaken by a new allowance sees that the next time, a [`LOOK_PERIOD`] later at most.
    #[cold]
    fn look(&self, now: Instant, clock: &Clock) {
        let left = self.ends_at.load(Ordering::Relaxed).saturating_sub(clock.boot_time().as_nanos());
        if left > 0 {
            self.look_at.store(now.as_nanos().saturating_add(left.min(LOOK_PERIOD)), Ordering::Relaxed);
        } else if let Some(flow) = self.flow.get().and_then(Weak::upgrade) {
            flow.settle_allowance();
        }
    }

    /// From now on allowances limit this flow control.
    pub(crate) fn limit(&self, flow: Weak<FlowControlShared>) {
        // A flow control joins one fleet, once.
        let _ = self.flow.set(flow);
    }

    pub(super) fn set(&self, allowance: Allowance) {
        *self.given() = Some(Given { allowance, footing: Footing::Grant });
    }

    /// The seats that may be used at a time of the clock by which grants end; `None` without a fleet.
    pub(super) fn allowed(&self, boot_time: Instant) -> Option<Allowed> {
        let allowance = (*self.given())?.allowance;
        let seats = u32::try_from(allowance.seats(boot_time)).unwrap_or(u32::MAX);
        let ends = [allowance.grant_until, allowance.floor_until].into_iter().find(|end| *end > boot_time);
        let footing = allowance.footing(boot_time);
        Some(Allowed { seats, footing, ends, boot_time })
    }

    /// Notes that this allowance is in effect, and plans the next look: when it ends, and from time to time. Returns whether the
    /// grant has ended since the last look, or there is a grant again.
    pub(super) fn rearm(&self, now: Instant, allowed: Allowed) -> bool {
        if let Some(given) = &mut *self.given()
            && given.footing != allowed.footing
        {
            given.footing = allowed.footing;
            self.lapsed_at.store(now.as_nanos(), Ordering::Relaxed);
        }
        self.ends_at.store(allowed.ends.map_or(i64::MAX, Instant::as_nanos), Ordering::Relaxed);
        let look_at = allowed
            .ends
            .map_or(Nanos::MAX, |end| now.as_nanos().saturating_add((end - allowed.boot_time).min(LOOK_PERIOD)));
        self.look_at.store(look_at, Ordering::Relaxed);
        self.told.swap(allowed.footing as u8, Ordering::Relaxed) != allowed.footing as u8
    }

    fn given(&self) -> MutexGuard<'_, Option<Given>> {
        self.allowance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
