//! Requests that take no seat: they start at once, and nobody waits for them.

use evenkeel_engine::attribution::Attribution;
use evenkeel_engine::borrowing::{Ledger, Stake};
use evenkeel_engine::level::{LedgerAccount, Level, NewRequest};
use evenkeel_engine::queue_set::{
    Arrival, Finish, Mode, NoEffects, QueueSetConfig, QueuingDiscipline, Rejection, RequestId,
};
use evenkeel_engine::time::{Instant, SECOND};
use evenkeel_engine::{Flow, WorkEstimate};

fn at(seconds: i64) -> Instant {
    Instant::from_nanos(seconds * SECOND)
}

fn of(flow: &'static str, seats: u32) -> NewRequest<'static> {
    NewRequest::new(Flow::new("tenants", flow), WorkEstimate::seats(seats))
}

fn started(arrival: &Arrival<()>) -> RequestId {
    match arrival {
        Arrival::Started { id, .. } => *id,
        other => panic!("{other:?}"),
    }
}

fn modes() -> [Mode; 4] {
    let queue = Mode::queue(4, 2, 10).unwrap();
    [queue, queue.with_discipline(QueuingDiscipline::PerFlow), Mode::Reject, Mode::Exempt]
}

#[test]
fn they_start_in_front_of_all_that_wait_and_take_nothing() {
    for mode in modes() {
        let mut level: Level<()> = Level::new(QueueSetConfig { mode, concurrency_limit: 2 }, at(0));
        let wide = started(&level.arrive(at(0), of("batch", 2), (), &mut NoEffects));
        let waits = matches!(level.arrive(at(0), of("web", 1), (), &mut NoEffects), Arrival::Waiting { .. });
        assert_eq!(waits, matches!(mode, Mode::Queue(_)), "{mode:?}");
        let before = (level.queue_set().seats_in_use(), level.queue_set().waiting(), level.queue_set().executing());
        let polls: Vec<_> =
            (0..12).map(|_| started(&level.arrive(at(1), of("poll", 1).seatless(), (), &mut NoEffects))).collect();
        let set = level.queue_set();
        assert_eq!((set.seats_in_use(), set.waiting(), set.executing()), (before.0, before.1, before.2 + 12));
        assert_eq!((set.seatless(), set.request(polls[0]).unwrap().queue), (12, None), "{mode:?}");
        level.finish(at(2), wide, &mut NoEffects);
        assert_eq!(level.queue_set().waiting(), 0, "{mode:?}: the next one starts as if they were not there");
        for id in polls {
            assert!(matches!(level.finish(at(3), id, &mut NoEffects), Some(Finish::Released(()))));
        }
        assert_eq!(level.queue_set().seatless(), 0);
    }
}

#[test]
fn a_request_that_is_too_wide_does_not_wait_for_them() {
    let mode = Mode::queue(1, 1, 10).unwrap();
    let mut level: Level<()> = Level::new(QueueSetConfig { mode, concurrency_limit: 2 }, at(0));
    let poll = started(&level.arrive(at(0), of("poll", 0).seatless(), (), &mut NoEffects));
    started(&level.arrive(at(0), of("batch", 9), (), &mut NoEffects));
    // Nor do they forget what they are when the queues change.
    level.configure(
        at(1),
        QueueSetConfig { mode: mode.with_discipline(QueuingDiscipline::PerFlow), concurrency_limit: 2 },
        &mut NoEffects,
    );
    assert_eq!(level.queue_set().seatless(), 1);
    level.finish(at(2), poll, &mut NoEffects);
    assert_eq!((level.queue_set().seatless(), level.queue_set().executing()), (0, 1));
}

#[test]
fn a_level_that_lets_nobody_in_rejects_them_too() {
    let config = QueueSetConfig { mode: Mode::Closed, concurrency_limit: 0 };
    let mut level: Level<()> = Level::new(config, at(0));
    let arrival = level.arrive(at(0), of("poll", 0).seatless(), (), &mut NoEffects);
    assert!(matches!(arrival, Arrival::Rejected { reason: Rejection::ConcurrencyLimit, .. }), "{arrival:?}");
}

#[test]
fn a_ledger_hears_nothing_of_them() {
    let stake = Stake { floor: 1, nominal: 1, max: 1, weight: 1, is_exempt: false };
    let mut ledger = Ledger::new(1, [(0, stake)]);
    let config = QueueSetConfig { mode: Mode::queue(1, 1, 10).unwrap(), concurrency_limit: 1 };
    let mut level: Level<()> = Level::new(config, at(0));
    level.begin_grants(at(0), 1, &mut NoEffects, &mut LedgerAccount { ledger: &mut ledger, level: 0 });
    let account = &mut LedgerAccount { ledger: &mut ledger, level: 0 };
    for _ in 0..12 {
        started(&level.arrive_by_grant(at(0), of("poll", 0).seatless(), (), &mut NoEffects, account));
    }
    started(&level.arrive_by_grant(at(0), of("web", 1), (), &mut NoEffects, account));
    assert_eq!(level.queue_set().seats_in_use(), 1);
    started(&level.arrive_by_grant(at(0), of("poll", 0).seatless(), (), &mut NoEffects, account));
}

#[test]
fn nobody_is_said_to_wait_behind_them() {
    let config = QueueSetConfig { mode: Mode::queue(1, 1, 10).unwrap(), concurrency_limit: 1 };
    let mut level: Level<(), _> = Level::with_observer(config, Attribution::new(7), at(0));
    for _ in 0..50 {
        started(&level.arrive(at(0), of("poll", 0).seatless(), (), &mut NoEffects));
    }
    let batch = started(&level.arrive(at(0), of("batch", 1), (), &mut NoEffects));
    assert!(matches!(level.arrive(at(0), of("web", 1), (), &mut NoEffects), Arrival::Waiting { .. }));
    level.finish(at(5), batch, &mut NoEffects);
    let usage = level.observer_mut().usage(at(6), 20);
    let name = |flow| usage.name(flow).unwrap().distinguisher;
    let behind: Vec<_> = usage.delays.pairs.iter().map(|delay| (name(delay.delayed), delay.behind.map(name))).collect();
    assert_eq!(behind, [("web", Some("batch"))]);
    assert!(usage.seat_time.flows.iter().all(|(flow, _)| name(*flow) != "poll"));
}
