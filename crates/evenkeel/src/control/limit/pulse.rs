//! `Pulse`: how often the limit that finds itself looks at its sums.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_engine::auto_limit::TICK;
use evenkeel_engine::time::{MILLISECOND, Nanos};
use tokio::sync::Notify;

/// The pace of looks, and the limit itself. Shared by the levels, which notice events, and the upkeep, which looks.
#[derive(Debug)]
pub(crate) struct Pulse {
    pace: AtomicU64,
    /// The limit that was found last; 0 if the number of seats was set.
    seats: AtomicU64,
    /// Notified when the limit is to be looked at sooner than planned.
    news: Arc<Notify>,
}

/// How often the limit is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Never: the number of seats was set.
    Off = 0,
    /// Not until there is an event.
    Resting = 1,
    /// Now and then, as requests end and none waits: only failures matter.
    Slow = 2,
    /// At every tick of the limit, as requests wait.
    Fast = 3,
}

/// The time between two looks at the slow pace. The limit judges the share of failures every 50 ms at most, so that more looks
/// would be of no use.
const SLOW: Nanos = 50 * MILLISECOND;

// === impl Pulse ===

impl Pulse {
    pub(crate) fn new(news: Arc<Notify>) -> Self {
        Self { pace: AtomicU64::new(Pace::Off as u64), seats: AtomicU64::new(0), news }
    }

    /// A request begins to wait.
    #[inline]
    pub(crate) fn note_waiting(&self) {
        if matches!(self.pace(), Pace::Resting | Pace::Slow) {
            self.quicken(Pace::Fast);
        }
    }

    /// Notes that there was an event.
    #[inline]
    pub(crate) fn note_events(&self) {
        if self.pace() == Pace::Resting {
            self.quicken(Pace::Slow);
        }
    }

    #[cold]
    fn quicken(&self, to: Pace) {
        if self.pace.fetch_max(to as u64, Ordering::AcqRel) < to as u64 {
            self.news.notify_one();
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        match self.pace.load(Ordering::Acquire) {
            0 => Pace::Off,
            1 => Pace::Resting,
            2 => Pace::Slow,
            _ => Pace::Fast,
        }
    }

    /// The limit is about to be looked at. The look may miss a request that begins to wait from now on, so that request quickens
    /// the pace again.
    pub(crate) fn begin_look(&self) {
        self.slow_down(Pace::Fast, Pace::Slow);
    }

    /// The limit has been looked at.
    pub(crate) fn end_look(&self, pace: Pace, seats: u32) {
        self.seats.store(seats.into(), Ordering::Release);
        match pace {
            Pace::Fast => {
                self.pace.fetch_max(Pace::Fast as u64, Ordering::AcqRel);
            }
            Pace::Resting => self.slow_down(Pace::Slow, Pace::Resting),
            Pace::Slow | Pace::Off => {}
        }
    }

    fn slow_down(&self, from: Pace, to: Pace) {
        let _ = self.pace.compare_exchange(from as u64, to as u64, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The limit finds itself from now on, and starts with this number.
    pub(crate) fn start(&self, seats: u32) {
        self.seats.store(seats.into(), Ordering::Release);
        self.pace.store(Pace::Slow as u64, Ordering::Release);
        self.news.notify_one();
    }

    /// The number of seats was set: nothing is looked at any more.
    pub(crate) fn stop(&self) {
        self.seats.store(0, Ordering::Release);
        self.pace.store(Pace::Off as u64, Ordering::Release);
    }

    /// The limit that was found last; `None` if the number of seats was set.
    pub(crate) fn found_seats(&self) -> Option<u32> {
        u32::try_from(self.seats.load(Ordering::Acquire)).ok().filter(|seats| *seats > 0)
    }
}

// === impl Pace ===

impl Pace {
    /// The time between two looks.
    pub(crate) fn span(self) -> Option<Nanos> {
        match self {
            Self::Off | Self::Resting => None,
            Self::Slow => Some(SLOW),
            Self::Fast => Some(TICK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that begins to wait while the limit is being looked at is not forgotten.
    #[test]
    fn whoever_begins_to_wait_during_a_look_keeps_the_pace_up() {
        let pulse = Pulse::new(Arc::default());
        pulse.note_waiting();
        assert_eq!(pulse.pace(), Pace::Off, "a number costs nothing");
        pulse.start(20);
        pulse.begin_look();
        pulse.note_waiting();
        pulse.end_look(Pace::Resting, 20);
        assert_eq!(pulse.pace(), Pace::Fast);
        pulse.begin_look();
        pulse.end_look(Pace::Resting, 20);
        assert_eq!(pulse.pace(), Pace::Resting);
        pulse.note_events();
        assert_eq!(pulse.pace(), Pace::Slow);
        pulse.stop();
        pulse.end_look(Pace::Resting, 0);
        assert_eq!((pulse.pace(), pulse.found_seats()), (Pace::Off, None));
    }
}
