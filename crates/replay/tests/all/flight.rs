//! Dumps of a flight recorder: their own objects decide the same again, and others decide otherwise (FR-3, FR-4).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::division::Borrowing;
use evenkeel::flight::{Flight, FlightEnd};
use evenkeel::objects::IntoObjects;
use evenkeel::request::Arrived;
use evenkeel::{Attributes, FlowControl, Permit, RequestInfo, User, WorkEstimate};
use evenkeel_api::Preset;
use evenkeel_replay::{Replay, Settings, decide_again, objects_of, workload_of};
use evenkeel_sim::{Scenario, ServerSettings};

/// A queue for each flow.
const PER_FLOW: &str = "
levels:
  orders: {share: 3, queue: 20, wait: 300ms, lend: 50%}
  rest: {share: 1, queue: 10, wait: 200ms}
match:
- {path: /orders/*, level: orders}
- {level: rest}
";
/// Nothing waits in one level, and one lets everything through.
const REJECTING: &str = "
levels:
  rest: {share: 1, reject: true}
match:
- {user: user-1, exempt: true}
- {level: rest}
";
/// Queues that flows share, as in Kubernetes.
const SHARDED: &str = r#"
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: shared}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 30
    limitResponse: {type: Queue, queuing: {queues: 8, handSize: 3, queueLengthLimit: 6}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: everybody}
spec:
  priorityLevelConfiguration: {name: shared}
  matchingPrecedence: 100
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: User, user: {name: "*"}}]
    nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"]}]
"#;

/// A flow control with a recorder, on a clock that is set by hand.
struct Stage {
    flow: FlowControl,
    clock: ManualClock,
    now: u64,
    waiting: Vec<(u64, Arrived)>,
    running: BinaryHeap<Reverse<(u64, usize)>>,
    permits: Vec<Option<Permit>>,
    due: u64,
}

impl Stage {
    fn new(objects: &str, seats: u32, borrowing: Borrowing) -> Self {
        let clock = ManualClock::new();
        let flow = FlowControl::builder().server_concurrency(seats).borrowing(borrowing).objects(objects);
        let flow = flow.manual_clock(clock.clone()).wait_limit(Duration::from_millis(250)).build();
        flow.record(8 << 20);
        Self { flow, clock, now: 0, waiting: Vec::new(), running: BinaryHeap::new(), permits: Vec::new(), due: 0 }
    }

    fn run_until(&mut self, until: u64) {
        loop {
            let end = self.running.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            let next = end.min(self.due);
            if next > until {
                break;
            }
            self.go_to(next.max(self.now));
            if end == next
                && let Some(Reverse((_, place))) = self.running.pop()
            {
                drop(self.permits[place].take());
            }
            self.look();
        }
        self.go_to(until);
    }

    fn go_to(&mut self, at: u64) {
        self.clock.advance(Duration::from_nanos(at - self.now));
        self.now = at;
    }

    fn look(&mut self) {
        self.due = self.now.saturating_add(u64::try_from(self.flow.tick().as_nanos()).unwrap_or(u64::MAX).max(1));
        for (service, mut arrived) in std::mem::take(&mut self.waiting) {
            match Pin::new(&mut arrived).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => self.waiting.push((service, arrived)),
                Poll::Ready(Err(_)) => {}
                Poll::Ready(Ok(permit)) => {
                    self.running.push(Reverse((self.now + service, self.permits.len())));
                    self.permits.push(Some(permit));
                }
            }
        }
    }
}

/// Bursts of requests, which are more than there are seats for.
fn recorded(objects: &str, seats: u32, borrowing: Borrowing, seed: u64) -> Flight {
    recorded_on(Stage::new(objects, seats, borrowing), seats, seed)
}

fn recorded_on(mut stage: Stage, seats: u32, seed: u64) -> Flight {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut at = 1_000_000;
    for number in 0..2000 {
        at += random.u64(1..if number % 500 < 300 { 2_000_000 } else { 9_000_000 });
        stage.run_until(at);
        if seed % 2 == 1 && number % 600 == 599 {
            stage.flow.set_server_concurrency(seats + number / 600 * 2 - 1);
        }
        let user = User::new(format!("user-{}", random.u64(0..7)), [""; 0]);
        let request = RequestInfo::for_path("get", if random.bool() { "/orders/7" } else { "/reports" });
        let arrived =
            stage.flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::seats(random.u32(1..=3)));
        if random.u32(0..50) == 0 {
            // Its client leaves at once.
            drop(arrived);
        } else {
            stage.waiting.push((random.u64(1_000_003..40_000_000), arrived));
        }
        stage.look();
    }
    stage.run_until(at + 2_000_000_000);
    stage.flow.flight(Duration::from_secs(3600), "a test").unwrap()
}

#[test]
fn fr_4_its_own_objects_decide_the_same_again() {
    let mut requests = 0;
    for seed in 0..20 {
        let objects = [PER_FLOW, SHARDED, REJECTING, SHARDED][usize::try_from(seed % 4).unwrap()];
        let borrowing = if seed % 3 == 0 { Borrowing::Periodic } else { Borrowing::Immediate };
        let flight = recorded(objects, 9, borrowing, seed);
        assert!(flight.header.is_complete && flight.records.len() == 2000);
        let rejected = flight.records.iter().filter(|record| matches!(record.end, FlightEnd::Rejected(_))).count();
        assert!(rejected > 20 && rejected < 1900, "seed {seed}: {rejected}");
        // As it comes from a file.
        let flight = Flight::from_bytes(&flight.to_bytes()).unwrap();
        let agreement = decide_again(&flight).unwrap();
        let different = agreement.first_difference.map(|number| flight.records[number]);
        assert_eq!((agreement.same, different), (agreement.requests, None), "seed {seed}, {borrowing:?}{objects}");
        requests += agreement.requests;
    }
    assert_eq!(requests, 40_000);
}

/// How many seats are kept for newcomers depends on a setting (PF-10), which is in the dump.
#[test]
fn fr_4_seats_are_kept_for_newcomers_as_they_were() {
    for (seed, wait) in (0..).zip([Duration::ZERO, Duration::from_millis(5), Duration::from_secs(5)]) {
        let stage = Stage::new(PER_FLOW, 9, Borrowing::Immediate);
        stage.flow.set_newcomer_wait(wait);
        let flight = recorded_on(stage, 9, seed);
        assert_eq!(flight.header.newcomer_wait, i64::try_from(wait.as_nanos()).ok());
        let agreement = decide_again(&Flight::from_bytes(&flight.to_bytes()).unwrap()).unwrap();
        assert_eq!((agreement.same, agreement.first_difference), (2000, None), "{wait:?}");
    }
}

#[test]
fn fr_3_a_dump_is_replayed_under_other_objects() {
    let flight = recorded(PER_FLOW, 9, Borrowing::Immediate, 2);
    let own = objects_of(&flight).unwrap();
    let other = "{levels: {all: {share: 1, queue: 50}}, match: [{level: all}]}".into_objects(Preset::Plain).unwrap();
    let mut replay = Replay::new(Settings::new(Preset::Plain, 9), vec![own, other], None);
    replay.read_flight(&flight);
    let report = replay.finish();
    assert_eq!((report.requests, report.damaged.count()), (2000, 0));
    assert!(report.flows.iter().any(|flow| flow.requests > 50), "{:?}", report.flows.len());
}

#[test]
fn fr_2_names_are_hidden_if_they_have_to_be() {
    let mut flight = recorded(PER_FLOW, 9, Borrowing::Immediate, 4);
    assert!(flight.header.requests.iter().any(|request| request.user == "user-1"));
    flight.hide_users();
    assert!(!String::from_utf8_lossy(&flight.to_bytes()).contains("user-"));
    assert_eq!(decide_again(&flight).unwrap().first_difference, None);
}

/// As a workload, a dump has the same requests at the same times: under its own objects, the same number is rejected as in reality.
#[test]
fn fr_3_a_dump_is_a_workload() {
    // Nobody gives up, and nothing but the objects decides.
    let flight = recorded(REJECTING, 9, Borrowing::Immediate, 2);
    let workload = workload_of("incident", &flight);
    let is_rejected = |end: FlightEnd| matches!(end, FlightEnd::Rejected(_));
    let rejected = flight.records.iter().filter(|record| is_rejected(record.end)).count();
    let mut settings = ServerSettings::new(9);
    (settings.preset, settings.borrowing) = (Preset::Plain, Borrowing::Immediate);
    let objects = objects_of(&flight).unwrap().with_mandatory_levels();
    let run = evenkeel_sim::run(&workload, &Scenario { settings, objects, applied: Vec::new() }, 1, &mut |_| {});
    let requests: u64 = run.report.flows.iter().map(|flow| flow.figures.requests).sum();
    assert_eq!(requests, 2000);
    let simulated: u64 = run.report.flows.iter().flat_map(|flow| flow.figures.rejected.values()).sum();
    assert_eq!(simulated, u64::try_from(rejected).unwrap());
    assert!(rejected > 20, "{rejected}");
}
