//! Dumps of modes in which more than arrivals and ends counts: their own objects decide the same again (FR-4).

use std::time::Duration;

use evenkeel::division::Borrowing;
use evenkeel::events::CostKind;
use evenkeel::flight::{Flight, FlightEnd, FlightFact, RateOutcome};
use evenkeel::request::Rejection;
use evenkeel_replay::{Incident, decide_again, workload_of};

use crate::flight::{PER_FLOW, SHARDED};
use crate::stage::{Stage, recorded_on, recorded_with};

/// Each user has a rate, in one level of which those over it wait, and in another are rejected.
const RATES: &str = "
levels:
  orders: {share: 3, queue: 20, wait: 300ms, lend: 50%}
  rest: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /orders/*, level: orders, rate: 15/s;burst=3}
- {level: rest, rate: 10/s;burst=5;excess=reject}
";
/// Rates in tokens, of which nobody knows beforehand how many there will be.
const TOKEN_RATES: &str = "
levels:
  orders: {share: 3, queue: 20, wait: 300ms, lend: 50%}
  rest: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /orders/*, level: orders, cost: tokens, rate: 1500/s;unit=tokens;burst=400}
- {level: rest, cost: tokens, rate: 1000/s;unit=tokens}
";
/// Seats and turns follow from what requests cost.
const LEARNT: &str = "
levels:
  orders: {share: 3, queue: 20, wait: 300ms, lend: 50%}
  rest: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /orders/*, level: orders, cost: bytes, seats: learnt, costPerSeat: 25, seatsMax: 4}
- {level: rest, cost: tokens}
";
/// Requests of one level end when the other one needs its seats.
const REVOCABLE: &str = "
levels:
  orders: {share: 1, queue: 20, wait: 300ms, lend: 100%}
  rest: {share: 1, queue: 30, lend: 100%, revocable: true}
match:
- {path: /orders/*, level: orders}
- {level: rest}
";

/// Its own objects decide the same about all requests of the dump, as it comes from a file.
fn assert_same(flight: &Flight, what: &str) {
    assert!(flight.header.is_complete && flight.records.len() == 2000, "{what}: {}", flight.records.len());
    let flight = Flight::from_bytes(&flight.to_bytes()).unwrap();
    let agreement = decide_again(&flight).unwrap();
    let different = agreement.first_difference.map(|number| (number, flight.records[number]));
    let said = (agreement.requests, agreement.same, agreement.undecided, different);
    assert_eq!(said, (2000, 2000, 0, None), "{what}");
}

fn rejected(flight: &Flight, reason: Rejection) -> usize {
    flight.records.iter().filter(|record| record.end == FlightEnd::Rejected(reason)).count()
}

fn borrowing(seed: u64) -> Borrowing {
    if seed.is_multiple_of(2) { Borrowing::Immediate } else { Borrowing::Periodic }
}

#[test]
fn fr_4_rates_decide_the_same_again() {
    for seed in 0..6 {
        let is_of_tokens = seed % 3 == 2;
        let mut stage = Stage::new(if is_of_tokens { TOKEN_RATES } else { RATES }, 9, borrowing(seed));
        stage.has_costs = seed > 0;
        let flight = recorded_on(&mut stage, 9, seed);
        let outcomes = |outcome| {
            let of_rates = flight.notes.iter().filter(|note| match note.fact {
                FlightFact::Rate(rate) => rate.outcome == outcome,
                _ => false,
            });
            of_rates.count()
        };
        let [passed, waited, left] = [RateOutcome::AtOnce, RateOutcome::Waited, RateOutcome::Left].map(outcomes);
        let over = rejected(&flight, Rejection::RateLimit);
        assert_eq!(passed + waited + left, 2000, "every request asks for its rate");
        assert!(passed > over + 100 && waited > 20 && over > 20, "{passed} {waited} {left} {over}");
        assert!(left > 0 || seed == 0, "somebody leaves while waiting for a rate");
        assert_same(&flight, &format!("seed {seed}"));
    }
}

#[test]
fn fr_4_learnt_seats_and_charges_decide_the_same_again() {
    for seed in 0..4 {
        let mut stage = Stage::new(LEARNT, 9, borrowing(seed));
        stage.has_costs = true;
        let flight = recorded_on(&mut stage, 9, seed);
        let count = |is: fn(FlightFact) -> bool| flight.notes.iter().filter(|note| is(note.fact)).count();
        let resized = count(|fact| matches!(fact, FlightFact::Seats { .. }));
        let charged = count(|fact| matches!(fact, FlightFact::Charge { .. }));
        assert!(resized > 100 && charged > 100, "{resized} {charged}");
        assert!(flight.records.iter().any(|record| record.work.max_seats() == 4));
        assert_same(&flight, &format!("seed {seed}"));
    }
}

#[test]
fn fr_4_requests_that_are_told_to_end_decide_the_same_again() {
    for seed in 0..3 {
        let mut stage =
            Stage::with(REVOCABLE, 9, Borrowing::Immediate, |builder| builder.revoke_after(Duration::from_millis(10)));
        stage.is_revocable = true;
        let flight = recorded_on(&mut stage, 9, seed);
        assert!(stage.revoked > 10, "{}", stage.revoked);
        assert_same(&flight, &format!("seed {seed}"));
    }
}

#[test]
fn fr_4_long_running_requests_decide_the_same_again() {
    for seed in 0..4 {
        let max = "annotations: {evenkeel.dev/max-long-running: '12'}";
        let objects =
            SHARDED.replace("{name: shared}\nspec:\n  type", &format!("{{name: shared, {max}}}\nspec:\n  type"));
        assert!(objects.contains(max));
        let mut stage = Stage::new(&objects, 9, borrowing(seed));
        stage.has_long_running = true;
        let flight = recorded_on(&mut stage, 9, seed);
        assert!(rejected(&flight, Rejection::TooManyLongRunning) > 20);
        assert_same(&flight, &format!("seed {seed}"));
    }
}

#[test]
fn fr_4_changes_of_settings_within_a_dump_decide_the_same_again() {
    for seed in 0..4 {
        let objects = if seed < 2 { PER_FLOW } else { SHARDED };
        let mut stage = Stage::new(objects, 9, borrowing(seed));
        let flight = recorded_with(&mut stage, seed, |stage, number| match number % 800 {
            300 => stage.flow.set_borrowing(borrowing(seed + 1)),
            500 => stage.flow.set_newcomer_wait(Duration::from_millis((number / 100).into())),
            700 => stage.flow.set_borrowing(borrowing(seed)),
            _ => {}
        });
        let changes = &flight.header.changes;
        assert_eq!(changes.iter().filter(|change| change.borrowing.is_some()).count(), 5, "{changes:?}");
        assert_eq!(changes.iter().filter(|change| change.newcomer_wait.is_some()).count(), 2, "{changes:?}");
        assert_same(&flight, &format!("seed {seed}"));
    }
}

/// Without what the decision depends on, nothing is claimed.
#[test]
fn fr_4_dumps_without_notes_say_what_cannot_be_decided() {
    let mut flight = recorded_on(&mut Stage::new(RATES, 9, Borrowing::Immediate), 9, 0);
    flight.notes.clear();
    let agreement = decide_again(&flight).unwrap();
    assert_eq!(agreement.undecided, rejected(&flight, Rejection::RateLimit) as u64);
    assert_eq!(agreement.requests + agreement.undecided, 2000);
}

/// What requests cost is told by flow, and is the cost of the workload that a dump is.
#[test]
fn fr_1_costs_are_in_the_dump() {
    let mut stage = Stage::new(LEARNT, 9, Borrowing::Immediate);
    stage.has_costs = true;
    let flight = recorded_on(&mut stage, 9, 1);
    let (mut bytes, mut finished) = (0, 0);
    for note in &flight.notes {
        let FlightFact::Cost { thousandths, unit } = note.fact else { continue };
        assert!(matches!(flight.records[note.record as usize].end, FlightEnd::Finished { .. }));
        assert_eq!(thousandths % 1000, 0);
        finished += 1;
        if unit == CostKind::Bytes {
            bytes += thousandths / 1000;
        }
    }
    assert_eq!(
        finished,
        flight.records.iter().filter(|record| matches!(record.end, FlightEnd::Finished { .. })).count()
    );
    let incident = Incident::new(&flight).unwrap().unwrap();
    assert!(incident.usage.len() >= 7, "{:?}", incident.usage);
    let told = |kind| {
        let costs = incident.usage.iter().flat_map(|used| &used.costs).filter(|(unit, _)| *unit == kind);
        costs.map(|(_, cost)| cost).sum::<f64>()
    };
    assert!(told(CostKind::Bytes) > 0.0 && told(CostKind::Tokens) > 0.0);
    #[expect(clippy::cast_precision_loss, reason = "a few bytes")]
    let all = bytes as f64;
    assert!(told(CostKind::Bytes) <= all);
    let workload = workload_of("incident", &flight);
    let costly = workload.flows.iter().filter(|flow| flow.cost.is_some()).count();
    assert!(costly > 20, "{costly} of {} rows", workload.flows.len());
}

/// All of it at once.
#[test]
fn fr_4_modes_that_are_mixed_decide_the_same_again() {
    let objects = "
levels:
  orders: {share: 3, queue: 20, wait: 300ms, lend: 50%}
  rest: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /orders/*, level: orders, cost: bytes, seats: learnt, costPerSeat: 25, seatsMax: 4, rate: 15/s;burst=3}
- {level: rest, cost: tokens, rate: 1000/s;unit=tokens}
";
    for seed in 0..4 {
        let mut stage = Stage::new(objects, 9, borrowing(seed));
        (stage.has_costs, stage.has_long_running) = (true, true);
        let flight = recorded_with(&mut stage, seed, |stage, number| match number % 500 {
            120 => stage.flow.set_borrowing(borrowing(seed + u64::from(number / 500))),
            230 => stage.flow.set_newcomer_wait(Duration::from_millis(u64::from(number % 7))),
            335 => stage.flow.set_server_concurrency(7 + number / 500),
            _ => {}
        });
        assert_same(&flight, &format!("seed {seed}"));
    }
}
