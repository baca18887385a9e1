//! Dumps of a flight recorder: their own objects decide the same again, and others decide otherwise (FR-3, FR-4).

use std::time::Duration;

use evenkeel::division::Borrowing;
use evenkeel::flight::{Flight, FlightEnd};
use evenkeel::objects::IntoObjects;
use evenkeel_api::Preset;
use evenkeel_replay::{Replay, Settings, decide_again, newcomer_wait_of, objects_of, workload_of};
use evenkeel_sim::{Scenario, ServerSettings};

use crate::stage::{Stage, recorded, recorded_on};

/// A queue for each flow.
pub(crate) const PER_FLOW: &str = "
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
pub(crate) const SHARDED: &str = r#"
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

/// How many seats are kept for newcomers depends on a setting (PF-10), which is in the dump. With odd seeds the seats of two levels change.
#[test]
fn fr_4_seats_are_kept_for_newcomers_as_they_were() {
    let waits = [Duration::ZERO, Duration::from_millis(5), Duration::from_secs(5)];
    for (seed, wait) in (0..).zip(waits.into_iter().cycle().take(6)) {
        let mut stage = Stage::with(PER_FLOW, 9, Borrowing::Immediate, |builder| builder.newcomer_wait(wait));
        let flight = recorded_on(&mut stage, 9, seed);
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

/// Comparisons keep seats for newcomers as the gateway did.
#[test]
fn fr_3_comparisons_have_the_wait_of_newcomers() {
    let wait = Duration::from_millis(1);
    let mut stage = Stage::with(PER_FLOW, 9, Borrowing::Immediate, |builder| builder.newcomer_wait(wait));
    let flight = recorded_on(&mut stage, 9, 2);
    assert_eq!(newcomer_wait_of(&flight), 1_000_000);
    let rejected_with = |newcomer_wait| {
        let mut settings = Settings::new(Preset::Plain, 9);
        (settings.newcomer_wait, settings.wait_limit) = (newcomer_wait, flight.header.wait_limit);
        let mut replay = Replay::new(settings, vec![objects_of(&flight).unwrap()], None);
        replay.read_flight(&flight);
        replay.finish().flows.iter().map(|flow| flow.replayed[0].rejected_total()).collect::<Vec<u64>>()
    };
    assert_ne!(rejected_with(newcomer_wait_of(&flight)), rejected_with(10_000_000_000));
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
