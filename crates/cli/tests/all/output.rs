//! What all tools print: JSON that is JSON, colour where it is wanted, and nothing that controls a terminal.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::child::{evenkeel, run, text};
use crate::terminal::InTerminal;

/// A name that would clear the screen, ring the bell and turn text around, in YAML and in JSON.
const EVIL: &str = r"eve\u001b[2J\u0007\u009b31m\u202e";

/// Files whose users, flows and comments are made to harm a terminal, one of them with such a name.
struct Files(TempDir);

// === impl Files ===

impl Files {
    fn new() -> Self {
        let files = Self(TempDir::new().unwrap());
        let level = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: few}\n\
                     spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}\n";
        let schema = |name: &str, precedence: u32, level: &str| {
            format!(
                "---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {{name: {name}}}\nspec:\n  \
                 priorityLevelConfiguration: {{name: {level}}}\n  matchingPrecedence: {precedence}\n  \
                 distinguisherMethod: {{type: ByUser}}\n  rules:\n  - subjects: [{{kind: User, user: {{name: \"{EVIL}\"}}}}] # \u{9b}31m\n    \
                 nonResourceRules: [{{verbs: [get], nonResourceURLs: [/orders]}}]\n"
            )
        };
        let objects = |second: &str| format!("{level}{}{}", schema("one", 500, "few"), schema("two", 600, second));
        files.write("objects.yaml", &objects("few"));
        files.write("other.yaml", &format!("{level}{}", schema("one", 500, "catch-all")));
        files.write(EVIL_FILE, &objects("nowhere"));
        let flow = format!(
            "{{name: \"{EVIL}\", user: \"{EVIL}\", request: {{method: GET, path: /orders}}, arrivals: {{poisson: {{rate: 50}}}}, \
             service: {{fixed: 10ms}}}}"
        );
        let workload = format!(
            "apiVersion: evenkeel.dev/v1\nkind: Workload\nmetadata: {{name: \"{EVIL}\"}}\nspec: {{seconds: 2, flows: [{flow}]}}\n"
        );
        files.write("workload.yaml", &workload);
        let event = format!(
            r#"{{"auditID":"{EVIL}","stage":"ResponseComplete","requestURI":"/orders","verb":"get","user":{{"username":"{EVIL}"}},"requestReceivedTimestamp":"2026-11-16T10:51:10Z","stageTimestamp":"2026-11-16T10:51:11Z"}}"#
        );
        files.write("audit.log", &format!("{event}\n{{\"{EVIL}\":\n"));
        files.write("calls.yaml", "- caller: one\n  callee: two # \u{9b}31m\n");
        files.write("empty.log", "");
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// A command line of each tool, for these files.
    fn command_lines(&self) -> Vec<Vec<String>> {
        let [objects, other, evil] = ["objects.yaml", "other.yaml", EVIL_FILE].map(|name| self.path(name));
        let [workload, audit, calls, empty] =
            ["workload.yaml", "audit.log", "calls.yaml", "empty.log"].map(|name| self.path(name));
        let user = EVIL.replace(r"\u001b", "\u{1b}").replace(r"\u202e", "\u{202e}");
        let lines: [&[&str]; 12] = [
            &["check", &objects],
            &["check", &evil],
            &["check", "--calls", &calls, &objects],
            &["check", &other, "--against", &objects],
            &["check", &other, "--against", &other],
            &["explain", "GET", "/orders", "--user", &user, "--objects", &objects],
            &["explain", "--audit", &audit, "--objects", &objects],
            &["simulate", &workload, "--objects", &objects],
            &["simulate", &workload, "--objects", &objects, "--against", &other, "--runs", "2"],
            &["replay", &audit, "--objects", &objects],
            &["replay", &audit, "--objects", &objects, "--against", &evil_but_valid(self)],
            &["replay", &empty, "--objects", &objects],
        ];
        lines.iter().map(|line| line.iter().map(|word| (*word).to_owned()).collect()).collect()
    }
}

const EVIL_FILE: &str = "evil\u{1b}[2J\u{202e}.yaml";

/// Valid objects in a file with a harmful name.
fn evil_but_valid(files: &Files) -> String {
    let name = "valid\u{1b}[2J.yaml";
    files.write(name, &fs::read_to_string(files.path("other.yaml")).unwrap());
    files.path(name)
}

fn words(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}

/// Whether a terminal would show all of it as it is. Line ends are its only control characters.
fn is_harmless(text: &str) -> bool {
    let hidden = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    text.chars().all(|c| c == '\n' || (!c.is_control() && !hidden(c)))
}

fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// TL-6
#[test]
fn no_text_controls_the_terminal() {
    let files = Files::new();
    for line in files.command_lines() {
        for format in ["text", "json"] {
            let output = run(&[&words(&line)[..], &["-o", format]].concat());
            let said = said(&output);
            assert!(said.len() > 10 && is_harmless(&said), "{line:?}: {said:?}");
        }
    }
    for format in ["github", "sarif"] {
        let said = said(&run(&["check", "-o", format, &files.path(EVIL_FILE)]));
        assert!(said.contains("dangling-level") && is_harmless(&said), "{format}: {said:?}");
    }
}

/// TL-1
#[test]
fn json_is_json_whatever_the_input_was() {
    let files = Files::new();
    for line in files.command_lines() {
        let output = run(&[&words(&line)[..], &["-o", "json"]].concat());
        if output.status.code() == Some(2) {
            assert_eq!(text(&output.stdout), "", "{line:?}");
            continue;
        }
        let documents: Vec<Value> =
            serde_json::Deserializer::from_slice(&output.stdout).into_iter().collect::<Result<_, _>>().unwrap();
        assert!(!documents.is_empty() && documents.iter().all(Value::is_object), "{line:?}");
        assert_eq!(text(&output.stderr), "", "{line:?}");
    }
}

/// TL-6
#[test]
fn colour_is_for_terminals_without_no_color() {
    let files = Files::new();
    let objects = files.path("objects.yaml");
    let in_terminal = |arguments: &[&str], no_color: &str| {
        let mut command = evenkeel(arguments);
        command.env("NO_COLOR", no_color);
        InTerminal::spawn(command, 100).finish().1
    };
    let is_coloured = |text: &str| text.contains("\x1b[1;3") || text.contains("\x1b[1m");
    for arguments in [
        &["check", &objects][..],
        &["explain", "GET", "/orders", "--objects", &objects],
        &["simulate", &files.path("workload.yaml"), "--objects", &objects, "--against", &files.path("other.yaml")],
        &["replay", &files.path("audit.log"), "--objects", &objects],
    ] {
        assert!(is_coloured(&in_terminal(arguments, "")), "{arguments:?}");
        let plain = in_terminal(arguments, "1");
        // A line that shows how far it is may have been removed.
        assert!(is_harmless(&plain.replace("\r\x1b[2K", "")), "{arguments:?}: {plain:?}");
        for (choice, expected) in [("always", true), ("never", false), ("auto", false)] {
            let arguments = [arguments, &["--color", choice]].concat();
            let piped = said(&run(&arguments));
            assert_eq!(is_coloured(&piped), expected, "{arguments:?}: {piped:?}");
        }
    }
    assert!(in_terminal(&["check", "--help"], "").contains('\x1b'));
    assert!(is_harmless(&in_terminal(&["check", "--help"], "1")));
}

/// TL-6: a line that is wrapped is not removed by the next one.
#[test]
fn progress_fits_into_a_narrow_terminal() {
    let files = Files::new();
    let flow = "{name: a, arrivals: {poisson: {rate: 2000}}, service: {fixed: 1ms}}";
    let text = format!("apiVersion: evenkeel.dev/v1\nkind: Workload\nspec: {{seconds: 60, flows: [{flow}]}}\n");
    files.write("long.yaml", &text);
    let recorded = |name: &str| evenkeel_recorded::golden().join("replay").join(name).to_str().unwrap().to_owned();
    let (log, objects) = (recorded("audit.jsonl.gz"), recorded("objects.json.gz"));
    for arguments in [
        &["simulate", &*files.path("long.yaml")][..],
        &["replay", &log, &log, &log, "--objects", &objects, "--top", "1"],
    ] {
        for columns in [40, 12] {
            let (code, output) = InTerminal::spawn(evenkeel(arguments), columns).finish();
            assert_eq!(code, Some(0), "{output}");
            let shown: Vec<&str> =
                output.split("\r\x1b[2K").skip(1).filter_map(|part| part.split('\n').next()).collect();
            assert!(shown.len() > 2, "{arguments:?} takes so long that progress is shown: {output:?}");
            // What follows after the last is the result.
            for line in &shown[..shown.len() - 1] {
                assert!(line.chars().count() < usize::from(columns), "{arguments:?} in {columns} columns: {line:?}");
            }
        }
    }
}

/// TL-8: a line without an end, and many users that nobody has seen before.
#[test]
#[cfg(target_os = "linux")]
fn memory_has_a_bound_for_logs_of_any_size() {
    const SIZE: usize = 100 << 20;
    const BOUND_KB: u64 = 100 << 10;
    let files = Files::new();
    let body = "x".repeat(10_000);
    let event = |number: usize| {
        format!(
            r#"{{"auditID":"{number}","stage":"ResponseComplete","requestURI":"/orders/{number}","verb":"get","user":{{"username":"user-{number}"}},"responseObject":"{body}","requestReceivedTimestamp":"2026-11-16T10:51:10Z","stageTimestamp":"2026-11-16T10:51:11Z"}}"#
        )
    };
    let many: Box<dyn Fn(usize) -> String> = Box::new(|number| event(number) + "\n");
    let one: Box<dyn Fn(usize) -> String> = Box::new(|number| if number == 0 { event(0) + "\n" } else { body.clone() });
    for (what, piece) in [("many lines", many), ("one line", one)] {
        let arguments = ["replay", "-", "--objects", &files.path("objects.yaml"), "-o", "json"];
        let mut child = evenkeel(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut written = 0;
        for number in 0.. {
            let piece = piece(number);
            input.write_all(piece.as_bytes()).unwrap();
            written += piece.len();
            if written >= SIZE {
                break;
            }
        }
        // All but what fits into a pipe has been read.
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        eprintln!("{what}: {peak} kB for {written} bytes");
        assert!(peak < BOUND_KB, "{what}: {peak} kB");
        drop(input);
        let output = child.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["requests"].as_u64() > Some(0), "{what}: {report}");
    }
}
