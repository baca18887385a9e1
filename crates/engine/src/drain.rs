//! How fast the requests of a level drain, and what a rejected client is told because of that: how long its request would have
//! waited, and when it should try again.
//!
//! This is what services other than a Kubernetes API tell their clients. What Kubernetes tells them goes by the number of
//! rejected requests only: see [`retry_after`](crate::retry_after).

use std::time::Duration;

use crate::elementary;
use crate::queue_set::{Mode, QueueSet};
use crate::time::{Instant, Nanos, SECOND};

/// Measures how many of the waiting requests of a level get seats in a second.
///
/// Only the time counts in which the level is saturated. A level with free seats ends as many requests as arrive, which says
/// nothing about how many it could end.
///
/// Requests are counted, and not seats: what waits and what ends are requests of the same mix, so the widths cancel out. Where some
/// requests pass those that wait, on seats that are kept for them (PF-10), their ends say nothing about those that wait; and
/// where the level gets more seats, those that start at once say nothing about those that follow. So the fewer count: the
/// requests that have ended, or those that have started after a wait.
///
/// ```
/// use std::time::Duration;
/// use evenkeel_engine::drain::{DrainMeter, Drained};
/// use evenkeel_engine::time::{Instant, MILLISECOND};
///
/// let at = |ms: i64| Instant::from_nanos(ms * MILLISECOND);
/// let mut meter = DrainMeter::new(at(0), 7);
/// meter.note(at(0), true, Drained::default());
/// for n in 1..=100 {
///     meter.note(at(10 * n), true, Drained { ended: 1, started: 1 });
/// }
/// // A hundred requests end in a second, and 199 wait: the next one would start in two seconds.
/// let wait = meter.expected_wait(at(1_000), 199, 1).unwrap();
/// assert!(wait.abs_diff(Duration::from_secs(2)) < Duration::from_millis(1));
/// assert!((2..=4).contains(&meter.retry_after(wait).as_secs()));
/// ```
#[derive(Debug, Clone)]
pub struct DrainMeter {
    is_saturated: bool,
    /// The time up to which the meter has counted.
    latest: Instant,
    /// What has happened since the averages were last updated: exponentials are not for every event.
    recent_ns: Nanos,
    recent: Drained,
    /// Saturated seconds, and requests that ended or started after a wait in them. All of them fade.
    seconds: f64,
    ended: f64,
    started: f64,
    /// How many requests the level had started after a wait at the last look.
    started_before: u64,
    random: u64,
}

/// The requests that an event let drain from a level.
///
/// Not `#[non_exhaustive]`: it is a pair of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// How many requests have given their seats back.
    pub ended: u64,
    /// How many requests that had waited have got seats.
    pub started: u64,
}

/// How fast a level drains.
///
/// Not `#[non_exhaustive]`: it is a pair of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DrainRate {
    /// How many requests drain in a second.
    pub per_second: f64,
    /// How many requests the figure `per_second` comes from. Those of long ago count for less.
    pub counted: f64,
}

/// The advice for a client whose request is rejected.
///
/// Not `#[non_exhaustive]`: it is a pair of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// When the client should try again.
    pub retry_after: Duration,
    /// How long the request would have waited; `None` if that is not known.
    pub expected_wait: Option<Duration>,
}

/// The requests of a level that one more would have to wait for.
///
/// Not `#[non_exhaustive]`: it is a pair of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ahead {
    /// How many requests wait.
    pub waiting: usize,
    /// How many requests hold seats.
    pub running: usize,
}

/// How fast the past fades: what happened so many saturated seconds ago counts for a third. Long enough for some requests of
/// a second or two each, short enough to follow a service that becomes slower.
const FADING_SECONDS: f64 = 10.0;
/// How often the averages are updated.
const UPDATE_PERIOD: Nanos = SECOND;

/// The longest wait that a client is told: a level that drains more slowly than this hangs, and nobody knows when it goes on.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// The wait that a suggestion is based on if the wait is not known: a client should not stay away for long after a level has
/// recovered.
const UNKNOWN_WAIT: Duration = Duration::from_secs(60);

/// The least suggestion: the header has whole seconds, and 0 would be an invitation to try again at once.
const RETRY_SECONDS_MIN: f64 = 1.0;
/// Suggestions are spread over this part of the wait, so that clients do not come back together.
const SPREAD: f64 = 0.5;
/// Advice is spread over so many seconds at least. Whole seconds leave two values then.
const SPREAD_SECONDS_MIN: f64 = 2.0;

// === impl DrainMeter ===

impl DrainMeter {
    /// A meter of a level that has free seats. Levels with different seeds spread their clients differently.
    pub fn new(now: Instant, seed: u64) -> Self {
        Self {
            is_saturated: false,
            latest: now,
            recent_ns: 0,
            recent: Drained::default(),
            seconds: 0.0,
            ended: 0.0,
            started: 0.0,
            started_before: 0,
            random: seed,
        }
    }

    /// Looks at a level in which something has happened: so many of its requests have given their seats back. `usable` is how many
    /// seats the level could use now: its limit, or what a ledger says.
    #[inline]
    pub fn look<T>(&mut self, now: Instant, set: &QueueSet<T>, usable: impl FnOnce() -> i64, ended: u64) {
        let started = match set.mode() {
            Mode::Queue(_) => set.dispatched_late().saturating_sub(self.started_before),
            // No request waits, and a rejected one needs a seat that becomes free.
            _ => ended,
        };
        self.started_before = set.dispatched_late();
        self.note(now, is_saturated(set, usable), Drained { ended, started });
    }

    /// Something has happened in the level, which is now saturated or not, that is to say, requests wait, or would be rejected for
    /// want of a seat.
    #[inline]
    pub fn note(&mut self, now: Instant, is_saturated: bool, drained: Drained) {
        if self.is_saturated {
            self.recent_ns = self.recent_ns.saturating_add(now - self.latest);
            self.recent.ended = self.recent.ended.saturating_add(drained.ended);
            self.recent.started = self.recent.started.saturating_add(drained.started);
            if self.recent_ns >= UPDATE_PERIOD {
                self.update();
            }
        }
        self.is_saturated = is_saturated;
        self.latest = now;
    }

    /// How long a request that is rejected now would have waited, behind so many waiting requests and so many running ones.
    ///
    /// As long as none has ended, or none of those that wait has started, all that is known is that each takes longer than this. `None` if nobody knows: for a
    /// saturated level in which nothing runs, and for one that drains so slowly that the wait would be more than five minutes.
    pub fn expected_wait(&self, now: Instant, waiting: usize, running: usize) -> Option<Duration> {
        if running == 0 {
            return (!self.is_saturated).then_some(Duration::ZERO);
        }
        let mut latest = self.clone();
        latest.note(now, false, Drained::default());
        latest.update();
        let drained = if latest.drained() > 0.0 { latest.drained() } else { to_f64(running as u64) };
        // The request itself needs a seat too.
        let wait = (to_f64(waiting as u64) + 1.0) * latest.seconds / drained;
        Duration::try_from_secs_f64(wait).ok().filter(|wait| *wait <= WAIT_MAX)
    }

    /// How many requests drain in a second while the level is saturated; `None` if none has in such a time.
    pub fn rate(&self, now: Instant) -> Option<DrainRate> {
        let mut latest = self.clone();
        latest.note(now, false, Drained::default());
        latest.update();
        let (drained, per_second) = (latest.drained(), latest.drained() / latest.seconds);
        (drained > 0.0 && per_second.is_finite()).then_some(DrainRate { per_second, counted: drained })
    }

    /// When a client whose request would have waited so long should try again: in whole seconds, at least one, and never less
    /// than the wait. Two clients get different suggestions, so that they do not come back together.
    pub fn retry_after(&mut self, expected_wait: Duration) -> Duration {
        let wait = expected_wait.min(WAIT_MAX).as_secs_f64();
        let spread = (wait * SPREAD).max(SPREAD_SECONDS_MIN);
        Duration::from_secs_f64((wait + spread * self.next_random()).ceil().max(RETRY_SECONDS_MIN))
    }

    /// The advice for a client whose request this level rejects now.
    pub fn advise<T>(&mut self, now: Instant, set: &QueueSet<T>) -> Advice {
        self.advise_behind(now, Ahead::of(set))
    }

    /// The same advice where only the requests are known that this one would have to wait for.
    pub fn advise_behind(&mut self, now: Instant, ahead: Ahead) -> Advice {
        let expected_wait = self.expected_wait(now, ahead.waiting, ahead.running);
        Advice { retry_after: self.retry_after(expected_wait.unwrap_or(UNKNOWN_WAIT)), expected_wait }
    }

    /// Lets the past fade, and adds what has happened since.
    fn update(&mut self) {
        if self.recent_ns <= 0 {
            return;
        }
        let recent = to_f64(self.recent_ns.unsigned_abs()) / 1e9;
        let kept = elementary::exp(-recent / FADING_SECONDS);
        // Recent counts fade too, if the update comes late.
        let weight = FADING_SECONDS * (1.0 - kept) / recent;
        self.seconds = self.seconds * kept + recent * weight;
        // A count never fades to zero: that a request has ended stays known, however long ago it was.
        let faded = |count: f64| if count > 0.0 { (count * kept).max(f64::MIN_POSITIVE) } else { 0.0 };
        self.ended = faded(self.ended) + to_f64(self.recent.ended) * weight;
        self.started = faded(self.started) + to_f64(self.recent.started) * weight;
        (self.recent_ns, self.recent) = (0, Drained::default());
    }

    /// How many requests have drained in the saturated seconds that are remembered.
    fn drained(&self) -> f64 {
        // Recent counts have not faded yet.
        let sum = |faded: f64, recent: u64| faded + to_f64(recent);
        sum(self.ended, self.recent.ended).min(sum(self.started, self.recent.started))
    }

    /// A number from 0 to 1, by `SplitMix64`.
    fn next_random(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        to_f64((mixed ^ (mixed >> 31)) >> 11) / to_f64(1 << 53)
    }
}

// === impl Ahead ===

impl Ahead {
    /// The numbers of a level.
    pub fn of<T>(set: &QueueSet<T>) -> Self {
        // Requests that linger hold seats too, and some that run hold none.
        let running = (set.executing() - set.seatless()).max(usize::from(set.seats_in_use() > 0));
        Self { waiting: set.waiting(), running }
    }
}

/// Whether requests of a level wait, or would be rejected for want of a seat. `usable` is how many seats the level could use
/// now: its limit, or what a ledger says.
#[inline]
pub fn is_saturated<T>(set: &QueueSet<T>, usable: impl FnOnce() -> i64) -> bool {
    if matches!(set.mode(), Mode::Queue(_) | Mode::Exempt) || set.waiting() > 0 {
        return set.waiting() > 0;
    }
    set.seats_in_use() >= usable()
}

#[expect(clippy::cast_precision_loss, reason = "an estimate needs no more than 53 bits")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::WorkEstimate;
    use crate::queue_set::{Arrival, Finish, Mode, NoEffects, Phase, QueueSet, QueueSetConfig, RequestId};
    use crate::time::MILLISECOND;

    fn at(ms: i64) -> Instant {
        Instant::from_nanos(ms * MILLISECOND)
    }

    /// So many requests have ended, and as many waiting ones have started.
    fn both(count: u64) -> Drained {
        Drained { ended: count, started: count }
    }

    /// A level with that many seats, whose requests take from `service` milliseconds to twice that.
    struct Simulated {
        set: QueueSet<i64>,
        meter: DrainMeter,
        service: i64,
        random: DrainMeter,
        /// The ends of running requests, in milliseconds.
        ends: Vec<(i64, RequestId)>,
    }

    impl Simulated {
        fn new(seats: i64, service: i64, seed: u64) -> Self {
            let config = QueueSetConfig { mode: Mode::queue(1, 1, 100_000).unwrap(), concurrency_limit: seats };
            let (set, meter) = (QueueSet::new(config, at(0)), DrainMeter::new(at(0), seed));
            Self { set, meter, service, random: DrainMeter::new(at(0), !seed), ends: Vec::new() }
        }

        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers")]
        fn draw_service(&mut self) -> i64 {
            self.service + (self.service as f64 * self.random.next_random()) as i64
        }

        fn note(&mut self, now: i64, ended: u64) {
            let limit = self.set.concurrency_limit();
            self.meter.look(at(now), &self.set, || limit, ended);
        }

        fn arrive(&mut self, now: i64) -> RequestId {
            let service = self.draw_service();
            let arrival = self.set.arrive(at(now), 0, WorkEstimate::ONE_SEAT, service, &mut NoEffects);
            self.note(now, 0);
            match arrival {
                Arrival::Started { id, .. } => {
                    self.ends.push((now + service, id));
                    id
                }
                Arrival::Waiting { id, .. } => id,
                Arrival::Rejected { .. } => panic!("the queue has room"),
            }
        }

        /// Ends what ends by then.
        fn run_until(&mut self, until: i64) {
            while let Some(next) =
                (0..self.ends.len()).min_by_key(|i| self.ends[*i].0).filter(|i| self.ends[*i].0 <= until)
            {
                let (now, id) = self.ends.swap_remove(next);
                let mut started = Vec::new();
                let mut note = |id: RequestId, service: &mut i64| started.push((now + *service, id));
                assert!(matches!(self.set.finish(at(now), id, &mut note), Some(Finish::Released(_))));
                self.ends.extend(started);
                self.note(now, 1);
            }
        }

        fn expected_ms(&self, now: i64) -> i64 {
            let wait = self.meter.expected_wait(at(now), self.set.waiting(), self.set.executing());
            i64::try_from(wait.unwrap().as_millis()).unwrap()
        }
    }

    /// How long a request really waits that arrives now, beside what the meter expects.
    fn expected_and_real(level: &mut Simulated, now: i64) -> (i64, i64) {
        let expected = level.expected_ms(now);
        let id = level.arrive(now);
        let mut later = now;
        while level.set.phase(id) == Some(Phase::Waiting) {
            later += 1;
            level.run_until(later);
        }
        (expected, later - now)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn the_expected_wait_is_near_the_real_one(
            seats in 1..40_i64,
            service in 5..200_i64,
            backlog in 50..400_usize,
            seed in any::<u64>(),
        ) {
            let mut level = Simulated::new(seats, service, seed);
            (0..backlog).for_each(|_| { level.arrive(0); });
            // Some tens of requests have ended; the rest waits.
            let ended = i64::try_from(backlog / 3).unwrap();
            let now = ended * service * 3 / 2 / seats + 2 * service;
            level.run_until(now);
            (0..backlog).for_each(|_| { level.arrive(now); });
            let (expected, real) = expected_and_real(&mut level, now);
            prop_assert!(expected * 2 >= real && expected <= real * 2, "expected {expected} ms, waited {real} ms");
        }

        #[test]
        fn suggestions_are_whole_seconds_and_no_less_than_the_wait(wait_ms in 0..=300_000_u64, seed in any::<u64>()) {
            let mut meter = DrainMeter::new(at(0), seed);
            let wait = Duration::from_millis(wait_ms);
            let retry_after = meter.retry_after(wait);
            prop_assert_eq!(retry_after.subsec_nanos(), 0);
            prop_assert!(retry_after >= wait.max(Duration::from_secs(1)));
            prop_assert!(retry_after <= wait + (wait / 2).max(Duration::from_secs(2)) + Duration::from_secs(1));
        }

        #[test]
        fn any_events_leave_a_wait_that_can_be_told(
            events in prop::collection::vec((0..i64::MAX / 100, any::<bool>(), any::<u32>()), 0..50),
            waiting in any::<usize>(),
            running in any::<usize>(),
        ) {
            let (mut meter, mut now) = (DrainMeter::new(at(0), 1), at(0));
            for (ns, is_saturated, ended) in events {
                now = now + ns;
                meter.note(now, is_saturated, both(ended.into()));
            }
            prop_assert!(meter.expected_wait(now, waiting, running).is_none_or(|wait| wait <= WAIT_MAX));
        }
    }

    #[test]
    fn time_without_waiting_requests_does_not_count() {
        let mut level = Simulated::new(2, 100, 1);
        for round in 0..10 {
            // An hour in which hardly anything happens.
            let now = round * 3_600_000;
            (0..100).for_each(|_| {
                level.arrive(now);
            });
            level.run_until(now + 5_000);
            let (expected, real) = expected_and_real(&mut level, now + 5_000);
            assert!(expected * 2 >= real && expected <= real * 2, "round {round}: {expected} ms, {real} ms");
            level.run_until(now + 3_000_000);
            assert!(level.set.is_idle());
        }
    }

    #[test]
    fn a_service_that_becomes_slower_is_noticed() {
        let mut level = Simulated::new(10, 10, 1);
        (0..20_000).for_each(|_| {
            level.arrive(0);
        });
        level.run_until(10_000);
        let fast = level.expected_ms(10_000) / i64::try_from(level.set.waiting()).unwrap().max(1);
        assert!(fast <= 2, "{fast} ms for each");
        // Requests that wait have drawn their time already; this is as if each took fifty times as long.
        let mut meter = level.meter.clone();
        for n in 1..=160 {
            meter.note(at(10_000 + 500 * n), true, both(7));
        }
        let slow = meter.expected_wait(at(90_000), 999, 10).unwrap().as_secs();
        assert!((60..=75).contains(&slow), "{slow} s for a thousand at 14 a second");
    }

    #[test]
    fn a_service_that_hangs_makes_the_wait_longer_and_longer() {
        let mut meter = DrainMeter::new(at(0), 1);
        meter.note(at(0), true, both(0));
        for n in 1..=1_000 {
            meter.note(at(10 * n), true, both(1));
        }
        let wait_after = |s: i64| meter.expected_wait(at(10_000 + 1_000 * s), 99, 1).unwrap();
        let waits = [0, 10, 30, 50].map(|s| wait_after(s).as_millis());
        assert!((950..1_050).contains(&waits[0]), "{waits:?}");
        assert!(waits.is_sorted_by(|a, b| a < b) && waits[3] > 100_000, "{waits:?}");
        let unknown = |s: i64| meter.expected_wait(at(10_000 + 1_000 * s), 99, 1);
        assert_eq!([100, 1_000, 100_000, 10_000_000].map(unknown), [None; 4], "it hangs");
    }

    #[test]
    fn before_the_first_end_the_wait_is_at_least_what_has_passed() {
        let mut meter = DrainMeter::new(at(0), 1);
        meter.note(at(0), true, both(0));
        // Ten requests have run for 50 ms and none has ended: the next twenty take at least twice that.
        assert_eq!(meter.expected_wait(at(50), 19, 10).unwrap().as_millis(), 99);
    }

    #[test]
    fn the_rate_is_that_of_the_saturated_time() {
        let mut meter = DrainMeter::new(at(0), 1);
        assert_eq!(meter.rate(at(100)), None);
        meter.note(at(1_000), true, both(0));
        for n in 1..=200 {
            meter.note(at(1_000 + 10 * n), true, both(1));
        }
        // Nobody waits for an hour, and little ends.
        meter.note(at(3_000), false, both(0));
        meter.note(at(3_600_000), true, both(1));
        let rate = meter.rate(at(3_600_000)).unwrap();
        assert!((99.0..101.0).contains(&rate.per_second) && (150.0..=200.0).contains(&rate.counted), "{rate:?}");
    }

    #[test]
    fn a_level_in_which_nothing_runs_drains_at_once_or_not_at_all() {
        let mut meter = DrainMeter::new(at(0), 1);
        assert_eq!(meter.expected_wait(at(50), 0, 0), Some(Duration::ZERO));
        meter.note(at(0), true, both(0));
        assert_eq!(meter.expected_wait(at(50), 0, 0), None);
    }

    #[test]
    fn suggestions_are_spread_over_half_the_wait() {
        for (wait, from, to) in [(0, 1, 2), (1, 2, 3), (10, 11, 15), (40, 41, 60), (200, 201, 300)] {
            let mut meter = DrainMeter::new(at(0), 3);
            let mut counts = HashMap::<u64, u32>::new();
            for _ in 0..100_000 {
                *counts.entry(meter.retry_after(Duration::from_secs(wait)).as_secs()).or_default() += 1;
            }
            let (least, most) = (counts.keys().min().unwrap(), counts.keys().max().unwrap());
            assert_eq!((*least, *most), (from, to), "a wait of {wait} s");
            let fair = 100_000 / u32::try_from(to - from + 1).unwrap();
            assert!(
                counts.values().all(|count| *count > fair * 3 / 4 && *count < fair * 5 / 4),
                "{wait} s: {counts:?}"
            );
        }
    }

    #[test]
    fn no_suggestion_is_less_than_the_wait_that_is_told() {
        for seats in [1, 7] {
            let mut level = Simulated::new(seats, 900, 5);
            (0..500).for_each(|_| {
                level.arrive(0);
            });
            for now in (1_000..40_000).step_by(500) {
                level.run_until(now);
                let advice = level.meter.advise(at(now), &level.set);
                match advice.expected_wait {
                    Some(wait) => {
                        let most = wait.as_secs_f64() + (wait.as_secs_f64() * SPREAD).max(SPREAD_SECONDS_MIN);
                        assert!(advice.retry_after >= wait, "{advice:?}");
                        assert!(advice.retry_after.as_secs_f64() <= most.ceil(), "{advice:?}");
                    }
                    None => assert!((61..=90).contains(&advice.retry_after.as_secs()), "{advice:?}"),
                }
            }
        }
    }

    #[test]
    fn levels_spread_their_clients_differently() {
        let suggestions = |seed| {
            let mut meter = DrainMeter::new(at(0), seed);
            [(); 20].map(|()| meter.retry_after(Duration::from_secs(20)))
        };
        assert_ne!(suggestions(1), suggestions(2));
    }
}
