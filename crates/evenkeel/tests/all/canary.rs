//! The canary: a part of the flows is decided about by a second configuration, for real (SH-5).

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::canary::{CanaryBounds, CanaryError, CanaryPhase, CanarySettings};
use evenkeel::clock::ManualClock;
use evenkeel::request::Arrived;
use evenkeel::{Attributes, FlowControl, Permit, RequestInfo, User, WorkEstimate};

const OLD: &str = "levels: {old: {share: 1, queue: 50}}\nmatch: [{level: old}]";
const NEW: &str = "levels: {new: {share: 1, queue: 50}}\nmatch: [{level: new}]";
/// Nothing waits.
const STRICT: &str = "levels: {strict: {share: 1, reject: true}}\nmatch: [{level: strict}]";

struct Stage {
    flow: FlowControl,
    clock: ManualClock,
}

// === impl Stage ===

impl Stage {
    fn new(seats: u32) -> Self {
        let clock = ManualClock::new();
        let flow = FlowControl::builder().server_concurrency(seats).exempt_paths(["/healthz"]).objects(OLD);
        Self { flow: flow.manual_clock(clock.clone()).build(), clock }
    }

    fn arrive(&self, user: usize, path: &str) -> Arrived {
        let user = User::new(format!("user-{user}"), [""; 0]);
        let request = RequestInfo::for_path("get", path);
        self.flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT)
    }

    /// The level of a request that starts at once.
    fn level(&self, user: usize, path: &str) -> String {
        now(&mut self.arrive(user, path)).unwrap().priority_level().to_owned()
    }

    /// The users whose flows are the canary's.
    fn of_canary(&self) -> Vec<usize> {
        (0..200).filter(|user| self.level(*user, "/orders") != "old").collect()
    }

    fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            self.flow.tick();
        }
    }

    fn seats(&self) -> i64 {
        self.flow.status().iter().map(|level| level.current_limit).sum()
    }
}

/// The permit of a request that starts, or is rejected, now.
fn now(arrived: &mut Arrived) -> Option<Permit> {
    match Pin::new(arrived).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(permit)) => Some(permit),
        Poll::Ready(Err(_)) | Poll::Pending => None,
    }
}

fn ten_percent() -> CanarySettings {
    CanarySettings { percent: 10, ..CanarySettings::default() }
}

#[test]
fn sh_5_a_canary_has_its_part_of_the_flows_and_of_the_seats() {
    let stage = Stage::new(40);
    assert!(stage.flow.canary_state().is_none() && stage.of_canary().is_empty());
    stage.flow.canary(NEW, CanarySettings { percent: 25, ..CanarySettings::default() }).unwrap();
    let flows = stage.of_canary();
    assert!((30..=70).contains(&flows.len()), "{} of 200 flows", flows.len());
    assert_eq!(stage.of_canary(), flows, "a flow is on one side");
    let seen = stage.flow.canary_state().unwrap();
    assert_eq!((seen.phase, seen.percent, seen.seats), (CanaryPhase::Running, 25, 10));
    assert_eq!((seen.requests, seen.rejected), (2 * flows.len() as u64, 0));
    assert_eq!(stage.seats(), 30, "both have the seats of the server together");
    // Exempt requests stay, whoever sends them.
    assert!((0..200).all(|user| stage.level(user, "/healthz") == "exempt"));
    stage.flow.end_canary();
    assert!(stage.of_canary().is_empty() && stage.flow.canary_state().is_none());
    stage.pass(1);
    assert_eq!(stage.seats(), 40);
}

#[test]
fn sh_5_a_canary_returns_by_itself_when_too_many_requests_are_rejected() {
    let stage = Stage::new(40);
    stage.flow.canary(STRICT, ten_percent()).unwrap();
    let flows = stage.of_canary();
    // Four seats, and nothing waits.
    let mut arrived: Vec<Arrived> =
        (0..30).map(|number| stage.arrive(flows[number % flows.len()], "/orders")).collect();
    let permits: Vec<Permit> = arrived.iter_mut().filter_map(now).collect();
    assert_eq!(permits.len(), 4);
    assert_eq!(stage.flow.canary_returns(), 0);
    stage.pass(1);
    let seen = stage.flow.canary_state().unwrap();
    assert_eq!((seen.phase, seen.rejected, stage.flow.canary_returns()), (CanaryPhase::Returned, 26, 1));
    assert!(seen.returned.unwrap().contains(" requests were rejected, which is more than 5.0 %"));
    assert!(stage.of_canary().is_empty(), "all flows are where they were before");
    // The seats follow when the last request has ended.
    assert_eq!(stage.seats(), 36);
    drop(permits);
    stage.pass(1);
    assert_eq!(stage.seats(), 40);
}

#[test]
fn sh_5_requests_that_wait_under_a_canary_that_returns_are_not_lost() {
    let stage = Stage::new(40);
    let bounds = CanaryBounds { wait_p99: Duration::from_millis(100), ..CanaryBounds::default() };
    stage.flow.canary(NEW, CanarySettings { bounds, ..ten_percent() }).unwrap();
    let flows = stage.of_canary();
    let mut running: Vec<Arrived> = Vec::new();
    let mut permits: Vec<Permit> = Vec::new();
    let mut looks = 0;
    while stage.flow.canary_state().is_some_and(|seen| seen.phase == CanaryPhase::Running) {
        // Four more than there are seats, so that four always wait.
        let arriving = if looks == 0 { 8 } else { 4 };
        running.extend((0..arriving).map(|number| stage.arrive(flows[(looks + number) % flows.len()], "/orders")));
        stage.clock.advance(Duration::from_millis(200));
        permits.clear();
        running.retain_mut(|arrived| {
            now(arrived).is_none_or(|permit| {
                permits.push(permit);
                false
            })
        });
        stage.flow.tick();
        looks += 1;
        assert!(looks < 500, "{:?}", stage.flow.canary_state());
    }
    let seen = stage.flow.canary_state().unwrap();
    assert!(seen.returned.unwrap().contains("waited for longer than 100 ms"));
    assert!(!running.is_empty(), "some wait");
    for _ in 0..100 {
        permits.clear();
        running.retain_mut(|arrived| {
            now(arrived).is_none_or(|permit| {
                permits.push(permit);
                false
            })
        });
    }
    assert!(running.is_empty(), "{} of them wait for ever", running.len());
    permits.clear();
    stage.pass(1);
    assert_eq!(stage.seats(), 40);
}

#[test]
fn seats_that_are_set_are_divided_among_both() {
    let stage = Stage::new(40);
    stage.flow.canary(NEW, ten_percent()).unwrap();
    stage.flow.set_server_concurrency(100);
    assert_eq!((stage.flow.canary_state().unwrap().seats, stage.seats()), (10, 90));
    // Both need one.
    stage.flow.set_server_concurrency(2);
    assert_eq!((stage.flow.canary_state().unwrap().seats, stage.seats()), (1, 1));
    stage.flow.set_server_concurrency(1);
    assert!(stage.flow.canary_state().is_none(), "there are too few seats for a canary");
    assert_eq!(stage.seats(), 1);
    stage.flow.set_server_concurrency(40);
    stage.flow.canary(NEW, ten_percent()).unwrap();
    stage.flow.set_concurrency("auto:10..100".parse().unwrap());
    assert!(stage.flow.canary_state().is_none(), "nobody says how many seats there are");
}

#[test]
fn what_cannot_be_a_canary_says_why() {
    let stage = Stage::new(40);
    for percent in [0, 100] {
        let settings = CanarySettings { percent, ..CanarySettings::default() };
        assert_eq!(stage.flow.canary(NEW, settings).unwrap_err(), CanaryError::Percent(percent));
    }
    assert!(matches!(stage.flow.canary("levels: {a: {shares: 0}}", ten_percent()), Err(CanaryError::Objects(_))));
    let error = Stage::new(1).flow.canary(NEW, ten_percent()).unwrap_err();
    assert!(error.to_string().starts_with("too few seats for a canary: there are 1, "), "{error}");
    stage.flow.set_concurrency("auto:10..100".parse().unwrap());
    assert_eq!(stage.flow.canary(NEW, ten_percent()).unwrap_err(), CanaryError::SeatsNotSet);
    assert!(stage.flow.canary_state().is_none());
}

#[tokio::test]
async fn a_canary_is_looked_after_where_the_flow_control_is() {
    let flow = FlowControl::builder().server_concurrency(2).objects(OLD).wait_limit(Duration::from_millis(50)).build();
    // Half of the requests are rejected, which must not end the canary.
    let bounds = CanaryBounds { rejected: 1.0, ..CanaryBounds::default() };
    flow.canary(NEW, CanarySettings { percent: 50, bounds, ..CanarySettings::default() }).unwrap();
    let request = RequestInfo::for_path("get", "/orders");
    let mut waited = 0;
    for user in 0..20 {
        let user = User::new(format!("user-{user}"), [""; 0]);
        let attributes = Attributes { user: &user, request: &request };
        let first = flow.admit(attributes, WorkEstimate::ONE_SEAT).await.unwrap();
        // Nobody else has a seat on that side, so that the second one waits for as long as it may.
        assert!(flow.admit(attributes, WorkEstimate::ONE_SEAT).await.is_err());
        waited += usize::from(first.priority_level() == "new");
    }
    assert!((1..20).contains(&waited), "{waited} of 20 flows are the canary's");
}
