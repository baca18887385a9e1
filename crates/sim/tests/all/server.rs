//! The service behind the engine, and what changes while a simulation runs.

use evenkeel_api::Preset;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::controller::Objects;
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use evenkeel_sim::{Class, End, NewRequest, Outcome, Outcomes, ServerSettings, Simulator};

fn settings(seats: i64, slots: Option<u32>, degradation: f64) -> ServerSettings {
    let mut settings = ServerSettings::new(seats);
    settings.preset = Preset::Plain;
    (settings.service.slots, settings.service.degradation) = (slots, degradation);
    settings
}

fn simulator(settings: ServerSettings) -> (Simulator<u32>, Class) {
    let simulator = Simulator::new(settings, Preset::Plain.into());
    let class = classify(&simulator);
    (simulator, class)
}

fn classify(simulator: &Simulator<u32>) -> Class {
    let user = User::new("alice", ["system:authenticated"]);
    let request = RequestInfo { path: "/orders".into(), verb: "get".into(), ..RequestInfo::default() };
    simulator.classify(Attributes { user: &user, request: &request })
}

/// Requests of 10 ms that arrive at time zero, and when they end, in milliseconds.
fn ends(settings: ServerSettings, count: u32, change: impl FnOnce(&mut Simulator<u32>)) -> Vec<f64> {
    let (mut simulator, class) = simulator(settings);
    let ends = std::cell::RefCell::new(Vec::new());
    let mut note = |outcome: Outcome<u32>| {
        assert!(matches!(outcome.end, End::Completed { .. }), "{outcome:?}");
        ends.borrow_mut().push(outcome.ended as f64 / 1e6);
    };
    for token in 0..count {
        simulator.arrive(0, class, NewRequest::new(token, 10 * MILLISECOND, WorkEstimate::ONE_SEAT), &mut note);
    }
    change(&mut simulator);
    simulator.drain(&mut note);
    ends.into_inner()
}

#[test]
fn requests_beyond_the_slots_wait_inside_the_service() {
    assert_eq!(ends(settings(10, None, 0.0), 4, |_| {}), [10.0; 4]);
    assert_eq!(ends(settings(10, Some(2), 0.0), 4, |_| {}), [10.0, 10.0, 20.0, 20.0]);
    // With two seats, the same requests wait in front of it.
    assert_eq!(ends(settings(2, None, 0.0), 4, |_| {}), [10.0, 10.0, 20.0, 20.0]);
}

#[test]
fn a_service_with_a_backlog_is_slower() {
    // Two beyond two slots: half as fast with degradation 1, until the backlog is gone.
    assert_eq!(ends(settings(10, Some(2), 1.0), 4, |_| {}), [20.0, 20.0, 30.0, 30.0]);
}

#[test]
fn slots_change_while_requests_run() {
    let fewer =
        |simulator: &mut Simulator<u32>| simulator.set_slots(5 * MILLISECOND, Some(1), &mut |_: Outcome<u32>| {});
    assert_eq!(ends(settings(10, Some(2), 0.0), 4, fewer), [10.0, 10.0, 20.0, 30.0]);
    let more = |simulator: &mut Simulator<u32>| simulator.set_slots(5 * MILLISECOND, None, &mut |_: Outcome<u32>| {});
    assert_eq!(ends(settings(10, Some(2), 0.0), 4, more), [10.0, 10.0, 15.0, 15.0]);
}

#[test]
fn seats_change_while_requests_wait() {
    let more = |simulator: &mut Simulator<u32>| simulator.set_seats(5 * MILLISECOND, 4, &mut |_: Outcome<u32>| {});
    // The fourth seat is kept for other flows until a request of this one has ended (PF-10).
    assert_eq!(ends(settings(1, None, 0.0), 4, more), [10.0, 15.0, 15.0, 20.0]);
}

fn level(name: &str, seats: i32) -> Objects {
    let level = PriorityLevelConfiguration::builder(name).limited(|l| l.shares(seats).reject()).build();
    let schema = FlowSchema::builder(name).priority_level(name);
    let schema = schema.rule(|r| r.user("*").non_resource_urls(["*"]).verbs(["*"])).build();
    [level.into(), schema.into()].into_iter().collect::<Objects>().with_mandatory_levels()
}

#[test]
fn a_level_without_an_object_goes_when_its_last_request_has_ended() {
    let mut simulator = Simulator::new(ServerSettings::new(10), level("old", 10));
    let old = classify(&simulator);
    let mut ended: Vec<(Nanos, u32)> = Vec::new();
    let mut note = |outcome: Outcome<u32>| ended.push((outcome.ended, outcome.token));
    simulator.arrive(0, old, NewRequest::new(1, 5 * SECOND, WorkEstimate::ONE_SEAT), &mut note);
    simulator.apply(SECOND, level("new", 10), &mut note);
    assert!(!simulator.is_current(old));
    let new = classify(&simulator);
    assert_eq!(simulator.levels()[new.level.index()].name(), "new");
    simulator.arrive(2 * SECOND, new, NewRequest::new(2, SECOND, WorkEstimate::ONE_SEAT), &mut note);
    // The seats are divided at ten seconds, and by then the old level is idle.
    simulator.run_until(11 * SECOND, &mut note);
    let newest = classify(&simulator);
    simulator.arrive(12 * SECOND, newest, NewRequest::new(3, SECOND, WorkEstimate::ONE_SEAT), &mut note);
    simulator.drain(&mut note);
    assert_eq!(ended, [(3 * SECOND, 2), (5 * SECOND, 1), (13 * SECOND, 3)]);
    assert_eq!(newest.level, new.level);
}

#[test]
fn a_mutation_lingers_and_holds_its_seats() {
    let mut simulator = Simulator::new(ServerSettings::new(1), level("one", 10));
    let class = classify(&simulator);
    let mut ends = Vec::new();
    let mut note = |outcome: Outcome<u32>| ends.push((outcome.ended / MILLISECOND, outcome.end));
    let work = WorkEstimate { initial_seats: 1, final_seats: 1, additional_latency: 5 * MILLISECOND };
    simulator.arrive(0, class, NewRequest::new(1, 10 * MILLISECOND, work), &mut note);
    // While it lingers there is no seat for another one.
    simulator.arrive(12 * MILLISECOND, class, NewRequest::new(2, MILLISECOND, work), &mut note);
    simulator.arrive(15 * MILLISECOND, class, NewRequest::new(3, MILLISECOND, work), &mut note);
    simulator.drain(&mut note);
    let is_completed: Vec<_> = ends.iter().map(|(at, end)| (*at, matches!(end, End::Completed { .. }))).collect();
    assert_eq!(is_completed, [(10, true), (12, false), (16, true)]);
}

/// The client of a waiting request leaves. The next one takes its turn, and one that runs cannot be cancelled.
#[test]
fn a_waiting_request_can_be_cancelled() {
    let (mut simulator, class) = simulator(settings(1, None, 0.0));
    let mut ends = Vec::new();
    let mut note = |outcome: Outcome<u32>| ends.push((outcome.token, outcome.ended / MILLISECOND));
    let mut arrive =
        |token| simulator.arrive(0, class, NewRequest::new(token, 10 * MILLISECOND, WorkEstimate::ONE_SEAT), &mut note);
    assert!(arrive(1).is_none(), "it starts at once");
    let [second, third] = [2, 3].map(|token| arrive(token).unwrap());
    assert_eq!(simulator.cancel(5 * MILLISECOND, second, &mut note), Some(2));
    assert_eq!(simulator.cancel(6 * MILLISECOND, second, &mut note), None, "it is gone");
    assert_eq!(simulator.cancel(15 * MILLISECOND, third, &mut note), None, "it runs");
    simulator.drain(&mut note);
    assert_eq!(ends, [(1, 10), (3, 20)]);
}

/// How long a request takes may be known when it starts only.
#[test]
fn the_service_time_may_be_told_at_the_start() {
    struct Draws(Vec<(u32, Nanos)>);
    impl Outcomes<u32> for Draws {
        fn service(&mut self, token: &mut u32, service: Nanos) -> Nanos {
            service + Nanos::from(*token) * MILLISECOND
        }

        fn ended(&mut self, outcome: Outcome<u32>) {
            self.0.push((outcome.token, outcome.ended / MILLISECOND));
        }
    }
    let (mut simulator, class) = simulator(settings(1, None, 0.0));
    let mut draws = Draws(Vec::new());
    for token in [1, 2] {
        simulator.arrive(0, class, NewRequest::new(token, 10 * MILLISECOND, WorkEstimate::ONE_SEAT), &mut draws);
    }
    simulator.drain(&mut draws);
    assert_eq!(draws.0, [(1, 11), (2, 23)]);
}
