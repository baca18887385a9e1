//! What time alone brings about: lingering ends, wait limits, the division of the seats; and who observes it.

use crate::busy_engine;

use busy_engine::{BusyEngine, Came, LINGERING, objects, queuing, rejecting, schema};
use evenkeel_engine::borrowing::FaithfulDivision;
use evenkeel_engine::controller::{ADJUSTMENT_PERIOD, ServerConfig};
use evenkeel_engine::level::{Level, NewRequest, Observer};
use evenkeel_engine::queue_set::{
    Arrival, Effects, Ended, Mode, NoEffects, Phase, QueueSetConfig, Rejection, RequestId,
};
use evenkeel_engine::time::{Instant, MILLISECOND, SECOND};
use evenkeel_engine::{Engine, Flow, LevelId, Ticket, WorkEstimate};
use proptest::prelude::*;

const ONE_SEAT: WorkEstimate = WorkEstimate::ONE_SEAT;

fn at(seconds: i64) -> Instant {
    Instant::from_nanos(seconds * SECOND)
}

/// What a level said: who started, and whose time was over in which phase.
#[derive(Default)]
struct StartedAndTimedOut {
    started: Vec<u32>,
    timed_out: Vec<(u32, Phase)>,
}

impl Effects<u32> for StartedAndTimedOut {
    fn started(&mut self, _id: RequestId, number: &mut u32) {
        self.started.push(*number);
    }

    fn timed_out(&mut self, ended: Ended<u32>) {
        assert_eq!(ended.started.is_some(), ended.phase == Phase::Lingering);
        self.timed_out.push((ended.payload, ended.phase));
    }
}

fn level(concurrency_limit: i64) -> Level<u32> {
    let mode = Mode::queue(4, 2, 100_000).expect("sizes that can be dealt");
    Level::new(QueueSetConfig { mode, concurrency_limit }, at(0))
}

/// The id of a request that was not rejected.
fn id_of(arrival: &Arrival<u32>) -> RequestId {
    match arrival {
        Arrival::Started { id, .. } | Arrival::Waiting { id, .. } => *id,
        Arrival::Rejected { .. } => panic!("it was rejected"),
    }
}

#[test]
fn wait_limits_and_lingering_end_in_the_order_of_their_times() {
    let (mut level, mut told) = (level(1), StartedAndTimedOut::default());
    let first = id_of(&level.arrive(at(0), NewRequest::new(0, LINGERING), 0, &mut told));
    for (number, until) in [(1, 5), (2, 3), (3, 9), (4, 4)] {
        level.arrive(at(0), NewRequest::new(0, ONE_SEAT).wait_until(at(until)), number, &mut told);
    }
    assert_eq!(level.next_timeout(), Some(at(3)));
    level.handle_timeout(at(2), &mut told);
    assert_eq!(told.timed_out, [], "nothing is due");
    level.handle_timeout(at(3), &mut told);
    assert_eq!(told.timed_out, [(2, Phase::Waiting)]);
    // It lingers until 4: its seats go to request 1 before the time of request 4 is over at the same moment.
    assert!(level.finish(at(3), first, &mut told).is_some());
    assert_eq!(level.next_timeout(), Some(at(4)));
    level.handle_timeout(at(4), &mut told);
    assert_eq!(told.timed_out[1..], [(0, Phase::Lingering), (4, Phase::Waiting)]);
    assert_eq!(told.started, [0, 1]);
    assert_eq!(level.next_timeout(), Some(at(9)), "the timer of a request that has started is of no account");
    assert_eq!((level.queue_set().waiting(), level.queue_set().executing()), (1, 1));
    level.handle_timeout(at(100), &mut told);
    assert_eq!((level.next_timeout(), level.queue_set().waiting()), (None, 0));
}

#[test]
fn a_request_that_lingers_is_not_released_by_the_timer_of_its_wait() {
    let (mut level, mut told) = (level(1), StartedAndTimedOut::default());
    let first = id_of(&level.arrive(at(0), NewRequest::new(0, ONE_SEAT), 0, &mut told));
    let second = level.arrive(at(0), NewRequest::new(0, LINGERING).wait_until(at(10)), 1, &mut told);
    assert!(level.finish(at(1), first, &mut told).is_some());
    assert!(level.finish(at(10), id_of(&second), &mut told).is_some());
    level.handle_timeout(at(10), &mut told);
    assert_eq!((told.timed_out.len(), level.next_timeout()), (0, Some(at(11))));
}

proptest! {
    /// However requests come and go, each is told of once, and at the time that it was given.
    #[test]
    fn timers_do_what_a_plain_list_does(
        steps in prop::collection::vec((0_i64..4, 0_i64..30, any::<prop::sample::Index>()), 1..300),
    ) {
        let (mut level, mut told) = (level(1), StartedAndTimedOut::default());
        let mut now = 0;
        id_of(&level.arrive(at(0), NewRequest::new(0, ONE_SEAT), u32::MAX, &mut told));
        // Waiting requests: their numbers, ids and limits.
        let mut waiting: Vec<(u32, RequestId, i64)> = Vec::new();
        for (number, (pass, patience, pick)) in (0..).zip(steps) {
            now += pass;
            let due: Vec<_> = waiting.iter().filter(|(.., until)| *until <= now).map(|(number, ..)| *number).collect();
            waiting.retain(|(.., until)| *until > now);
            level.handle_timeout(at(now), &mut told);
            let mut found: Vec<_> = told.timed_out.drain(..).map(|(number, _)| number).collect();
            found.sort_unstable();
            prop_assert_eq!(found, due);
            if patience % 3 == 0 && !waiting.is_empty() {
                let (number, id, _) = waiting.remove(pick.index(waiting.len()));
                prop_assert_eq!(level.cancel(at(now), id, &mut NoEffects), Some(number));
            } else {
                let until = now + 1 + patience;
                let new = NewRequest::new(u64::from(number), ONE_SEAT).wait_until(at(until));
                let arrival = level.arrive(at(now), new, number, &mut told);
                waiting.push((number, id_of(&arrival), until));
            }
            let next = waiting.iter().map(|(.., until)| *until).min();
            prop_assert_eq!(level.next_timeout(), next.map(at));
        }
    }
}

#[test]
fn an_engine_does_everything_at_its_time() {
    let mut server = BusyEngine::new(1);
    server.apply(objects(&[queuing("batch")], &[schema("all", "batch", 100)]));
    let batch = server.id("batch");
    assert_eq!(server.arrive(batch, 1, LINGERING), Came::Started);
    assert_eq!(server.engine.next_timeout(), Some(server.now + ADJUSTMENT_PERIOD));
    let wait_until = server.now + 15 * SECOND;
    let new = NewRequest::new(2, ONE_SEAT).wait_until(wait_until);
    let arrival = server.engine.arrive(server.now, batch, new, 2, &mut |_: Ticket, _: &mut u32| {});
    assert!(matches!(arrival, Some(Arrival::Waiting { .. })));

    let mut started = |_: Ticket, _: &mut u32| panic!("there is no seat");
    let due = Instant::from_nanos(ADJUSTMENT_PERIOD);
    assert_eq!(server.engine.next_timeout(), Some(due));
    server.engine.handle_timeout(due, &mut started);
    assert_eq!(server.engine.next_timeout(), Some(wait_until));
    server.engine.handle_timeout(wait_until, &mut started);
    assert_eq!(server.busy("batch"), (1, 0), "request 2 has waited as long as it may");

    server.now = wait_until;
    assert!(server.finish(1).is_some());
    assert_eq!(server.engine.next_timeout(), Some(wait_until + SECOND));
    server.engine.handle_timeout(wait_until + SECOND, &mut started);
    assert_eq!(server.view("batch").queue_set.seats_in_use(), 0);
}

#[test]
fn cc_15_a_level_goes_at_a_timeout() {
    let mut server = BusyEngine::new(1);
    server.apply(objects(&[queuing("batch")], &[schema("all", "batch", 100)]));
    let batch = server.id("batch");
    assert_eq!(server.arrive(batch, 1, ONE_SEAT), Came::Started);
    server.apply(objects(&[], &[]));
    assert_eq!(server.names(), ["batch", "catch-all", "exempt"]);
    assert!(server.finish(1).is_some());
    server.engine.handle_timeout(server.now, &mut |_: Ticket, _: &mut u32| {});
    assert_eq!(server.names(), ["catch-all", "exempt"]);
}

#[test]
fn the_period_is_a_setting() {
    let config = |period| ServerConfig::new(100).period(period);
    let mut often: Engine<u32> = Engine::with_config(config(Some(MILLISECOND)), at(0));
    assert_eq!(often.next_timeout(), Some(Instant::from_nanos(MILLISECOND)));
    often.handle_timeout(at(1), &mut |_: Ticket, _: &mut u32| {});
    assert_eq!(often.next_timeout(), Some(at(1) + MILLISECOND));
    let mut never: Engine<u32> = Engine::with_config(config(None), at(0));
    assert_eq!(never.next_timeout(), None);
}

#[test]
fn the_server_limit_changes_at_once() {
    let mut server = BusyEngine::new(2);
    server.apply(objects(&[queuing("batch")], &[schema("all", "batch", 100)]));
    let (batch, limit) = (server.id("batch"), |server: &BusyEngine| server.control("batch").current_limit());
    let before = limit(&server);
    let started = (1..=4).filter(|&number| server.arrive(batch, number, ONE_SEAT) == Came::Started).count();
    assert_eq!(i64::try_from(started), Ok(before));
    let mut more = Vec::new();
    server.engine.set_server_limit(40, server.now, &mut |_: Ticket, number: &mut u32| more.push(*number));
    assert!(limit(&server) > 4 && more.len() == 4 - started, "{more:?}");
    server.engine.set_server_limit(1, server.now, &mut |_: Ticket, _: &mut u32| {});
    assert_eq!((limit(&server), server.busy("batch")), (1, (4, 0)), "what runs goes on");
    assert_eq!(server.arrive(batch, 5, ONE_SEAT), Came::Waiting);
}

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Diary(Vec<String>);

impl Observer for Diary {
    fn arrived(&mut self, _now: Instant, id: RequestId, request: &NewRequest<'_>) {
        self.0.push(format!("{} arrives, {} of {}", id.slot(), request.flow.distinguisher(), request.flow.schema()));
    }

    fn started(&mut self, now: Instant, id: RequestId) {
        self.0.push(format!("{} starts at {now}", id.slot()));
    }

    fn finished(&mut self, _now: Instant, id: RequestId) {
        self.0.push(format!("{} finishes", id.slot()));
    }

    fn released(&mut self, now: Instant, id: RequestId) {
        self.0.push(format!("{} is released at {now}", id.slot()));
    }

    fn rejected(&mut self, _now: Instant, id: RequestId, reason: Rejection) {
        self.0.push(format!("{} is rejected: {}", id.slot(), reason.as_str()));
    }
}

#[test]
fn an_observer_sees_each_request_from_its_arrival_to_its_end() {
    let mode = Mode::queue(1, 1, 2).expect("sizes that can be dealt");
    let config = QueueSetConfig { mode, concurrency_limit: 1 };
    let mut level: Level<u32, Diary> = Level::with_observer(config, Diary::default(), at(0));
    let mut told = NoEffects;
    let new = |tenant, work| NewRequest::new(Flow::new("tenants", tenant), work);
    let first = id_of(&level.arrive(at(0), new("a", LINGERING), 1, &mut told));
    let second = id_of(&level.arrive(at(0), new("b", ONE_SEAT), 2, &mut told));
    level.arrive(at(0), new("c", ONE_SEAT).wait_until(at(2)), 3, &mut told);
    assert!(matches!(level.arrive(at(0), new("d", ONE_SEAT), 4, &mut told), Arrival::Rejected { .. }));
    level.finish(at(1), first, &mut told);
    assert!(level.finish(at(1), first, &mut told).is_none(), "of what changes nothing, nothing is told");
    level.handle_timeout(at(2), &mut told);
    level.finish(at(3), second, &mut told);
    let expected = [
        "0 arrives, a of tenants",
        "0 starts at 0ns",
        "1 arrives, b of tenants",
        "2 arrives, c of tenants",
        "3 arrives, d of tenants",
        "3 is rejected: queue-full",
        "0 finishes",
        "0 is released at 2000000000ns",
        "1 starts at 2000000000ns",
        "2 is rejected: time-out",
        "1 finishes",
        "1 is released at 3000000000ns",
    ];
    assert_eq!(level.observer().0, expected);
}

#[test]
fn an_engine_has_an_observer_for_each_level() {
    let config: ServerConfig<FaithfulDivision> = ServerConfig::new(10);
    let mut names = Vec::new();
    let observe = |_: LevelId, name: &str| {
        names.push(name.to_owned());
        Diary::default()
    };
    let mut engine = Engine::observed(config, observe, at(0));
    let mut started = |_: Ticket, _: &mut u32| {};
    engine.apply(objects(&[rejecting("batch", 95)], &[schema("all", "batch", 100)]), at(0), &mut started);
    let batch = engine.controller().level("batch").expect("it was given").id();
    let new = NewRequest::new(Flow::new("all", ""), ONE_SEAT);
    assert!(engine.arrive(at(0), batch, new, 1, &mut started).is_some());
    let seen = &engine.observer(batch).expect("the level is there").0;
    assert_eq!(seen[..], ["0 arrives,  of all", "0 starts at 0ns"]);
    drop(engine);
    assert_eq!(names, ["catch-all", "exempt", "batch"]);
}
