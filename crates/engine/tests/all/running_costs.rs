//! A request runs, and turns out to cost more or less than it was taken to (CO-4). The models of both disciplines have the
//! arithmetic; here is what a level and a server make of it.

use evenkeel_engine::attribution::Attribution;
use evenkeel_engine::borrowing::{Granted, Ledger, Stake};
use evenkeel_engine::level::{LedgerAccount, Level, NewRequest};
use evenkeel_engine::queue_set::{Arrival, Mode, NoEffects, QueueSetConfig, QueuingDiscipline, RequestId};
use evenkeel_engine::time::{Instant, SECOND};
use evenkeel_engine::{Flow, WorkEstimate};

fn at(seconds: i64) -> Instant {
    Instant::from_nanos(seconds * SECOND)
}

fn of(flow: &'static str) -> NewRequest<'static> {
    NewRequest::new(Flow::new("tenants", flow), WorkEstimate::ONE_SEAT)
}

fn per_flow(concurrency_limit: i64) -> QueueSetConfig {
    let mode = Mode::queue(4, 2, 10).unwrap().with_discipline(QueuingDiscipline::PerFlow);
    QueueSetConfig { mode, concurrency_limit }
}

fn id(arrival: &Arrival<&'static str>) -> RequestId {
    match arrival {
        Arrival::Started { id, .. } | Arrival::Waiting { id, .. } => *id,
        rejected @ Arrival::Rejected { .. } => panic!("{rejected:?}"),
    }
}

#[test]
fn co_4_more_seats_are_taken_at_once_and_fewer_serve_others_at_once() {
    let mut level = Level::new(per_flow(3), at(0));
    let report = id(&level.arrive(at(0), of("reports"), "report", &mut NoEffects));
    assert_eq!(level.set_seats(at(1), report, 5, &mut NoEffects), Some(1));
    assert_eq!(level.queue_set().seats_in_use(), 5, "above the limit: nothing is cut");
    level.arrive(at(1), of("web"), "page", &mut NoEffects);
    assert_eq!(level.queue_set().waiting(), 1, "and nothing starts");
    let mut started = Vec::new();
    let held = level.set_seats(at(2), report, 2, &mut |_: RequestId, name: &mut &'static str| started.push(*name));
    assert_eq!((held, started), (Some(5), vec!["page"]));
    assert_eq!(level.queue_set().seats_in_use(), 3);
    level.finish(at(3), report, &mut NoEffects);
    assert_eq!(level.queue_set().seats_in_use(), 1, "it gives back what it had last");
}

#[test]
fn co_4_what_has_not_started_or_is_gone_or_takes_no_seat_has_none_to_change() {
    let mut level = Level::new(per_flow(1), at(0));
    let runs = id(&level.arrive(at(0), of("a"), "runs", &mut NoEffects));
    let waits = id(&level.arrive(at(0), of("b"), "waits", &mut NoEffects));
    let poll = id(&level.arrive(at(0), of("c").seatless(), "poll", &mut NoEffects));
    for none in [waits, poll] {
        assert_eq!(level.set_seats(at(1), none, 2, &mut NoEffects), None);
    }
    assert!(!level.charge(at(1), waits, SECOND, &mut NoEffects));
    level.finish(at(1), runs, &mut NoEffects);
    assert_eq!(level.set_seats(at(2), runs, 2, &mut NoEffects), None);
    assert!(!level.charge(at(2), runs, SECOND, &mut NoEffects));
    assert_eq!(level.set_seats(at(2), waits, 0, &mut NoEffects), Some(1));
    assert_eq!(level.queue_set().seats_in_use(), 1, "one seat is the least");
}

#[test]
fn co_4_who_was_charged_more_has_the_later_turn() {
    for mode in [Mode::queue(64, 1, 10).unwrap(), per_flow(2).mode] {
        let mut level = Level::new(QueueSetConfig { mode, concurrency_limit: 2 }, at(0));
        let dear = id(&level.arrive(at(0), of("dear"), "dear", &mut NoEffects));
        let cheap = id(&level.arrive(at(0), of("cheap"), "cheap", &mut NoEffects));
        level.arrive(at(0), of("dear"), "dear again", &mut NoEffects);
        level.arrive(at(0), of("cheap"), "cheap again", &mut NoEffects);
        assert!(level.charge(at(1), dear, 100 * SECOND, &mut NoEffects));
        let mut started = Vec::new();
        let mut note = |_: RequestId, name: &mut &'static str| started.push(*name);
        level.finish(at(1), dear, &mut note);
        level.finish(at(1), cheap, &mut note);
        assert_eq!(started, ["cheap again", "dear again"], "{mode:?}");
    }
}

#[test]
fn co_4_seats_that_a_request_gives_back_go_to_another_level_at_once() {
    let stake = Stake { floor: 0, nominal: 2, max: 4, weight: 1, is_exempt: false };
    let mut ledger = Ledger::default();
    ledger.configure(4, [(0, stake), (1, stake)]);
    let mut levels = [Level::new(per_flow(2), at(0)), Level::new(per_flow(2), at(0))];
    for (number, level) in levels.iter_mut().enumerate() {
        let account = &mut LedgerAccount { ledger: &mut ledger, level: number };
        level.begin_grants(at(0), 4, &mut NoEffects, account);
    }
    let [first, second] = &mut levels;
    let account = &mut LedgerAccount { ledger: &mut ledger, level: 0 };
    let report = id(&first.arrive_by_grant(at(0), of("reports"), "report", &mut NoEffects, account));
    first.by_grant(at(1), Granted::default(), account, |level| level.set_seats(at(1), report, 4, &mut NoEffects));
    let account = &mut LedgerAccount { ledger: &mut ledger, level: 1 };
    assert!(matches!(
        second.arrive_by_grant(at(1), of("web"), "page", &mut NoEffects, account),
        Arrival::Waiting { .. }
    ));
    let account = &mut LedgerAccount { ledger: &mut ledger, level: 0 };
    first.by_grant(at(2), Granted::default(), account, |level| level.set_seats(at(2), report, 3, &mut NoEffects));
    let (level, granted) = ledger.grant_next().expect("a seat is free and somebody waits");
    assert_eq!((level, granted.seats), (1, 1));
}

#[test]
fn co_4_attribution_counts_the_seats_that_a_request_had() {
    let mut level = Level::with_observer(per_flow(10), Attribution::new(7), at(0));
    let report = id(&level.arrive(at(0), of("reports"), "report", &mut NoEffects));
    level.set_seats(at(2), report, 5, &mut NoEffects);
    level.finish(at(3), report, &mut NoEffects);
    let usage = level.observer_mut().usage(at(3), 10);
    assert_eq!(usage.seat_time.total, u64::try_from((2 + 5) * SECOND).unwrap());
}
