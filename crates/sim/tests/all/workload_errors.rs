//! What is said of workloads that are wrong: file, line, column, field, and what to do.

use evenkeel_api::Preset;
use evenkeel_sim::workload::Workload;
use proptest::prelude::*;

const HEAD: &str = "apiVersion: evenkeel.dev/v1\nkind: Workload\nmetadata: {name: w}\n";

fn problems(spec: &str) -> Vec<String> {
    let text = format!("{HEAD}{spec}");
    let problems = Workload::parse("w.yaml", text.as_bytes(), Preset::Kubernetes).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

/// TL-27
#[test]
fn the_workload_of_the_specification_is_read_with_all_its_alternatives() {
    let page = include_str!("../../../../docs/spec/tools.md");
    let text = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let read = |text: &str| {
        let workload = Workload::parse("w.yaml", text.as_bytes(), Preset::Plain);
        workload.unwrap_or_else(|problems| panic!("{problems}\n{text}"))
    };
    let workload = read(text);
    assert_eq!((workload.name.as_str(), workload.flows.len(), workload.events.len()), ("noisy-neighbour", 1, 2));
    // What is behind `or` in a comment may stand in the place of what is before it. `…` is one of the others.
    let mut tried = 0;
    for line in text.lines() {
        let Some((before, others)) = line.split_once("# or ") else { continue };
        let (name, _) = before.split_once(':').unwrap();
        for other in others.split(" | ").filter(|other| other.starts_with('{') || !other.contains(' ')) {
            let other =
                other.replace("{…}", "{fixed: 10ms}").replace("{verb, apiGroup, resource, namespace, name}", RESOURCE);
            read(&text.replace(line, &format!("{name}: {other}")));
            tried += 1;
        }
    }
    assert!(tried >= 11, "{tried} alternatives");
}

/// A request for a resource, with all that it may say.
const RESOURCE: &str = "{verb: get, apiGroup: apps, resource: deployments, namespace: a, name: b}";

#[test]
fn paths_are_read_as_a_server_of_the_preset_reads_them() {
    let flow = "{name: a, request: {path: /x/..//pub/a}, arrivals: {poisson: {rate: 5}}, service: {fixed: 1ms}}";
    let text = format!("{HEAD}spec: {{seconds: 1, flows: [{flow}]}}\n");
    for (preset, path) in [(Preset::Plain, "/pub/a"), (Preset::Kubernetes, "/x/..//pub/a")] {
        let workload = Workload::parse("w.yaml", text.as_bytes(), preset).unwrap();
        assert_eq!(workload.flows[0].caller.request.path, path);
    }
}

#[test]
fn all_faults_are_told_with_their_places() {
    let found = problems(
        "spec:
  seconds: 0
  service: {slots: -1, speed: 2}
  flows:
  - name: a
    user: u
    request: {method: GET, path: /a, resource: pods}
    arrivals: {poisson: {rate: 5}, closed: {clients: 1}}
    service: {uniform: [12ms, 8ms]}
    patience: 10
    onRejection: sulk
    to: soon
  - name: b
    count: 0
    arrivals: {sometimes: {}}
    service: {mix: [[0.5, {fixed: 1ms}], [0.4, {fixed: 5}]]}
",
    );
    assert_eq!(found, ["w.yaml:5:3: spec.seconds: is 0, but must be at least a millisecond",]);
    let found = problems(
        "spec:
  seconds: 10
  warmup: 10
  service: {slots: -1, speed: 2}
  flows:
  - name: a
    request: {method: GET, path: /a, resource: pods}
    arrivals: {poisson: {rate: 5}, closed: {clients: 1}}
    service: {uniform: [12ms, 8ms]}
    patience: 10
    onRejection: sulk
    to: soon
  - name: b
    count: 0
    arrivals: {sometimes: {}}
    service: {mix: [[0.5, {fixed: 1ms}], [0.4, {fixed: 5ms}]]}
  - user: u
  events:
  - {at: 5s}
  - {apply: x.yaml}
",
    );
    let expected = [
        "w.yaml:6:3: spec.warmup: is 10, but must be shorter than spec.seconds",
        "w.yaml:7:13: spec.service.slots: is -1, but must be a whole number from 0 to 4294967295",
        "w.yaml:7:24: spec.service.speed: unknown field; use slots, degradation, sharing, contention, coherence, refusesAbove",
        "w.yaml:10:5: spec.flows[0].request: has both a path and parts of a resource; use {method, path} or {verb, resource, …}",
        "w.yaml:11:5: spec.flows[0].arrivals: must be exactly one of closed, poisson, periodic, burst",
        "w.yaml:12:15: spec.flows[0].service.uniform: is a list, but must be two durations, the shorter first, as [8ms, 12ms]",
        "w.yaml:13:5: spec.flows[0].patience: is 10, but must be a duration, as 250ms, 10s or 1m30s",
        "w.yaml:14:5: spec.flows[0].onRejection: is \"sulk\", but must be giveUp, ignore, {retryAfter: honour} or {backoff: {base: 100ms, max: 5s}}",
        "w.yaml:15:5: spec.flows[0].to: is \"soon\", but must be a duration, as 250ms, 10s or 1m30s",
        "w.yaml:17:5: spec.flows[1].count: is 0, but must be a whole number from 1 to 1000000",
        "w.yaml:18:16: spec.flows[1].arrivals.sometimes: unknown field; use closed, poisson, periodic, burst",
        "w.yaml:19:15: spec.flows[1].service.mix: the parts add up to 0.9, but must add up to 1",
        "w.yaml:20:5: spec.flows[2].arrivals: is missing; write `arrivals: {poisson: {rate: 50}}`",
        "w.yaml:20:5: spec.flows[2].name: is missing; write `name: mice`",
        "w.yaml:20:5: spec.flows[2].service: is missing; write `service: {fixed: 10ms}`",
        "w.yaml:22:5: spec.events[0]: must have exactly one of apply, slots, failing, concurrency",
        "w.yaml:23:5: spec.events[1].at: is missing; say when the event happens, as `at: 30s`",
    ];
    let mut found = found;
    found.sort();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn other_files_are_no_workloads() {
    let parse = |text: &[u8]| Workload::parse("x", text, Preset::Plain).unwrap_err().to_string();
    assert_eq!(parse(b""), "x:1:1: there are 0 documents, but must be one");
    assert_eq!(parse(b"a: [1"), parse(b"a: [1"));
    assert!(parse(b"kind: Pod\nkind: Workload").contains("x:2:1: kind: the name \"kind\" occurs twice"));
    assert!(parse(b"apiVersion: v1\nkind: Pod").contains("x:2:1: kind: is \"Pod\", but must be Workload"));
    assert!(parse(&vec![b' '; 2 << 20]).contains("there are more than"));
    assert_eq!(parse(b"[]"), "x:1:1: : is a list, but must be a map with apiVersion, kind, metadata, spec");
}

const EXAMPLE: &str = include_str!("../../../../examples/workloads/retry-storm/workload.yaml");

proptest! {
    /// Parts of a workload in the wrong order, doubled, or replaced by something else: an error or a workload, never a panic.
    #[test]
    fn any_text_is_read_or_refused(
        edits in prop::collection::vec((0..EXAMPLE.len(), 0..60_usize, 0..EXAMPLE.len(), "[ -~\n]{0,6}"), 1..6),
    ) {
        let mut text = EXAMPLE.as_bytes().to_vec();
        for (at, length, from, inserted) in edits {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            let copied = EXAMPLE.as_bytes()[from..(from + length).min(EXAMPLE.len())].to_vec();
            text.splice(at..end, inserted.into_bytes().into_iter().chain(copied));
        }
        match Workload::parse("w.yaml", &text, Preset::Plain) {
            Ok(workload) => prop_assert!(!workload.flows.is_empty() && workload.span > workload.warmup),
            Err(problems) => prop_assert!(problems.iter().all(|problem| problem.at.line > 0)),
        }
    }
}
