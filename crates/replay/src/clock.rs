//! Keeps implausible times away from the virtual clock.

use evenkeel_engine::time::{Instant, Nanos, SECOND};

/// The time of a log, as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct LogClock {
    latest: Option<Instant>,
    /// A time far from the latest one. If the next line agrees with it, the log has a gap.
    suspect: Option<Instant>,
}

/// What follows from the time of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    /// The log goes on.
    Near,
    /// The log goes on after a long gap, or another one starts.
    Jump,
    /// The time is far from those of other lines.
    Far,
}

/// Times further apart than this are not of one piece of a log.
const NEAR: Nanos = 24 * 3600 * SECOND;

// === impl LogClock ===

impl LogClock {
    pub(crate) fn tick(&mut self, written: Instant) -> Tick {
        let is_near = |other: Instant| (written - other).unsigned_abs() <= NEAR.unsigned_abs();
        if self.latest.is_none_or(is_near) {
            self.latest = Some(written);
            self.suspect = None;
            return Tick::Near;
        }
        if self.suspect.is_some_and(is_near) {
            self.latest = Some(written);
            self.suspect = None;
            return Tick::Jump;
        }
        self.suspect = Some(written);
        Tick::Far
    }
}

#[cfg(test)]
mod tests {
    use Tick::{Far, Jump, Near};

    use super::*;

    #[test]
    fn one_far_time_is_damage_and_two_are_a_gap() {
        let mut clock = LogClock::default();
        let day = |days: i64| Instant::from_nanos(days * NEAR);
        let ticks = [100, 101, 5000, 101, -5000, 5000, 5000, 5001, 100].map(|days| clock.tick(day(days)));
        assert_eq!(ticks, [Near, Near, Far, Near, Far, Far, Jump, Near, Far]);
        assert_eq!(clock.tick(Instant::from_nanos(Nanos::MIN)), Far);
    }
}
