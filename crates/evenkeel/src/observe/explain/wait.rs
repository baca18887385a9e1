//! `ExpectedWait`: how long a request that arrives now would wait, and why.

use std::time::Duration;

use evenkeel_engine::Flow;
use evenkeel_engine::drain::DrainRate;
use evenkeel_engine::queue_set::{Mode, Outlook};
use evenkeel_engine::time::Instant;
use serde::{Deserialize, Serialize};

use crate::control::core::LevelCore;
use crate::control::level_listeners::LevelListeners;

/// How long a request that arrives now would wait, as far as that can be told.
///
/// It follows from the requests that wait now and from how fast the level has drained lately. Requests that arrive later can
/// start earlier, which the range does not know of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExpectedWait {
    /// What would become of the request.
    pub outcome: WaitOutcome,
    /// The expected wait in milliseconds; `None` if it cannot be told, or if the request does not wait.
    pub expected_ms: Option<f64>,
    /// The least that is likely.
    pub low_ms: Option<f64>,
    /// The most that is likely.
    pub high_ms: Option<f64>,
    /// How many waiting requests would start before it.
    pub ahead: f64,
    /// How many requests of the level end in a second while others wait.
    pub drain_per_second: Option<f64>,
    /// Why, in a sentence.
    pub why: String,
}

/// The outcome of a request that arrives now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WaitOutcome {
    /// The request would start at once.
    Starts,
    /// The request would wait.
    Waits,
    /// The request would wait, and be rejected when its wait limit is over.
    TimesOut,
    /// The request would be rejected at once.
    Rejected,
}

/// How many standard deviations the range has on each side: with two, 19 of 20 waits are in it.
const DEVIATIONS: f64 = 2.0;

// === impl ExpectedWait ===

impl ExpectedWait {
    /// For a request of this flow and this many seats, in a level whose locks are held.
    pub(super) fn new(
        core: &LevelCore,
        listeners: &LevelListeners,
        now: Instant,
        flow: Flow<'_>,
        seats: u32,
        limit: Duration,
    ) -> Self {
        let set = core.queue_set();
        let (in_use, usable, waiting) = (set.seats_in_use(), core.current_limit(), set.waiting());
        let width = i64::from(seats);
        let has_room = in_use + width <= usable || (width > usable && set.executing() == set.seatless());
        let seats_taken = format!("{in_use} of {usable} seats are in use");
        let rate = listeners.retry.drain_rate(now);
        if seats == 0 && set.mode() != Mode::Closed {
            return Self::seatless(listeners);
        }
        match (set.mode(), set.outlook(flow, service_time(rate, in_use))) {
            (Mode::Exempt, _) => Self::at_once(WaitOutcome::Starts, "the level is exempt: its requests never wait"),
            (Mode::Closed, _) => Self::at_once(WaitOutcome::Rejected, "the level accepts no requests"),
            (Mode::Reject, _) | (Mode::Queue(_), None) if !has_room => {
                Self::at_once(WaitOutcome::Rejected, format!("{seats_taken}, and the level has no queues"))
            }
            (Mode::Reject, _) | (Mode::Queue(_), None) => Self::at_once(WaitOutcome::Starts, seats_taken),
            (Mode::Queue(_), Some(outlook)) if starts_at_once(&outlook, waiting, width, usable - in_use, has_room) => {
                Self::at_once(WaitOutcome::Starts, seats_taken)
            }
            (Mode::Queue(_), Some(outlook)) if is_full(&outlook) && in_use >= usable => {
                let why = format!("{} requests wait in its queue, and no more may", outlook.in_queue);
                Self { ahead: outlook.ahead, ..Self::at_once(WaitOutcome::Rejected, why) }
            }
            (Mode::Queue(_), Some(outlook)) => {
                let mut queue =
                    format!("{waiting} requests wait in the level, {} of them in its queue", outlook.in_queue);
                if outlook.is_at_flow_limit {
                    queue += "; its flow holds as many seats as it may";
                } else if outlook.kept > 0 {
                    queue +=
                        &format!("; {} kept for new clients, and its flow holds seats already", are_kept(outlook.kept));
                }
                let holders = set.executing() - set.seatless();
                Self::waiting(&outlook, ends_needed(seats, in_use, holders), rate, &queue, limit)
            }
        }
    }

    /// For a request that takes no seat: only the number of long-running requests is limited.
    fn seatless(listeners: &LevelListeners) -> Self {
        let metrics = &listeners.metrics;
        let (running, limit) = (metrics.long_running.running(), metrics.control.max_long_running);
        match limit {
            Some(limit) if running >= limit => {
                let why = format!("the level has {running} long-running requests, and no more than {limit} may run");
                Self::at_once(WaitOutcome::Rejected, why)
            }
            _ => Self::at_once(WaitOutcome::Starts, "it takes no seat"),
        }
    }

    fn at_once(outcome: WaitOutcome, why: impl Into<String>) -> Self {
        let none = None;
        Self {
            outcome,
            expected_ms: none,
            low_ms: none,
            high_ms: none,
            ahead: 0.0,
            drain_per_second: none,
            why: why.into(),
        }
    }

    /// `own_ends` is how many requests have to end for this one alone.
    fn waiting(outlook: &Outlook, own_ends: f64, rate: Option<DrainRate>, queue: &str, limit: Duration) -> Self {
        let ahead = outlook.ahead;
        let Some(DrainRate { per_second, counted }) = rate else {
            let why = format!("{queue}; none has ended while others waited, so that nobody knows how fast they do");
            return Self { ahead, ..Self::at_once(WaitOutcome::Waits, why) };
        };
        let ends = ahead + own_ends;
        let seconds = ends / per_second;
        // Ends come at random, both those that it waits for and those that were counted.
        let spread = 1.0 + DEVIATIONS * (1.0 / ends + 1.0 / counted).sqrt();
        let limit = limit.as_secs_f64();
        let is_too_long = seconds > limit;
        let outcome = if is_too_long { WaitOutcome::TimesOut } else { WaitOutcome::Waits };
        let too_long = if is_too_long { format!("; it may wait for {limit} s at most") } else { String::new() };
        let why = format!("{queue}; about {ahead:.0} start before it, and {per_second:.1} end in a second{too_long}");
        let ms = |seconds: f64| Some((seconds.min(WAIT_SECONDS_MAX) * 1e6).round() / 1e3);
        Self {
            outcome,
            expected_ms: ms(seconds),
            low_ms: ms(seconds / spread),
            high_ms: ms(seconds * spread),
            ahead,
            drain_per_second: Some((per_second * 1e3).round() / 1e3),
            why,
        }
    }
}

/// The longest wait that is reported: a level that drains more slowly hangs.
const WAIT_SECONDS_MAX: f64 = 3600.0;

/// How long a request holds its seats: those in use, divided by how many requests give them back in a second.
fn service_time(rate: Option<DrainRate>, seats_in_use: i64) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "seats are few")]
    let seconds = rate.map(|rate| seats_in_use.max(1) as f64 / rate.per_second);
    // Nothing is known: as if there had been no turns yet.
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(Duration::MAX)
}

/// How many requests have to end before there are so many seats: one, or more if the request is wider than those that run.
fn ends_needed(seats: u32, seats_in_use: i64, executing: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "seats are few")]
    let width = seats_in_use.max(1) as f64 / executing.max(1) as f64;
    (f64::from(seats) / width).max(1.0)
}

/// Whether a request of so many seats that arrives now starts at once: there are seats for it, besides those that it has to leave
/// to newcomers, and no request is before it (PF-10, PF-11).
fn starts_at_once(outlook: &Outlook, waiting: usize, width: i64, free: i64, has_room: bool) -> bool {
    let leaves_kept = outlook.kept == 0 || width + outlook.kept <= free;
    let is_first = waiting == 0 || (free >= width && outlook.passes_others && outlook.ahead < 0.5);
    has_room && leaves_kept && is_first && !outlook.is_at_flow_limit
}

/// `2 seats are`, for a sentence.
fn are_kept(seats: i64) -> String {
    if seats == 1 { "1 seat is".to_owned() } else { format!("{seats} seats are") }
}

fn is_full(outlook: &Outlook) -> bool {
    u64::try_from(outlook.in_queue).unwrap_or(u64::MAX) >= outlook.in_queue_max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(ahead: f64) -> Outlook {
        let mut outlook = Outlook::default();
        outlook.ahead = ahead;
        outlook
    }

    #[test]
    fn the_range_is_around_the_expected_wait_and_narrower_the_more_is_known() {
        let wait = |ahead, counted| {
            let rate = Some(DrainRate { per_second: 100.0, counted });
            ExpectedWait::waiting(&outlook(ahead), 1.0, rate, "", Duration::from_secs(15))
        };
        let near = wait(399.0, 1000.0);
        assert_eq!((near.outcome, near.expected_ms), (WaitOutcome::Waits, Some(4000.0)));
        let width = |wait: &ExpectedWait| (wait.low_ms.unwrap(), wait.high_ms.unwrap());
        let (low, high) = width(&near);
        assert!(3500.0 < low && low < 4000.0 && 4000.0 < high && high < 4500.0, "{low} {high}");
        let (less, more) = width(&wait(399.0, 10.0));
        assert!(less < low && more > high);
        assert_eq!(wait(1999.0, 10.0).outcome, WaitOutcome::TimesOut);
        assert_eq!(wait(1e12, 10.0).expected_ms, Some(3_600_000.0));
    }

    #[test]
    fn a_wide_request_needs_more_ends() {
        for (seats, used, running, expected) in [(1, 20, 20, 1.0), (5, 20, 20, 5.0), (5, 100, 20, 1.0), (5, 0, 0, 5.0)]
        {
            assert!((ends_needed(seats, used, running) - expected).abs() < 1e-9, "{seats} {used} {running}");
        }
    }

    #[test]
    fn without_a_rate_nothing_is_promised() {
        let wait = ExpectedWait::waiting(&outlook(3.0), 1.0, None, "4 requests wait", Duration::from_secs(15));
        assert_eq!((wait.outcome, wait.expected_ms, wait.ahead), (WaitOutcome::Waits, None, 3.0));
        assert!(wait.why.starts_with("4 requests wait; none has ended"), "{}", wait.why);
    }
}
