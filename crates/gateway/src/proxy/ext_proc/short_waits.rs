//! `ShortWaits`: notices that requests are given up after always the same time, as by an Envoy whose `message_timeout` is too short (EP-3).

use std::time::Duration;

/// The last waits that requests did not stay to the end of, as far as they took the same time.
#[derive(Debug)]
pub(super) struct ShortWaits {
    wait: Duration,
    count: u32,
}

/// Shorter waits say nothing: they are hardly longer than the differences between them.
const WAIT_MIN: Duration = Duration::from_millis(100);
/// Timeouts fire so much later than others of the same time.
const LATENESS: Duration = Duration::from_millis(30);
/// So many in a row are no coincidence: clients leave at any time.
const ENOUGH: u32 = 8;

// === impl ShortWaits ===

impl ShortWaits {
    pub(super) const NONE: Self = Self { wait: Duration::ZERO, count: 0 };

    /// A request left its queue. Tells the time after which all requests of late were given up, if it is the same.
    pub(super) fn left_after(&mut self, waited: Duration) -> Option<Duration> {
        if self.count > 0 && waited.abs_diff(self.wait) <= LATENESS && waited >= WAIT_MIN {
            self.count = self.count.saturating_add(1);
            self.wait = self.wait.min(waited);
        } else {
            *self = Self { wait: waited, count: 1 };
        }
        (self.count >= ENOUGH).then_some(self.wait)
    }

    /// A request stayed for as long, so Envoy was patient.
    pub(super) fn stayed_for(&mut self, waited: Duration) {
        if waited > self.wait + LATENESS {
            self.count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noticed(waits: impl IntoIterator<Item = u64>) -> Option<Duration> {
        let mut short = ShortWaits::NONE;
        waits.into_iter().filter_map(|wait| short.left_after(Duration::from_millis(wait))).last()
    }

    #[test]
    fn ep_3_a_time_after_which_all_leave_is_noticed() {
        for timeout in [200, 1_000, 5_000] {
            let waits = (0..10).map(|number| timeout + number * 7 % 20);
            assert_eq!(noticed(waits), Some(Duration::from_millis(timeout)));
        }
    }

    #[test]
    fn ep_3_clients_that_leave_are_not_taken_for_a_timeout() {
        assert_eq!(noticed([200; 7]), None, "a few may be a coincidence");
        assert_eq!(noticed((0..1_000).map(|number| 100 + number * 37 % 900)), None, "they leave at any time");
        assert_eq!(noticed([5; 100]), None, "they leave at once");
        let mut short = ShortWaits::NONE;
        for _ in 0..100 {
            assert_eq!(short.left_after(Duration::from_millis(200)), None);
            // Envoy waits for longer than that.
            short.stayed_for(Duration::from_millis(400));
        }
    }
}
