//! How long `evenkeel convert` takes, from its start to its end.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use evenkeel_bars::{Bar, Bars};

const OBJECTS: usize = 10_000;
/// The best of so many runs is what the machine does when it is left alone.
const RUNS: usize = 5;

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    bars.measure("convert: 10,000 objects of YAML", "s", || (seconds(&yaml(), "objects.yaml"), Bar::AtMost(1.0, "s")));
    bars.measure("convert: 10,000 objects of JSON in one line", "s", || {
        (seconds(&json(), "objects.json"), Bar::AtMost(1.0, "s"))
    });
    bars.print("The tools");
}

fn seconds(text: &str, name: &str) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a file");
    let run = |_| {
        let start = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        let status = command.args(["convert", "--to", "v1beta3"]).arg(&path).stdout(Stdio::null()).status();
        assert!(status.expect("the binary").success());
        start.elapsed().as_secs_f64()
    };
    (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
}

/// Half of them levels, every tenth of which has zero shares, and half of them flow schemas.
fn yaml() -> String {
    let mut text = String::new();
    for number in 0..OBJECTS / 2 {
        let shares = if number % 10 == 0 { 0 } else { 30 };
        let _ = write!(
            text,
            "---
# Level {number}.
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: level-{number}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: {shares}
    limitResponse:
      type: Queue
      queuing: {{queues: 64, handSize: 6, queueLengthLimit: 50}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: schema-{number}
spec:
  matchingPrecedence: 1000
  priorityLevelConfiguration: {{name: level-{number}}}
  distinguisherMethod: {{type: ByUser}}
  rules:
  - subjects:
    - kind: ServiceAccount
      serviceAccount: {{namespace: shop, name: '*'}}
    resourceRules:
    - verbs: [get, list, watch]
      apiGroups: ['']
      resources: [pods, services]
      namespaces: ['*']
"
        );
    }
    text
}

fn json() -> String {
    let level = |number: usize| {
        format!(
            r#"{{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","kind":"PriorityLevelConfiguration","metadata":{{"name":"é-{number}"}},"spec":{{"type":"Limited","limited":{{"nominalConcurrencyShares":{},"limitResponse":{{"type":"Reject"}}}}}}}}"#,
            number % 10
        )
    };
    let items: Vec<String> = (0..OBJECTS).map(level).collect();
    format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, items.join(","))
}
