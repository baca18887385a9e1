//! The examples of every `--help` are run as they are written (TL-7).

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use evenkeel_api::AnyObject;
use flate2::read::GzDecoder;
use tempfile::TempDir;

use crate::child::text;

/// Parts of examples that need a server or a dump of one, or take over the terminal. They are only parsed, by the tests of the reference.
const NEED_A_SERVER: [&str; 9] = [
    "evenkeel demo",
    "evenkeel top",
    "evenkeel health",
    "evenkeel shadow",
    "evenkeel explain --limit",
    ".ekf",
    "--live",
    "--context",
    "--kubeconfig",
];
/// This one writes to a folder of the system.
const NEEDS_ROOT: &str = "/usr/local/";

const WORKLOAD: &str = "\
apiVersion: evenkeel.dev/v1
kind: Workload
metadata: {name: small}
spec:
  seconds: 2
  flows:
  - {name: mice, count: 2, groups: [tenants], arrivals: {poisson: {rate: 20}}, service: {exponential: 10ms}}
";

/// A line of the access log of a gateway, and one of nginx in the format of the example.
const OWN_LOG: &str = r#"{"time":"2026-11-16T10:51:03.604580Z","requestId":"7f","user":"alice","groups":["system:authenticated"],"method":"GET","path":"/orders","schema":"tenants","level":"tenants","flow":"alice","seats":1,"receiveMs":0.1,"waitMs":1.5,"serviceMs":40.25,"status":200}"#;
const NGINX_LOG: &str = r#"1763290263.604 alice "GET /orders HTTP/1.1" 0.040"#;

/// All lines of the examples that a shell runs, in order.
fn examples() -> Vec<String> {
    let mut evenkeel = evenkeel_cli::command();
    evenkeel.build();
    let commands: Vec<_> = evenkeel.get_subcommands().cloned().chain([evenkeel.clone()]).collect();
    let mut lines = Vec::new();
    for command in commands {
        let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let Some((_, examples)) = after.split_once("Examples:\n") else { continue };
        let of_examples = examples.lines().take_while(|line| !line.is_empty());
        lines.extend(of_examples.filter_map(|line| line.strip_prefix("    ")).map(str::to_owned));
    }
    lines
}

/// A recorded file, unpacked.
fn recorded(name: &str) -> String {
    let file = File::open(evenkeel_recorded::golden().join(format!("replay/{name}.gz"))).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// The objects of a new cluster, as kubectl prints them.
fn cluster() -> String {
    let item = |object| match object {
        AnyObject::FlowSchema(schema) => serde_json::to_value(schema).unwrap(),
        AnyObject::PriorityLevelConfiguration(level) => serde_json::to_value(level).unwrap(),
    };
    let items: Vec<_> = evenkeel_api::bootstrap::all().to_objects().map(item).collect();
    serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A folder with every file that the examples name, and with commands that stand for those of other programs.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    let (tenants, recorded_objects) = (include_str!("../../../../examples/tenants.yaml"), recorded("objects.json"));
    for name in ["bin", "home/.config/fish/completions", "deploy/objects", "objects"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for (name, text) in [
        ("objects.yaml", tenants),
        ("flowcontrol.yaml", tenants),
        ("objects/objects.yaml", tenants),
        ("deploy/objects/objects.yaml", include_str!("../../../../deploy/objects.yaml")),
        ("old.yaml", &recorded_objects),
        ("new.yaml", &recorded_objects),
        ("workload.yaml", WORKLOAD),
        ("audit.log", &recorded("audit.jsonl")),
        ("kube-apiserver.log", &recorded("httplog.txt")),
        ("access.log", OWN_LOG),
        (
            "evenkeel.yaml",
            "upstreams: [{url: http://127.0.0.1:9000}]\nlevels: {all: {share: 100}}\nmatch: [{level: all}]\n",
        ),
        ("cluster.json", &cluster()),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    symlink(env!("CARGO_BIN_EXE_evenkeel"), root.join("bin/evenkeel")).unwrap();
    script(
        &root.join("bin/kubectl"),
        r#"test "$1 $2" = "get flowschemas,prioritylevelconfigurations" && cat cluster.json"#,
    );
    script(&root.join("bin/man"), "cat > /dev/null");
    folder
}

#[test]
fn examples_work_as_they_are_written() {
    let folder = folder();
    let path = format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    let saved = ["old.yaml", "new.yaml"].map(|name| (name, fs::read(folder.path().join(name)).unwrap()));
    for line in examples() {
        let serves = line.starts_with("evenkeel serve") && !line.contains("--print-config");
        if serves || line.contains(NEEDS_ROOT) || NEED_A_SERVER.iter().any(|part| line.contains(part)) {
            continue;
        }
        // The examples of nginx and of the gateway have logs of the same name.
        let log = if line.contains("--format") { NGINX_LOG } else { OWN_LOG };
        fs::write(folder.path().join("access.log"), log).unwrap();
        let output = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &line])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("HOME", folder.path().join("home"))
            .output()
            .unwrap();
        let told = format!("{line}\n{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{told}");
        // What kubectl has written is that of another cluster than the recorded log.
        for (name, text) in &saved {
            fs::write(folder.path().join(name), text).unwrap();
        }
        run += 1;
    }
    assert!(run >= 20, "only {run} examples were run");
}
