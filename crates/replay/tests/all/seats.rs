//! The seats that a log tells are those of the replay, and what cannot be honoured is counted.

use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;
use evenkeel_replay::{Report, Settings};

use crate::logs::{objects, replay};

/// A level with a hand of queues, whose estimates would cap a request at one or two seats.
fn tenants() -> Objects {
    objects(
        "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: tenants}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 100
    borrowingLimitPercent: 0
    limitResponse: {type: Queue, queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: tenants}
spec:
  priorityLevelConfiguration: {name: tenants}
  matchingPrecedence: 100
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
",
    )
}

/// A request each second, which took these seats for a tenth of a second.
fn log(seats: &[Option<u32>]) -> String {
    let line = |(second, seats): (usize, &Option<u32>)| {
        let seats = seats.map(|seats| format!(r#","seats":{seats}"#)).unwrap_or_default();
        format!(
            r#"{{"time":"2026-11-16T10:51:{second:02}Z","user":"alice","groups":["system:authenticated"],"method":"GET","path":"/","schema":"tenants","level":"tenants"{seats},"waitMs":0,"serviceMs":100,"status":200}}"#
        ) + "\n"
    };
    seats.iter().enumerate().map(line).collect()
}

fn replayed(seats: &[Option<u32>]) -> Report {
    replay(Settings::new(Preset::Plain, 20), vec![tenants()], log(seats))
}

fn seat_seconds(report: &Report) -> f64 {
    report.flows.iter().map(|flow| flow.replayed[0].seat_seconds()).sum()
}

#[test]
fn requests_take_the_seats_that_the_log_tells() {
    let report = replayed(&[Some(8), Some(1), Some(3)]);
    assert!((seat_seconds(&report) - 1.2).abs() < 1e-6, "{}", seat_seconds(&report));
    let notes = &report.notes;
    assert_eq!((notes.narrowed, notes.unknown_seats, notes.seatless), (0, 0, 0));
}

#[test]
fn what_cannot_be_honoured_is_counted() {
    let report = replayed(&[Some(50), None, Some(0), Some(2)]);
    let notes = &report.notes;
    assert_eq!((notes.narrowed, notes.unknown_seats, notes.seatless), (1, 1, 1));
    assert_eq!(report.requests, 3, "a request that took no seats is left out");
    assert!((seat_seconds(&report) - 2.3).abs() < 1e-6, "20, 1 and 2 seats: {}", seat_seconds(&report));
}

/// As `jq .` and `jq -s .` write it.
#[test]
fn a_log_that_was_written_anew_is_read() {
    let text = log(&[Some(8), Some(1), Some(3)]);
    let over_lines = text.replace(",\"", ",\n  \"").replace("{\"", "{\n  \"").replace("\":", "\": ");
    let array = format!("[\n{}\n]\n", over_lines.trim_end().replace("}\n{", "},\n{"));
    let spaced = text.replace("\":", "\" : ").replace(",\"", ", \"");
    for anew in [over_lines, array, spaced] {
        let report = replay(Settings::new(Preset::Plain, 20), vec![tenants()], anew.clone());
        assert_eq!((report.requests, report.damaged.count()), (3, 0), "{anew}");
        assert!((seat_seconds(&report) - 1.2).abs() < 1e-6);
    }
}
