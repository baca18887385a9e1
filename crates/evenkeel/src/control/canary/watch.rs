//! `CanaryWatch`: decides whether a canary has to end. It does no I/O and has no clock: its caller passes the counts once a
//! second.

use std::collections::VecDeque;
use std::fmt;

use super::counts::CanaryCounts;
use super::state::CanaryBounds;

/// Compares what has become of the requests of the last minute with the bounds.
#[derive(Debug)]
pub(super) struct CanaryWatch {
    bounds: CanaryBounds,
    /// The counts at the last looks, the oldest first.
    looks: VecDeque<CanaryCounts>,
}

/// Why a canary ended by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ReturnReason {
    /// Too many requests were rejected.
    Rejected { rejected: u64, requests: u64, bound: f64 },
    /// Too many requests waited for longer than the bound: more than one of a hundred.
    Waited { slow: u64, started: u64, bound_ms: u128 },
}

/// How many looks the counts go back.
const LOOKS: usize = 60;
/// With fewer requests in that time, rejections say nothing.
const REQUESTS_MIN: u64 = 20;
/// With fewer started requests in that time, the slowest hundredth of them says nothing.
const STARTED_MIN: u64 = 100;

// === impl CanaryWatch ===

impl CanaryWatch {
    pub(super) fn new(bounds: CanaryBounds) -> Self {
        Self { bounds, looks: VecDeque::from([CanaryCounts::default()]) }
    }

    /// A second has passed, and these are the counts since the beginning.
    pub(super) fn look(&mut self, counts: CanaryCounts) -> Option<ReturnReason> {
        let before = self.looks.front().copied().unwrap_or_default();
        let last = counts.since(before);
        self.looks.push_back(counts);
        if self.looks.len() > LOOKS {
            self.looks.pop_front();
        }
        let CanaryBounds { rejected: bound, wait_p99 } = self.bounds;
        let CanaryCounts { requests, rejected, started, slow } = last;
        #[expect(clippy::cast_precision_loss, reason = "a comparison of parts")]
        if requests >= REQUESTS_MIN && rejected as f64 > requests as f64 * bound {
            return Some(ReturnReason::Rejected { rejected, requests, bound });
        }
        if started >= STARTED_MIN && slow * 100 > started {
            return Some(ReturnReason::Waited { slow, started, bound_ms: wait_p99.as_millis() });
        }
        None
    }
}

impl fmt::Display for ReturnReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { rejected, requests, bound } => {
                write!(f, "{rejected} of {requests} requests were rejected, which is more than {:.1} %", bound * 100.0)
            }
            Self::Waited { slow, started, bound_ms } => {
                write!(
                    f,
                    "{slow} of {started} requests waited for longer than {bound_ms} ms, which is more than one of a hundred"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BOUNDS: CanaryBounds = CanaryBounds { rejected: 0.05, wait_p99: Duration::from_secs(2) };

    fn counts(requests: u64, rejected: u64, slow: u64) -> CanaryCounts {
        CanaryCounts { requests, rejected, started: requests - rejected, slow }
    }

    #[test]
    fn sh_5_a_canary_returns_when_more_are_rejected_than_the_bound_allows() {
        let mut watch = CanaryWatch::new(BOUNDS);
        assert_eq!(watch.look(counts(1000, 50, 0)), None, "as many as the bound allows");
        let reason = watch.look(counts(1001, 51, 0)).unwrap();
        assert_eq!(reason.to_string(), "51 of 1001 requests were rejected, which is more than 5.0 %");
    }

    #[test]
    fn sh_5_a_canary_returns_when_one_of_a_hundred_waits_longer_than_the_bound() {
        let mut watch = CanaryWatch::new(BOUNDS);
        assert_eq!(watch.look(counts(200, 0, 2)), None);
        let reason = watch.look(counts(250, 0, 3)).unwrap();
        assert_eq!(
            reason.to_string(),
            "3 of 250 requests waited for longer than 2000 ms, which is more than one of a hundred"
        );
    }

    #[test]
    fn a_few_requests_decide_nothing() {
        let mut watch = CanaryWatch::new(BOUNDS);
        assert_eq!(watch.look(counts(19, 19, 0)), None);
        let mut watch = CanaryWatch::new(BOUNDS);
        assert_eq!(watch.look(counts(99, 0, 99)), None);
    }

    #[test]
    fn what_was_a_minute_ago_is_forgotten() {
        let mut watch = CanaryWatch::new(BOUNDS);
        assert_eq!(watch.look(counts(1000, 40, 0)), None);
        (0..LOOKS).for_each(|_| assert_eq!(watch.look(counts(1000, 40, 0)), None));
        // Of all requests these are fewer than the bound allows, but not of those of the last minute.
        assert!(watch.look(counts(1050, 45, 0)).is_some());
    }
}
