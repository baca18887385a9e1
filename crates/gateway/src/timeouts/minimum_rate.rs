//! `MinimumRate`: whether the other side of a transfer is fast enough.
//!
//! Only the time counts in which we wait for the other side. A body that arrives fast and is passed on slowly is not slow.

use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::{CoarseTimer, Timeout};

/// The minimum rate of one transfer.
#[derive(Debug)]
pub(crate) struct MinimumRate {
    timer: Rc<CoarseTimer>,
    window: Duration,
    /// The bytes that have to move while we wait for the length of one window. Zero means that there is no limit.
    bytes_min: u64,
    bytes: u64,
    /// For how many ticks of this window we have waited, before `waiting_since`.
    waited: u64,
    waiting_since: Option<u64>,
    timeout: Option<Timeout>,
}

/// The time over which the rate is measured, if nothing else is said.
const WINDOW: Duration = Duration::from_secs(10);

// === impl MinimumRate ===

impl MinimumRate {
    pub(crate) fn new(timer: &Rc<CoarseTimer>, bytes_per_second_min: u64) -> Self {
        Self::over(timer, bytes_per_second_min, WINDOW)
    }

    /// The same, measured over another time.
    pub(crate) fn over(timer: &Rc<CoarseTimer>, bytes_per_second_min: u64, window: Duration) -> Self {
        let bytes_min = bytes_per_second_min.saturating_mul(window.as_secs().max(1));
        Self { timer: Rc::clone(timer), window, bytes_min, bytes: 0, waited: 0, waiting_since: None, timeout: None }
    }

    /// Notes how many bytes have moved.
    pub(crate) fn note(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.waited = self.waited();
        self.waiting_since = None;
    }

    /// Begins anew, as a transfer of which nothing has moved.
    pub(crate) fn restart(&mut self) {
        (self.bytes, self.waited, self.waiting_since) = (0, 0, None);
    }

    /// We wait for the other side. Ready when it is too slow.
    pub(crate) fn poll_slow(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.bytes_min == 0 {
            return Poll::Pending;
        }
        self.waiting_since.get_or_insert(self.timer.now());
        loop {
            let left = CoarseTimer::count(self.window).saturating_sub(self.waited());
            if left == 0 {
                if self.bytes < self.bytes_min {
                    return Poll::Ready(());
                }
                (self.bytes, self.waited, self.waiting_since) = (0, 0, Some(self.timer.now()));
                continue;
            }
            let timeout = self.timeout.get_or_insert_with(|| self.timer.timeout(self.window));
            timeout.set(CoarseTimer::duration(left));
            ready!(timeout.poll(context));
        }
    }

    fn waited(&self) -> u64 {
        self.waited + self.waiting_since.map_or(0, |since| self.timer.now().saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Lets ticks pass while we wait for the other side. Returns after how many it is too slow.
    fn wait(timer: &CoarseTimer, minimum_rate: &mut MinimumRate, count: u64) -> Option<u64> {
        (0..count).find(|_| {
            timer.advance(timer.now() + 1);
            minimum_rate.poll_slow(&Context::from_waker(Waker::noop())).is_ready()
        })
    }

    #[test]
    fn one_that_drips_is_too_slow_after_a_window() {
        let timer = CoarseTimer::new();
        let mut minimum_rate = MinimumRate::new(&timer, 1024);
        for second in 0..9 {
            assert_eq!(wait(&timer, &mut minimum_rate, 20), None, "{second}");
            minimum_rate.note(1);
        }
        assert!(wait(&timer, &mut minimum_rate, 40).is_some());
    }

    #[test]
    fn one_that_keeps_the_rate_goes_on() {
        let timer = CoarseTimer::new();
        let mut minimum_rate = MinimumRate::new(&timer, 1024);
        for second in 0..100 {
            assert_eq!(wait(&timer, &mut minimum_rate, 20), None, "{second}");
            minimum_rate.note(1100);
        }
    }

    #[test]
    fn time_in_which_nobody_waits_for_it_does_not_count() {
        let timer = CoarseTimer::new();
        let mut minimum_rate = MinimumRate::new(&timer, 1024);
        for second in 0..100 {
            assert_eq!(wait(&timer, &mut minimum_rate, 1), None, "{second}");
            minimum_rate.note(1024);
            // The receiver of what we pass on is slow.
            timer.advance(timer.now() + 19);
        }
        assert!(wait(&timer, &mut minimum_rate, 600).is_some());
    }

    #[test]
    fn zero_is_no_limit() {
        let timer = CoarseTimer::new();
        assert_eq!(wait(&timer, &mut MinimumRate::new(&timer, 0), 1000), None);
    }
}
