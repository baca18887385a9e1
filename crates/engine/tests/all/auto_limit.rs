//! The limit that finds itself holds its promises whatever happens (AL).

use evenkeel_engine::auto_limit::{AutoLimit, Learnt, LimitReason, Load, Phase, Sample, TICK};
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos};

/// A service of which only the curve is known: the seat-time for a response by the seats in use.
struct Curve<F> {
    limit: AutoLimit,
    cost: F,
    now: Instant,
    /// The part of a response that is left over.
    remainder: f64,
}

impl<F: Fn(f64) -> f64> Curve<F> {
    fn new(limit: AutoLimit, cost: F) -> Self {
        Self { limit, cost, now: Instant::from_nanos(0), remainder: 0.0 }
    }

    /// Runs an overload for some seconds.
    fn overload(&mut self, seconds: f64) {
        let mut left = seconds / 0.005;
        while left > 0.0 {
            left -= 1.0;
            self.tick(true, true);
        }
    }

    /// Runs an overload until something holds of the limit, for a minute at most.
    fn overload_until(&mut self, holds: impl Fn(&AutoLimit) -> bool) {
        let ticks = (0..12_000).take_while(|_| {
            self.tick(true, true);
            !holds(&self.limit)
        });
        assert!(ticks.count() < 12_000, "{:?}", self.limit.status());
    }

    /// Somebody waits for the time of a tick or nobody does, and requests end well or fail.
    #[expect(clippy::cast_possible_truncation, reason = "a span of some milliseconds")]
    fn tick(&mut self, somebody_waits: bool, is_good: bool) {
        let seats = self.limit.limit();
        let cost = (self.cost)(f64::from(seats));
        let mut sample = Sample::default();
        sample.passed(TICK, seats, somebody_waits);
        self.remainder += 0.005 * f64::from(seats) / cost;
        while self.remainder >= 1.0 {
            self.remainder -= 1.0;
            sample.ended(0, (cost * 1e9) as Nanos, 1, is_good);
        }
        self.now = self.now + TICK;
        self.limit.tick(self.now, &sample, seats);
    }
}

/// Whether a trial with more seats is under way.
fn is_trying_more(limit: &AutoLimit) -> bool {
    let status = limit.status();
    status.phase == Phase::Trying && f64::from(status.applied) > status.limit + 1.0
}

/// AL-1: as long as each further seat brings as much as the others, the limit goes up; up to its bound.
#[test]
fn a_service_without_a_limit_of_its_own_gets_all_seats() {
    let mut service = Curve::new(AutoLimit::new(1..=400, 10, None), |_| 0.01);
    service.overload(60.0);
    assert!(service.limit.limit() > 350, "{:?}", service.limit.status());
}

/// AL-1: where further seats bring nothing, the limit does not run away, however long it takes.
#[test]
fn seats_that_bring_nothing_are_not_taken() {
    let mut service = Curve::new(AutoLimit::new(1..=1000, 20, None), |seats| 0.01 * (seats / 20.0).max(1.0));
    for minute in 0..30 {
        service.overload(60.0);
        let limit = service.limit.limit();
        assert!((15..=27).contains(&limit), "{limit} after {minute} minutes");
    }
}

/// AL-5: a service that refuses above a number of requests is not filled beyond it for long.
#[test]
fn failures_brake() {
    let mut limit = AutoLimit::new(1..=1000, 100, None);
    let mut now = Instant::from_nanos(0);
    let mut failed = 0;
    for tick in 0..4000 {
        let seats = limit.limit();
        let mut sample = Sample::default();
        sample.passed(TICK, seats, true);
        for request in 0..seats {
            let is_good = request < 40;
            failed += u32::from(!is_good && tick >= 2000);
            sample.ended(0, 5 * MILLISECOND, 1, is_good);
        }
        now = now + TICK;
        limit.tick(now, &sample, seats);
    }
    assert!(limit.limit() <= 50, "{:?}", limit.status());
    assert!(failed < 2000 * 5, "{failed} requests failed in the last ten seconds");
    assert!(limit.changes_since(0).any(|(_, change)| matches!(change.reason, LimitReason::Brake { .. })));
}

/// FL-13: what happens while the limit is not in effect everywhere says nothing, however long that takes; failures brake.
#[test]
fn fl_13_nothing_is_judged_before_the_limit_is_in_effect_everywhere() {
    let mut service = Curve::new(AutoLimit::new(1..=400, 10, None), |_| 0.01);
    service.overload_until(is_trying_more);
    let before = service.limit.status();
    let settle = |service: &mut Curve<fn(f64) -> f64>, is_good: bool| {
        let seats = service.limit.limit();
        let mut sample = Sample::default();
        sample.passed(TICK, seats, true);
        (0..seats).for_each(|_| sample.ended(0, 5 * MILLISECOND, 1, is_good));
        service.now = service.now + TICK;
        service.limit.settle(service.now, &sample);
    };
    let mut service =
        Curve { limit: service.limit, cost: (|_| 0.01) as fn(f64) -> f64, now: service.now, remainder: 0.0 };
    (0..2000).for_each(|_| settle(&mut service, true));
    assert_eq!((service.limit.status().phase, service.limit.limit()), (before.phase, before.applied));
    // The trial goes on when it is.
    service.overload_until(|limit| limit.status().limit > before.limit);
    // Failures brake once; whether that helps is not known before it is in effect.
    let brakes = |limit: &AutoLimit| {
        limit.changes_since(0).filter(|(_, change)| matches!(change.reason, LimitReason::Brake { .. })).count()
    };
    while service.limit.status().phase != Phase::Holding {
        service.tick(true, true);
    }
    let before = service.limit.limit();
    (0..2000).for_each(|_| settle(&mut service, false));
    assert_eq!(brakes(&service.limit), 1, "{:?}", service.limit.status());
    assert!(service.limit.limit() < before, "{before} seats before");
}

/// AL-10: an outside signal keeps the limit from rising, and not from falling.
#[test]
fn a_limit_that_is_held_down_does_not_rise() {
    let learnt = Learnt { limit: 20.0, ln_cost: None, peak: 0.0 };
    let mut service = Curve::new(AutoLimit::new(1..=400, 20, Some(learnt)), |_| 0.01);
    service.limit.hold_down(true);
    service.overload(30.0);
    assert!(service.limit.limit() <= 20, "{:?}", service.limit.status());
    service.limit.hold_down(false);
    service.overload(60.0);
    assert!(service.limit.limit() > 40, "{:?}", service.limit.status());
}

/// AL-10: a trial with more seats that is under way when the outside signal comes is not taken, though it would have been.
#[test]
fn al_10_a_trial_upwards_ends_when_the_limit_is_held_down() {
    let mut service = Curve::new(AutoLimit::new(1..=400, 10, None), |_| 0.01);
    service.overload_until(is_trying_more);
    let before = service.limit.status().limit;
    service.limit.hold_down(true);
    for tick in 0..2000 {
        service.tick(true, true);
        let status = service.limit.status();
        assert!(status.limit <= before, "tick {tick}: {status:?}");
        assert!(f64::from(status.applied) <= before, "tick {tick}: {status:?}");
    }
}

/// AL-10: the same for a probe with more seats.
#[test]
fn al_10_a_probe_upwards_ends_when_the_limit_is_held_down() {
    let learnt = Learnt { limit: 20.0, ln_cost: None, peak: 0.0 };
    let mut service = Curve::new(AutoLimit::new(1..=400, 20, Some(learnt)), |seats| 0.01 * (seats / 20.0).max(1.0));
    service.overload_until(|limit| limit.status().phase == Phase::ProbingUp);
    let before = service.limit.status();
    assert!(f64::from(before.applied) > before.limit, "{before:?}");
    service.limit.hold_down(true);
    service.tick(true, true);
    let after = service.limit.status();
    assert!(f64::from(after.applied) <= before.limit.round(), "{after:?}");
}

/// AL-10: when nobody waits any more, a start that climbs keeps the limit of its trial; but not while the limit is held down.
#[test]
fn al_10_the_end_of_an_overload_does_not_raise_a_limit_that_is_held_down() {
    for is_held_down in [false, true] {
        let mut service = Curve::new(AutoLimit::new(1..=400, 10, None), |_| 0.01);
        service.overload_until(is_trying_more);
        let before = service.limit.status().limit;
        service.limit.hold_down(is_held_down);
        while service.limit.status().load != Load::Light {
            service.tick(false, true);
        }
        assert_eq!(service.limit.status().limit > before, !is_held_down, "{:?}", service.limit.status());
    }
}

/// AL-10: a brake that did not help is released, but not while the limit is held down.
#[test]
fn al_10_a_brake_is_not_released_while_the_limit_is_held_down() {
    for is_held_down in [false, true] {
        let mut service = Curve::new(AutoLimit::new(1..=400, 100, None), |_| 0.01);
        service.limit.hold_down(is_held_down);
        let is_released = |limit: &AutoLimit| {
            limit.changes_since(0).any(|(_, change)| matches!(change.reason, LimitReason::BrakeReleased))
        };
        for _ in 0..2000 {
            service.tick(false, false);
            if is_released(&service.limit) {
                break;
            }
        }
        assert!(is_released(&service.limit), "{:?}", service.limit.status());
        let expected = if is_held_down { 12 } else { 100 };
        assert_eq!(service.limit.limit(), expected, "{:?}", service.limit.status());
    }
}

/// AL-11: a pause of the service, after which all requests inside end late and together, changes nothing.
#[test]
fn al_11_a_pause_of_the_service_changes_nothing() {
    let learnt = Learnt { limit: 20.0, ln_cost: Some(0.01_f64.ln()), peak: 2000.0 };
    for pause in [20, 40, 100, 400] {
        let cost = |seats: f64| 0.01 * (seats / 20.0).max(1.0);
        let mut service = Curve::new(AutoLimit::new(1..=400, 20, Some(learnt)), cost);
        service.overload(30.0);
        let before = service.limit.status().limit;
        let seats = service.limit.limit();
        for tick in 0..pause {
            let mut sample = Sample::default();
            sample.passed(TICK, seats, true);
            if tick == pause - 1 {
                for _ in 0..seats {
                    sample.ended(0, 10 * MILLISECOND + Nanos::from(pause) * TICK, 1, true);
                }
            }
            service.now = service.now + TICK;
            service.limit.tick(service.now, &sample, seats);
        }
        let told = service.limit.changes_since(0).count();
        service.overload(2.0);
        let mut after = service.limit.changes_since(told as u64).map(|(_, change)| change.reason);
        assert!(!after.any(|reason| matches!(reason, LimitReason::Search(_))), "{pause} ticks");
        let limit = service.limit.status().limit;
        assert!((limit / before).ln().abs() < 0.05, "{pause} ticks: {before} and {limit}");
    }
}

/// AL-11: `N` is seats in use, so requests of four seats each get as many seats as requests of one.
#[test]
fn al_11_wide_requests_count_by_their_seats() {
    // Each seat adds to the throughput up to 20, and nothing beyond.
    let mut limit = AutoLimit::new(1..=1000, 8, None);
    let (mut now, mut remainder) = (Instant::from_nanos(0), 0.0);
    for _ in 0..12_000 {
        let seats = limit.limit();
        let (requests, time) = (f64::from(seats / 4).max(1.0), 0.01 * (f64::from(seats) / 20.0).max(1.0));
        let mut sample = Sample::default();
        sample.passed(TICK, seats, true);
        remainder += 0.005 * requests / time;
        while remainder >= 1.0 {
            remainder -= 1.0;
            #[expect(clippy::cast_possible_truncation, reason = "some milliseconds")]
            sample.ended(0, (time * 1e9) as Nanos, 4, true);
        }
        now = now + TICK;
        limit.tick(now, &sample, seats);
    }
    assert!((15..=28).contains(&limit.limit()), "{:?}", limit.status());
}

/// AL-11: streams that last hold seats and end rarely. They are in use all the time, and the limit of the rest is found beside them.
#[test]
fn al_11_streams_that_last_do_not_mislead() {
    // Ten streams hold a seat each; of the other seats, 20 bring responses.
    let mut limit = AutoLimit::new(1..=1000, 15, None);
    let (mut now, mut remainder) = (Instant::from_nanos(0), 0.0);
    for tick in 0..24_000 {
        let seats = limit.limit();
        let others = f64::from(seats.saturating_sub(10)).max(1.0);
        let time = 0.01 * (others / 20.0).max(1.0);
        let mut sample = Sample::default();
        sample.passed(TICK, seats, true);
        remainder += 0.005 * others / time;
        while remainder >= 1.0 {
            remainder -= 1.0;
            #[expect(clippy::cast_possible_truncation, reason = "some milliseconds")]
            sample.ended(0, (time * 1e9) as Nanos, 1, true);
        }
        if tick % 1200 == 1199 {
            // A stream of a minute ends, and another one begins.
            sample.ended(1, 60_000 * MILLISECOND, 1, true);
        }
        now = now + TICK;
        limit.tick(now, &sample, seats);
    }
    assert!((22..=45).contains(&limit.limit()), "{:?}", limit.status());
}

/// AL-9: requests of another class become frequent and rare again in the middle of everything, and the service is the same. The limit stays.
#[test]
fn al_9_a_shift_of_shares_between_classes_is_no_change_of_the_service() {
    let found = |classes: [usize; 2]| {
        let mut limit = AutoLimit::new(1..=1000, 20, None);
        let (mut now, mut work) = (Instant::from_nanos(0), 0.0);
        let mut random = Random(7);
        let (mut furthest, mut dear_share) = (0.0_f64, 0);
        for tick in 0..24_000_u32 {
            // The share of dear requests goes up and down while trials and probes run.
            if tick % 40 == 0 {
                dear_share = 5 + random.below(20);
            }
            let seats = limit.limit();
            let slowdown = (f64::from(seats) / 20.0).max(1.0);
            let mut sample = Sample::default();
            sample.passed(TICK, seats, true);
            work += 0.005 * f64::from(seats) / slowdown;
            loop {
                let (class, own) = if random.below(100) < dear_share { (classes[1], 0.03) } else { (classes[0], 0.01) };
                if work < own {
                    break;
                }
                work -= own;
                #[expect(clippy::cast_possible_truncation, reason = "some milliseconds")]
                sample.ended(class, (own * slowdown * 1e9) as Nanos, 1, true);
            }
            now = now + TICK;
            limit.tick(now, &sample, seats);
            if tick > 6000 {
                furthest = furthest.max((limit.status().limit / 20.0).ln().abs());
            }
        }
        furthest
    };
    let (apart, together) = (found([0, 1]), found([0, 0]));
    assert!(apart < 0.3, "{apart} with classes, {together} without");
    assert!(apart < together, "{apart} with classes, {together} without");
}

/// AL-6: the levels get what they need, whatever the limit believes.
#[test]
fn floors_of_levels_win() {
    let mut limit = AutoLimit::new(1..=100, 2, None);
    limit.set_floor(7);
    assert_eq!(limit.limit(), 7);
}

/// AL-3: what was learnt is where the next run starts; damaged figures are not believed.
#[test]
fn a_start_from_what_was_learnt() {
    let learnt = |limit| Learnt { limit, ln_cost: Some(f64::NAN), peak: 10.0 };
    assert_eq!(AutoLimit::new(1..=100, 20, Some(learnt(37.4))).limit(), 37);
    assert_eq!(AutoLimit::new(1..=100, 20, Some(learnt(5000.0))).limit(), 100);
    assert_eq!(AutoLimit::new(1..=100, 20, Some(learnt(f64::NAN))).limit(), 20);
    assert_eq!(AutoLimit::new(1..=100, 20, None).learnt(), None);
}

/// AL-7: a sentence says what was tried, and what came of it.
#[test]
fn changes_are_told_in_sentences() {
    let mut service = Curve::new(AutoLimit::new(1..=400, 10, None), |seats| 0.01 * (seats / 20.0).max(1.0));
    service.overload(10.0);
    let told: Vec<_> = service.limit.changes_since(0).map(|(_, change)| change.to_string()).collect();
    assert_eq!(told[0], "search from 10: the capacity of the service is not known yet", "{told:#?}");
    assert!(told[1].starts_with("trial 10 → 5: elasticity 1.00 ± 0."), "{told:#?}");
    assert!(told[1].ends_with(": not taken"), "{told:#?}");
    assert!(
        told.iter().any(|sentence| sentence.starts_with("trial 10 → 20: ") && sentence.ends_with(": taken")),
        "{told:#?}"
    );
    assert!(told.iter().any(|sentence| sentence.ends_with(": the search has ended")), "{told:#?}");
}

/// Random numbers for histories. Ten times as fast as a strategy of proptest, and a failing seed is as small as a case gets.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn nanos(&mut self, end: Nanos) -> Nanos {
        Nanos::try_from(self.below(end.unsigned_abs())).unwrap()
    }

    /// How long something took, odd clocks included.
    fn span(&mut self, usual: Nanos) -> Nanos {
        match self.below(20) {
            0 => 0,
            1 => -self.nanos(usual),
            2 => self.nanos(1000 * usual),
            3 => Nanos::MAX,
            _ => usual / 2 + self.nanos(usual),
        }
    }
}

/// A history in which anything may happen. If nobody waits, nothing fails either.
fn check_history(seed: u64) {
    let mut random = Random(seed);
    let somebody_waits = random.below(4) > 0;
    let mut limit = AutoLimit::new(3..=500, u32::try_from(random.below(600)).unwrap(), None);
    let (mut now, first) = (Instant::from_nanos(0), limit.limit());
    let (ends, failures, waits) = (1 + random.below(30), random.below(10), random.below(101));
    let (holds, mut is_held_down) = (random.below(2) > 0, false);
    for _ in 0..random.below(400) {
        if holds && random.below(30) == 0 {
            is_held_down = !is_held_down;
            limit.hold_down(is_held_down);
        }
        let before = limit.status();
        let mut sample = Sample::default();
        for class in 0..random.below(ends) {
            let seats = u32::try_from(random.below(5)).unwrap();
            let is_good = !somebody_waits || random.below(10) >= failures;
            sample.ended(usize::try_from(class).unwrap(), random.span(20 * MILLISECOND), seats, is_good);
        }
        for _ in 0..random.below(3) {
            sample.left(random.span(20 * MILLISECOND), 1);
        }
        let span = if random.below(10) > 0 { TICK } else { random.span(TICK) };
        let waits = somebody_waits && random.below(100) < waits;
        let in_use = if random.below(10) > 0 { limit.limit() } else { u32::try_from(random.below(2000)).unwrap() };
        sample.passed(span, in_use, waits);
        now = now + span;
        // Now and then the limit is not in effect on all servers (FL-13).
        let applied = if random.below(20) == 0 { limit.settle(now, &sample) } else { limit.tick(now, &sample, in_use) };
        assert!((3..=500).contains(&applied), "seed {seed}: {applied} is outside of the bounds");
        let status = limit.status();
        assert!(status.limit.is_finite() && status.room.is_finite(), "seed {seed}: {status:?}");
        assert!(status.ceiling.is_none_or(f64::is_finite), "seed {seed}: {status:?}");
        let is_higher = status.limit > before.limit || status.room > before.room;
        assert!(!is_held_down || !is_higher, "seed {seed}: it rose while it was held down: {before:?}, {status:?}");
        assert!(somebody_waits || applied == first, "seed {seed}: it acted while nobody waited");
    }
}

/// AL-2, AL-6, AL-10: never outside of the bounds, always a number, nothing while nobody waits, and no rise while it is held down. `EVENKEEL_LIMIT_HISTORIES` says how many
/// histories are tried: after a change of the law a million, in a release build.
#[test]
fn any_history_keeps_the_promises() {
    let histories = std::env::var("EVENKEEL_LIMIT_HISTORIES").ok().map_or(5_000, |count| count.parse().unwrap());
    (0..histories).for_each(check_history);
}
