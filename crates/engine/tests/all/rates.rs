//! Rates by flow: the algorithm against a bucket of tokens, the table against one without a bound (RL-1 to RL-4).

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::float_cmp,
    reason = "small numbers, and exact ones"
)]

use std::collections::HashMap;

use evenkeel_engine::rate::{FlowStamps, OverRate, RateLimit};
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos, SECOND};
use proptest::prelude::*;

fn at(nanos: Nanos) -> Instant {
    Instant::from_nanos(nanos)
}

/// A bucket that fills at the rate. Its tokens are nanoseconds of the rate, so that everything is exact.
struct Bucket {
    tokens: i128,
    full: i128,
    last: Instant,
}

impl Bucket {
    /// Takes the cost if there are tokens for it; a request that is larger than the bucket needs a full one.
    fn take(&mut self, span: i128, now: Instant) -> bool {
        self.tokens = (self.tokens + i128::from(now - self.last)).min(self.full);
        self.last = now;
        let has_enough = self.tokens >= span.min(self.full);
        if has_enough {
            self.tokens -= span;
        }
        has_enough
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn rl_1_one_stamp_is_as_good_as_a_bucket_of_tokens(
        amount in 1u64..2000,
        period in prop::sample::select(vec![SECOND, 60 * SECOND, 3600 * SECOND]),
        burst in 1u64..50,
        steps in prop::collection::vec((0i64..2 * SECOND, 0u64..60), 1..200),
    ) {
        let limit = RateLimit::new(amount, period, burst);
        let full = i128::from(limit.span_of(burst));
        let mut bucket = Bucket { tokens: full, full, last: at(0) };
        let mut stamps = FlowStamps::new(10);
        let mut now = at(0);
        for (pause, cost) in steps {
            now = now + pause;
            let passes = stamps.take(&limit, 7, cost, now, now).is_ok();
            prop_assert_eq!(passes, bucket.take(limit.span_of(cost).into(), now));
        }
    }

    #[test]
    fn rl_2_who_waits_as_told_conforms_to_the_nanosecond(
        burst in 1u64..5,
        steps in prop::collection::vec((0i64..40 * MILLISECOND, 1u64..4), 1..100),
    ) {
        let limit = RateLimit::new(100, SECOND, burst);
        let mut stamps = FlowStamps::new(10);
        let mut now = at(0);
        for (pause, cost) in steps {
            now = now + pause;
            if let Err(OverRate { conforms_at }) = stamps.take(&limit, 1, cost, now, now) {
                let too_early = at(conforms_at.as_nanos() - 1);
                prop_assert_eq!(stamps.take(&limit, 1, cost, too_early, too_early), Err(OverRate { conforms_at }));
                now = conforms_at;
                prop_assert_eq!(stamps.take(&limit, 1, cost, now, now), Ok(now));
            }
        }
    }

    /// Requests wait up to a second, and some leave while they do. From the moment at which the flow was at rest, no more start than the
    /// rate allows, and all that is allowed is used while somebody waits.
    #[test]
    fn rl_2_what_leaves_gives_its_place_back_and_the_rate_holds(
        burst in 1u64..20,
        steps in prop::collection::vec((0i64..5 * MILLISECOND, prop::bool::weighted(0.3)), 1..400),
    ) {
        let limit = RateLimit::new(100, SECOND, burst);
        let mut stamps = FlowStamps::new(10);
        let (mut now, mut starts) = (at(0), Vec::new());
        for (pause, leaves) in steps {
            now = now + pause;
            let Ok(start) = stamps.take(&limit, 1, 1, now, now + SECOND) else { continue };
            if leaves && start > now {
                stamps.correct(&limit, 1, -1, now);
            } else {
                starts.push(start);
            }
        }
        starts.sort();
        for (index, start) in starts.iter().enumerate() {
            let allowed = burst as i64 + (*start - at(0)) / (10 * MILLISECOND);
            prop_assert!((index as i64) < allowed, "{} by {start}", index + 1);
        }
    }

    #[test]
    fn rl_4_a_bounded_table_decides_as_one_without_a_bound(
        steps in prop::collection::vec((0i64..30 * MILLISECOND, 1u64..500, 1u64..3, 0i64..100 * MILLISECOND), 1..600),
        corrections in prop::collection::vec(-3i64..4, 600),
    ) {
        let limit = RateLimit::new(20, SECOND, 3);
        let (mut stamps, mut plain) = (FlowStamps::new(1 << 20), HashMap::<u64, Instant>::new());
        let mut now = at(0);
        for ((pause, flow, cost, patience), more) in steps.into_iter().zip(corrections) {
            now = now + pause;
            let (start, stamp) = limit.pass(plain.get(&flow).copied(), now, cost);
            let expected = if start <= now + patience { Ok(start) } else { Err(OverRate { conforms_at: start }) };
            if expected.is_ok() {
                plain.insert(flow, stamp);
            }
            prop_assert_eq!(stamps.take(&limit, flow, cost, now, now + patience), expected);
            // Whoever is at rest has nothing to give back.
            if more > 0 || plain.get(&flow).is_some_and(|stamp| *stamp > now) {
                let before = plain.get(&flow).map_or(now, |stamp| (*stamp).max(now));
                plain.insert(flow, before + limit.span_of(1) * more);
            }
            stamps.correct(&limit, flow, more, now);
            let (left, rests_in) = (limit.left(plain.get(&flow).copied(), now), plain.get(&flow).map_or(0, |stamp| (*stamp - now).max(0)));
            let standing = stamps.standing(&limit, flow, now);
            prop_assert_eq!((standing.left, standing.rests_in), (left, rests_in));
        }
        let debtors = plain.values().filter(|stamp| **stamp > now).count();
        prop_assert_eq!(stamps.debtors(now), debtors);
    }
}

#[test]
fn rl_4_names_that_rest_take_no_memory() {
    let limit = RateLimit::new(1000, SECOND, 10);
    let mut stamps = FlowStamps::new(1 << 20);
    // A million names, each once; a thousand of them are not at rest at any time.
    for name in 0..1_000_000u64 {
        let now = at(name as i64 * 1000);
        stamps.take(&limit, name.wrapping_mul(0x9e37_79b9_7f4a_7c15), 1, now, now).unwrap();
    }
    assert!(stamps.bytes() <= 16 * 8192, "{} bytes", stamps.bytes());
}

#[test]
fn rl_4_a_million_debtors_stay_within_the_bound_and_the_oldest_keep_their_debts() {
    let limit = RateLimit::new(1, 3600 * SECOND, 1);
    let flows_max = 100_000;
    let mut stamps = FlowStamps::new(flows_max);
    let flow = |name: u64| name.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for name in 0..1_000_000u64 {
        let now = at(name as i64);
        assert_eq!(stamps.take(&limit, flow(name), 1, now, now), Ok(now), "a newcomer passes");
    }
    let now = at(1_000_000);
    assert_eq!(stamps.debtors(now), flows_max);
    assert!(stamps.bytes() <= 16 * 262_144, "{} bytes", stamps.bytes());
    for name in 0..flows_max as u64 {
        assert!(stamps.take(&limit, flow(name), 1, now, now).is_err(), "{name} is forgotten");
    }
    // When they are at rest, there is room for others.
    let later = at(3601 * SECOND);
    for name in 1_000_000..1_050_000u64 {
        stamps.take(&limit, flow(name), 1, later, later).unwrap();
    }
    assert!(stamps.debtors(later) >= 37_500, "{}", stamps.debtors(later));
}

#[test]
fn rl_1_rates_by_the_hour_and_of_bytes_are_exact() {
    assert_eq!(RateLimit::new(7, 3600 * SECOND, 1).span_of(7), 3600 * SECOND);
    let bytes = RateLimit::new(10_000_000_000, SECOND, 1 << 40);
    assert_eq!(bytes.span_of(10_000_000_000), SECOND);
    assert_eq!(bytes.span_of(25), 3, "2.5 ns, rounded");
    assert_eq!(RateLimit::new(1, 3600 * SECOND, 1).span_of(u64::MAX), 1_000_000_000_000_000, "eleven days at most");
}

#[test]
fn a_request_larger_than_the_burst_passes_when_its_flow_is_at_rest() {
    let limit = RateLimit::new(10, SECOND, 5);
    let mut stamps = FlowStamps::new(10);
    assert_eq!(stamps.take(&limit, 1, 50, at(0), at(0)), Ok(at(0)));
    assert_eq!(stamps.take(&limit, 1, 1, at(0), at(0)), Err(OverRate { conforms_at: at(46 * SECOND / 10) }));
    assert_eq!(stamps.standing(&limit, 1, at(0)).left, 0);
    assert_eq!(stamps.standing(&limit, 1, at(5 * SECOND)).left, 5);
}

/// Rounded down, what may pass at once is less than one request here.
#[test]
fn a_flow_at_rest_may_always_send_a_request() {
    let limit = RateLimit::new(3, SECOND, 1);
    assert_eq!((limit.left(None, at(0)), limit.left(Some(at(0)), at(0))), (1, 1));
    assert_eq!(limit.left(Some(at(1)), at(0)), 0);
}
