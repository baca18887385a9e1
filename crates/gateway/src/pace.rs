//! `Pace`: whether the other side of a transfer keeps a least rate.
//!
//! Only the time counts in which we wait for the other side. A body that arrives fast and is passed on slowly is not slow.

use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::ticks::{Alarm, Ticks};

/// The pace of one transfer.
#[derive(Debug)]
pub(crate) struct Pace {
    ticks: Rc<Ticks>,
    /// What has to move while we wait for the length of one window. Zero means that there is no limit.
    bytes_min: u64,
    bytes: u64,
    /// How many ticks of this window we have waited, before `waiting_since`.
    waited: u64,
    waiting_since: Option<u64>,
    alarm: Option<Alarm>,
}

/// The time over which the rate is measured.
const WINDOW: Duration = Duration::from_secs(10);

// === impl Pace ===

impl Pace {
    pub(crate) fn new(ticks: &Rc<Ticks>, bytes_per_second_min: u64) -> Self {
        let bytes_min = bytes_per_second_min.saturating_mul(WINDOW.as_secs());
        Self { ticks: Rc::clone(ticks), bytes_min, bytes: 0, waited: 0, waiting_since: None, alarm: None }
    }

    /// So many bytes have moved.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.waited = self.waited();
        self.waiting_since = None;
    }

    /// We wait for the other side. Ready when it is too slow.
    pub(crate) fn poll_slow(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.bytes_min == 0 {
            return Poll::Pending;
        }
        self.waiting_since.get_or_insert(self.ticks.now());
        loop {
            let left = Ticks::count(WINDOW).saturating_sub(self.waited());
            if left == 0 {
                if self.bytes < self.bytes_min {
                    return Poll::Ready(());
                }
                (self.bytes, self.waited, self.waiting_since) = (0, 0, Some(self.ticks.now()));
                continue;
            }
            let alarm = self.alarm.get_or_insert_with(|| self.ticks.alarm(WINDOW));
            alarm.set(Ticks::duration(left));
            ready!(alarm.poll(context));
        }
    }

    fn waited(&self) -> u64 {
        self.waited + self.waiting_since.map_or(0, |since| self.ticks.now().saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Lets ticks pass while we wait for the other side, and says after how many it is too slow.
    fn wait(ticks: &Ticks, pace: &mut Pace, count: u64) -> Option<u64> {
        (0..count).find(|_| {
            ticks.advance(ticks.now() + 1);
            pace.poll_slow(&Context::from_waker(Waker::noop())).is_ready()
        })
    }

    #[test]
    fn one_that_drips_is_too_slow_after_a_window() {
        let ticks = Ticks::new();
        let mut pace = Pace::new(&ticks, 1024);
        for second in 0..9 {
            assert_eq!(wait(&ticks, &mut pace, 20), None, "{second}");
            pace.note(1);
        }
        assert!(wait(&ticks, &mut pace, 40).is_some());
    }

    #[test]
    fn one_that_keeps_the_rate_goes_on() {
        let ticks = Ticks::new();
        let mut pace = Pace::new(&ticks, 1024);
        for second in 0..100 {
            assert_eq!(wait(&ticks, &mut pace, 20), None, "{second}");
            pace.note(1100);
        }
    }

    #[test]
    fn time_in_which_nobody_waits_for_it_does_not_count() {
        let ticks = Ticks::new();
        let mut pace = Pace::new(&ticks, 1024);
        for second in 0..100 {
            assert_eq!(wait(&ticks, &mut pace, 1), None, "{second}");
            pace.note(1024);
            // The one we pass it on to is slow.
            ticks.advance(ticks.now() + 19);
        }
        assert!(wait(&ticks, &mut pace, 600).is_some());
    }

    #[test]
    fn zero_is_no_limit() {
        let ticks = Ticks::new();
        assert_eq!(wait(&ticks, &mut Pace::new(&ticks, 0), 1000), None);
    }
}
