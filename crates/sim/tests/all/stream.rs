//! Requests from a stream.

use std::sync::Arc;

use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{RequestInfo, User, WorkEstimate};
use evenkeel_sim::{Caller, End, Outcome, ServerSettings, Simulator, StreamRequest, run_stream};

fn caller(name: &str) -> Arc<Caller> {
    let user = User::new(name, ["system:authenticated"]);
    let request = RequestInfo { path: "/orders".into(), verb: "get".into(), ..RequestInfo::default() };
    Arc::new(Caller { user, request, query: "".into() })
}

fn request(at: Nanos, caller: &Arc<Caller>, token: u32) -> StreamRequest<u32, Arc<Caller>> {
    let (service, work) = (10 * MILLISECOND, Some(WorkEstimate::ONE_SEAT));
    StreamRequest { at, caller: Arc::clone(caller), service, work, patience: Some(15 * SECOND), cost: None, token }
}

#[test]
fn requests_wait_for_seats_and_all_of_them_end() {
    let alice = caller("alice");
    let mut simulator = Simulator::new(ServerSettings::new(1), Objects::default());
    let mut outcomes = Vec::new();
    let requests = (0..3).map(|token| request(i64::from(token) * MILLISECOND, &alice, token));
    run_stream(&mut simulator, requests, &mut |outcome: Outcome<u32>| outcomes.push(outcome));
    // catch-all has one seat and no queues.
    let ends: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.token, matches!(outcome.end, End::Completed { .. }))).collect();
    assert_eq!(ends, [(1, false), (2, false), (0, true)]);
    let level = &simulator.levels()[outcomes[0].level.index()];
    assert_eq!((level.name(), level.totals().seats_max), ("catch-all", 1));
}

#[test]
fn waits_are_those_of_the_queue() {
    let alice = caller("alice");
    let mut settings = ServerSettings::new(1);
    settings.preset = Preset::Plain;
    let mut simulator = Simulator::new(settings, Preset::Plain.into());
    let mut waits = Vec::new();
    let requests = (0..40).map(|token| request(0, &alice, token));
    run_stream(&mut simulator, requests, &mut |outcome: Outcome<u32>| waits.push(outcome.wait()));
    assert_eq!(waits.last(), Some(&(39 * 10 * MILLISECOND)));
    assert_eq!(simulator.events(), 40 * 3);
}
