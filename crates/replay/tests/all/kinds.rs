//! Logs of every kind, from their first line to the report.

use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;
use evenkeel_replay::{Format, Input, InputError, Replay, Report, Settings};

use crate::logs::{input, objects, replay};

fn plain() -> (Settings, Vec<Objects>) {
    (Settings::new(Preset::Plain, 10), vec![Objects::from(Preset::Plain)])
}

fn flows(report: &Report) -> Vec<(&str, u64)> {
    let mut flows: Vec<_> = report
        .flows
        .iter()
        .map(|flow| (flow.names[0].distinguisher.as_deref().unwrap_or_default(), flow.requests))
        .collect();
    flows.sort_unstable();
    flows
}

/// TL-31
#[test]
fn nginx_and_envoy() {
    let combined = r#"192.0.2.7 - - [16/Nov/2026:10:51:03 +0000] "GET /a HTTP/1.1" 200 512 "-" "curl"
192.0.2.8 - alice [16/Nov/2026:10:51:04 +0000] "GET /b HTTP/1.1" 200 512 "-" "curl"
"#;
    let (settings, configurations) = plain();
    let report = replay(settings, configurations, combined);
    assert_eq!(flows(&report), [("address:192.0.2.7", 1), ("alice", 1)]);
    assert_eq!(report.notes.untimed, 2, "the format does not tell how long requests took");

    let envoy = r#"{"start_time":"2026-11-16T10:51:03.600Z","method":"POST","path":"/orders","response_code":200,"duration":250,"user":"alice"}"#;
    let (settings, configurations) = plain();
    let report = replay(settings, configurations, envoy);
    assert_eq!((flows(&report), report.notes.untimed), (vec![("alice", 1)], 0));
    assert!((report.flows[0].replayed[0].seat_seconds() - 0.25).abs() < 1e-9);
}

#[test]
fn paths_have_the_normal_form_of_the_gateway() {
    let schema = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: public}
spec:
  priorityLevelConfiguration: {name: catch-all}
  matchingPrecedence: 2
  rules:
  - subjects: [{kind: Group, group: {name: system:authenticated}}, {kind: Group, group: {name: system:unauthenticated}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: [/pub/*]}]
";
    let line = |path: &str| {
        format!(
            r#"{{"start_time":"2026-11-16T10:51:03.600Z","method":"GET","path":"{path}","response_code":200,"duration":250,"user":"alice"}}"#
        )
    };
    // The gateway rejects the last one before flow control.
    let paths = ["/pub/a", "//pub//a", "/x/../pub/a", "/%70ub/a", "/pub/../x", "/pub%2Fa", "/pub%2F..%2Fx"];
    let text = paths.map(line).join("\n");
    let report = replay(Settings::new(Preset::Plain, 10), vec![objects(schema)], text);
    let public = report.flows.iter().filter(|flow| &*flow.names[0].schema == "public").map(|flow| flow.requests);
    assert_eq!((public.sum::<u64>(), report.requests, report.notes.not_understood), (4, 6, 1));
}

/// TL-31
#[test]
fn a_format_string_of_ones_own() {
    let text = "1794826263.850|PUT|/a|0.250|bob\n1794826263.950|PUT|/a|0.250|bob\nnonsense\n";
    let format = Format::of_template("$msec|$request_method|$request_uri|$request_time|$http_x_remote_user").unwrap();
    let mut log = Input::new("own", Box::new(text.as_bytes()), None, Some(format)).unwrap();
    let (settings, configurations) = plain();
    let mut replay = Replay::new(settings, configurations, None);
    replay.read(&mut log, |_, _| {});
    let report = replay.finish();
    assert_eq!((flows(&report), report.damaged.count()), (vec![("bob", 2)], 1));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_log() {
    let line = event("a", "ResponseComplete", "get", "/a", 1, 2, "");
    let list = format!(r#"{{"kind":"EventList","items":[{line}]}}"#);
    for text in [line, list] {
        let text = format!("\u{feff}{text}\n");
        let settings = Settings::new(Preset::Kubernetes, 10);
        let report = replay(settings, vec![Objects::from(Preset::Kubernetes)], text.as_str());
        assert_eq!((report.requests, report.damaged.count()), (1, 0), "{text}");
    }
    assert_eq!(input("\u{feff}").next_part(), None, "an empty log is a log");
}

#[test]
fn logs_of_no_known_kind_are_refused() {
    let refused = Input::new("diary.txt", Box::new(&b"Dear diary,\n"[..]), None, None).err().unwrap();
    assert!(matches!(refused, InputError::UnknownKind(_)));
    assert!(refused.to_string().starts_with("cannot tell what kind of log diary.txt is"), "{refused}");
    assert_eq!(input("").next_part(), None, "an empty log is a log");
}

/// An audit event.
fn event(id: &str, stage: &str, verb: &str, target: &str, arrived: u32, written: u32, more: &str) -> String {
    format!(
        r#"{{"kind":"Event","auditID":"{id}","stage":"{stage}","requestURI":"{target}","verb":"{verb}","user":{{"username":"u","groups":["system:authenticated"]}},"requestReceivedTimestamp":"2026-11-16T10:51:{arrived:02}.000000Z","stageTimestamp":"2026-11-16T10:51:{written:02}.000000Z"{more}}}"#
    )
}

/// TL-34
#[test]
fn watches_hold_seats_until_their_responses_start() {
    let target = "/api/v1/pods?watch=1";
    let text = [
        event("w", "RequestReceived", "watch", target, 0, 0, ""),
        event("w", "ResponseStarted", "watch", target, 0, 2, ""),
        event("w", "ResponseComplete", "watch", target, 0, 50, ""),
        // Its start is not in the log.
        event("x", "ResponseComplete", "watch", target, 1, 50, ""),
        event("l", "ResponseComplete", "get", "/api/v1/namespaces/a/pods/b/log", 1, 50, ""),
    ];
    let report = replay(Settings::new(Preset::Kubernetes, 100), vec![Objects::bootstrap()], text.join("\n"));
    assert_eq!((report.requests, report.notes.untimed, report.notes.not_limited), (2, 1, 1));
    let seat_seconds: f64 = report.flows.iter().map(|flow| flow.replayed[0].seat_seconds()).sum();
    assert!((seat_seconds - 4.0).abs() < 1e-6, "two seconds, and two assumed for the other: {seat_seconds}");
}

#[test]
fn changes_that_many_watches_are_told_of_linger() {
    let watch = "/api/v1/configmaps?watch=1";
    let mut text: Vec<String> =
        (0..20).map(|number| event(&format!("w{number}"), "ResponseStarted", "watch", watch, 0, 1, "")).collect();
    text.push(event("c", "ResponseComplete", "create", "/api/v1/namespaces/a/configmaps", 2, 3, ""));
    let linger = |text: &[String]| {
        let report = replay(Settings::new(Preset::Kubernetes, 100), vec![Objects::bootstrap()], text.join("\n"));
        report.flows.iter().map(|flow| flow.replayed[0].seat_time).sum::<i128>()
            - i128::from(report.requests) * 1_000_000_000
    };
    assert_eq!(linger(&text), 2 * 5_000_000, "two seats for 5 ms (WE-18)");
    for number in 0..20 {
        text.insert(20, event(&format!("w{number}"), "ResponseComplete", "watch", watch, 0, 2, ""));
    }
    assert_eq!(linger(&text), 0, "all watches have ended");
}

#[test]
fn requests_arrive_in_order_although_logs_are_in_order_of_ends() {
    let one_seat = objects(
        r#"
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: one}
spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 50}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: all}
spec:
  priorityLevelConfiguration: {name: one}
  matchingPrecedence: 10
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: Group, group: {name: "system:authenticated"}}]
    resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}]
"#,
    );
    // The long request arrived first, and ended last.
    let text = [
        event("b", "ResponseComplete", "get", "/api/v1/namespaces/a/pods/b", 5, 6, ""),
        event("c", "ResponseComplete", "get", "/api/v1/namespaces/a/pods/c", 7, 8, ""),
        event("a", "ResponseComplete", "get", "/api/v1/namespaces/a/pods/a", 0, 10, ""),
    ];
    let report = replay(Settings::new(Preset::Kubernetes, 1), vec![one_seat], text.join("\n"));
    let [flow] = &report.flows[..] else { panic!("one flow: {:?}", report.flows) };
    assert_eq!(flow.replayed[0].waited, 2, "behind the long one");
    assert_eq!(flow.replayed[0].wait.max(), 5_000_000_000);
}
