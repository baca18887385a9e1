//! The bars of `evenkeel check`: how long 1,000 schemas with 5,000 rules take, and how much memory.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use evenkeel_bars::{Bar, Bars};

const SCHEMAS: u32 = 1000;
const RULES_OF_EACH: u32 = 5;
const LEVELS: u32 = 40;
const RUNS: u32 = 15;

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    if bars.wants("check") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("objects.yaml");
        fs::write(&path, objects()).unwrap();
        let path = path.to_str().unwrap();
        bars.add("check 1,000 schemas with 5,000 rules: whole run", fastest(path), "ms", Bar::AtMost(150.0, "ms"));
        bars.add("check 1,000 schemas with 5,000 rules: memory", peak_mb(path), "MB", Bar::AtMost(64.0, "MB"));
    }
    bars.print("evenkeel check");
}

/// Objects as a company with many teams would have them: most schemas are for a team's group or service accounts, some for all.
fn objects() -> String {
    let mut text = String::new();
    for level in 0..LEVELS {
        text += &format!(
            "---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata:\n  name: level-{level}\n\
             spec:\n  type: Limited\n  limited:\n    nominalConcurrencyShares: 30\n    lendablePercent: 50\n    limitResponse:\n\
             \x20     type: Queue\n      queuing:\n        queues: 64\n        handSize: 6\n        queueLengthLimit: 50\n"
        );
    }
    for schema in 0..SCHEMAS {
        let precedence = 2 + schema * 9;
        text += &format!(
            "---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata:\n  name: schema-{schema:04}\nspec:\n\
             \x20 priorityLevelConfiguration:\n    name: level-{}\n  matchingPrecedence: {precedence}\n  distinguisherMethod:\n\
             \x20   type: ByUser\n  rules:\n",
            schema % LEVELS
        );
        for rule in 0..RULES_OF_EACH {
            let team = (schema * 7 + rule) % 300;
            let subject = match (schema + rule) % 4 {
                0 => format!("kind: Group\n      group:\n        name: team-{team}"),
                1 => format!(
                    "kind: ServiceAccount\n      serviceAccount:\n        namespace: ns-{team}\n        name: \"*\""
                ),
                2 => format!("kind: User\n      user:\n        name: user-{team}"),
                _ => "kind: Group\n      group:\n        name: system:authenticated".to_owned(),
            };
            text += &format!("  - subjects:\n    - {subject}\n");
            if rule == 4 {
                text += &format!(
                    "    nonResourceRules:\n    - verbs: [\"get\"]\n      nonResourceURLs: [\"/team/{team}/*\", \"/v/{schema}\"]\n"
                );
            } else {
                let (verb, resource) = (["get", "list", "watch", "create"][rule as usize], (schema * 3 + rule) % 200);
                text += &format!(
                    "    resourceRules:\n    - verbs: [\"{verb}\", \"update\"]\n      apiGroups: [\"group-{}\", \"\"]\n      resources: \
                     [\"things-{resource}\", \"things-{resource}/status\"]\n      namespaces: [\"ns-{team}\", \"ns-{}\"]\n",
                    schema % 30,
                    (team + 1) % 300
                );
            }
        }
    }
    text
}

fn check(path: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(["check", "-o", "json", path]).stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// The time of the fastest of some runs, in milliseconds.
fn fastest(path: &str) -> f64 {
    let run = || {
        let start = Instant::now();
        let status = check(path).stdout(Stdio::null()).status().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{status}");
        start.elapsed()
    };
    (0..RUNS).map(|_| run()).min().unwrap_or(Duration::MAX).as_secs_f64() * 1e3
}

/// The most memory that a run had, in megabytes. It is read while the run waits for somebody to read what it prints, which is the
/// last thing that it does.
fn peak_mb(path: &str) -> f64 {
    let mut child = check(path).stdout(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let stat = format!("/proc/{}/wchan", child.id());
    let until = Instant::now() + Duration::from_secs(30);
    let mut peak = 0.0;
    while Instant::now() < until {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM:"));
        let Some(kb) = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()) else { break };
        peak = kb / 1024.0;
        if fs::read_to_string(&stat).unwrap_or_default().contains("pipe") {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(child.stdout.take());
    child.wait().unwrap();
    peak
}
