//! The account of a running request: whatever the steps, its flow pays exactly what the request cost (CO-4, CO-5).

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::float_cmp,
    reason = "small numbers, and exact ones"
)]

use evenkeel_engine::cost::{CostAccount, SeatRule};
use evenkeel_engine::time::Instant;
use proptest::prelude::*;

fn at(nanos: i64) -> Instant {
    Instant::from_nanos(nanos)
}

#[derive(Debug, Clone)]
enum Step {
    Arise(f64),
    Announce(f64),
    Report(f64),
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0.0f64..500.0).prop_map(Step::Arise),
        1 => (0.0f64..5000.0).prop_map(Step::Announce),
        1 => (0.0f64..5000.0).prop_map(Step::Report),
        3 => (0i64..1_000_000).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn co_5_in_the_end_a_flow_is_charged_the_exact_cost(
        expected in 0.0f64..2000.0,
        cost_per_seat in 1.0f64..500.0,
        price in prop::option::of(0.1f64..1e6),
        has_rule: bool,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let rule = has_rule.then(|| SeatRule::new(cost_per_seat, 20));
        let mut seats = rule.map_or(2, |rule| rule.seats(expected));
        let mut account = CostAccount::open(expected, seats, rule, price);
        // What the queue set charges: the seats, for as long as they are held.
        let (started, mut now, mut since, mut seat_time) = (at(1000), at(1000), at(1000), 0.0);
        let (mut charged, mut arisen, mut reported, mut announced) = (0.0, 0.0f64, None, 0.0f64);
        for step in steps {
            let adjustment = match step {
                Step::Arise(more) => { arisen += more; account.arise(more) }
                Step::Announce(cost) => { announced = announced.max(cost); account.announce(cost) }
                Step::Report(cost) => { (reported, announced) = (Some(cost), announced.max(cost)); account.report(cost) }
                Step::Wait(span) => { now = now + span; None }
            };
            if let Some(adjustment) = adjustment {
                charged += adjustment.charge as f64;
                prop_assert!(adjustment.charge >= 0, "what has arisen is never taken back before the end");
                if let Some(wanted) = adjustment.seats {
                    prop_assert!(has_rule && wanted != seats && wanted <= 20);
                    seat_time += f64::from(seats) * (now - since) as f64;
                    (seats, since) = (wanted, now);
                    account.set_seats(started, now, wanted);
                }
            }
            if let Some(rule) = rule {
                // Steps are not finer than an eighth.
                prop_assert!(seats >= rule.seats(arisen / 1.126), "{seats} seats at {arisen}");
            }
        }
        seat_time += f64::from(seats) * (now - since) as f64;
        let settlement = account.settle(started, now);
        let cost = reported.unwrap_or(arisen);
        prop_assert!((settlement.cost - cost).abs() < 1e-6);
        prop_assert!((settlement.seat_time - seat_time).abs() < 1e-3);
        let paid = seat_time + charged + settlement.charge as f64;
        match price {
            Some(price) => prop_assert!((paid - cost * price).abs() < 2.0, "{paid} for {}", cost * price),
            None => prop_assert_eq!((charged, settlement.charge), (0.0, 0)),
        }
    }
}

#[test]
fn co_4_what_was_expected_is_not_charged_before_the_end() {
    let mut account = CostAccount::open(100.0, 1, None, Some(10.0));
    assert_eq!(account.arise(60.0), None);
    assert_eq!(account.arise(40.0), None);
    assert_eq!(account.arise(5.0).unwrap().charge, 50, "5 more than expected, at 10 each");
    assert_eq!(account.arise(1.0), None, "the next step is an eighth away");
}

#[test]
fn co_4_few_steps_however_fine_they_are() {
    let mut account = CostAccount::open(1.0, 1, Some(SeatRule::new(1.0, 1_000_000)), Some(1.0));
    let mut adjustments = 0;
    for _ in 0..1_000_000 {
        if let Some(adjustment) = account.arise(1.0) {
            adjustments += 1;
            if let Some(seats) = adjustment.seats {
                account.set_seats(at(0), at(1), seats);
            }
        }
    }
    assert!(adjustments < 130, "{adjustments}");
    assert!(account.seats() > 880_000, "{}", account.seats());
}

#[test]
fn co_4_a_request_that_turns_out_to_be_cheap_gives_seats_back() {
    let rule = SeatRule::new(100.0, 8);
    let mut account = CostAccount::open(750.0, rule.seats(750.0), Some(rule), None);
    assert_eq!(account.seats(), 8);
    assert_eq!(account.announce(120.0).unwrap().seats, Some(2));
}

#[test]
fn what_waited_goes_by_what_is_known_when_it_starts() {
    let rule = SeatRule::new(10.0, 100);
    let mut account = CostAccount::open(10.0, 1, Some(rule), None);
    assert_eq!(account.expect_anew(412.0), Some(42));
    assert_eq!((account.expected(), account.seats()), (412.0, 42));
    assert_eq!(account.expect_anew(415.0), None);
}

#[test]
fn co_5_a_request_that_ends_dearer_than_expected_is_charged_all_of_it() {
    let (begin, end) = (Instant::from_nanos(0), Instant::from_nanos(1_000_000_000));
    let mut account = CostAccount::open(0.1, 1, Some(SeatRule::new(0.1, 1)), Some(1e9));
    account.end_with(1.0);
    let settled = account.settle(begin, end);
    // It has held one seat for a second, which is what its cost is at that price.
    assert_eq!((settled.cost, settled.charge), (1.0, 0));
}

/// Requests that wait in line when the first ones end have arrived before anything was known.
#[test]
fn co_1_a_price_that_is_known_later_counts() {
    let (begin, end) = (at(0), at(1000));
    let mut account = CostAccount::open(100.0, 1, None, None);
    assert_eq!(account.arise(60.0), None);
    account.set_price(Some(10.0));
    account.set_price(None);
    assert_eq!(account.settle(begin, end).charge, 60 * 10 - 1000);
    // What was charged at another price before counts.
    let mut account = CostAccount::open(10.0, 1, None, Some(10.0));
    assert_eq!(account.arise(20.0).map(|adjustment| adjustment.charge), Some(100));
    account.set_price(Some(20.0));
    assert_eq!(account.settle(begin, end).charge, 20 * 20 - 1000 - 100);
}
