//! `evenkeel shadow`: the report as text and as JSON, and objects of a shadow that take the place of those in effect.

use crate::child;
use crate::peer;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use child::{PATIENCE, Running, address_after, evenkeel, run, text};
use peer::{Upstream, get};
use serde_json::Value;
use tempfile::TempDir;

/// All requests share a level.
const OLD: &str = "levels: {everything: {share: 1, queue: 50}}\nmatch: [{level: everything}]\n";
/// Reports get nothing.
const NEW: &str = "\
levels:
  interactive: {share: 1, queue: 50}
  reports: {share: 0}
match:
- {path: /reports/*, level: reports}
- {level: interactive}
";

/// A gateway with a shadow.
struct Shadowed {
    gateway: Running,
    address: SocketAddr,
    admin: SocketAddr,
}

// === impl Shadowed ===

impl Shadowed {
    /// In this folder, with these flags.
    fn start(folder: &Path, upstream: &Upstream, more: &[&str]) -> Self {
        let url = upstream.url();
        let mut command = evenkeel(&["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        if !more.contains(&"--config") {
            command.args(["--upstream", &url]);
        }
        let mut gateway = Running::spawn(command.args(more).current_dir(folder));
        let line = gateway.line_with("ready: ");
        let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
        Self { gateway, address, admin }
    }

    fn url(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// Waits until the shadow has decided about so many requests, and returns what `/debug/shadow` says.
    fn decided(&self, requests: u64) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let (status, body) = get(self.admin, "/debug/shadow");
            assert_eq!(status, 200, "{body}");
            let found: Value = serde_json::from_str(&body).unwrap();
            if found["requests"].as_u64() >= Some(requests)
                || found["services"][0]["shadow"]["requests"].as_u64() >= Some(requests)
            {
                return found;
            }
            assert!(Instant::now() < until, "{found:#}");
        }
    }
}

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in [("old.yaml", OLD), ("new.yaml", NEW)] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn in_folder(folder: &Path, arguments: &[&str]) -> Output {
    let command: &mut Command = &mut evenkeel(arguments);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn sh_3_the_report_is_a_table_and_the_json_of_the_gateway() {
    let (folder, upstream) = (folder(), Upstream::start());
    let shadowed = Shadowed::start(folder.path(), &upstream, &["--objects", "old.yaml", "--shadow", "new.yaml"]);
    for number in 0..10 {
        let path = if number % 2 == 0 { "/reports/1" } else { "/orders" };
        assert_eq!(get(shadowed.address, path).0, 200, "requests are served as if there were no shadow");
    }
    shadowed.decided(10);
    let output = run(&["shadow", &shadowed.url()]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("Under the new configuration 1 flow would have more requests rejected: "), "{shown}");
    // SH-4
    assert!(shown.lines().nth(1).unwrap().starts_with("Service times are those of reality"), "{shown}");
    assert!(shown.contains("everything → reports"), "{shown}");
    assert!(shown.contains("\n5 requests would be in level reports instead of everything\n"), "{shown}");
    let all = shown.lines().find(|line| line.starts_with("all ")).unwrap();
    let cells: Vec<_> = all.split_whitespace().filter(|cell| !["│", "|"].contains(cell)).collect();
    assert_eq!(cells[..4], ["all", "10", "0", "5"], "{shown}");
    // Where all requests are rejected, none waits.
    let rejected = shown.lines().find(|line| line.contains("everything → reports")).unwrap();
    let waits: Vec<_> = rejected.split_whitespace().rev().take(5).collect();
    assert_eq!((waits[0], waits[1] != "–"), ("–", true), "{shown}");
    // So many flows as were asked for.
    let shown = text(&run(&["shadow", &shadowed.url(), "--flows", "0"]).stdout);
    assert!(shown.contains("more flows (--flows)") && !shown.contains("everything → reports"), "{shown}");

    let json: Value = serde_json::from_slice(&run(&["shadow", &shadowed.url(), "-o", "json"]).stdout).unwrap();
    assert_eq!((&json["requests"], &json["totals"]["rejected"]["shadow"]), (&10.into(), &5.into()), "{json:#}");
    let of_gateway = shadowed.decided(10);
    for field in ["summary", "caveat", "since", "moved", "totals", "flows"] {
        assert_eq!(json[field], of_gateway[field]);
    }
}

#[test]
fn services_have_a_report_each() {
    let (folder, upstream) = (folder(), Upstream::start());
    let settings = format!(
        "services:\n  shop: {{path: /shop, upstream: '{0}'}}\n  pay: {{path: /pay, upstream: '{0}'}}\nobjects: old.yaml\n\
         shadow: {{objects: new.yaml}}\n",
        upstream.url()
    );
    fs::write(folder.path().join("evenkeel.yaml"), settings).unwrap();
    let shadowed = Shadowed::start(folder.path(), &upstream, &["--config", "evenkeel.yaml"]);
    for _ in 0..3 {
        for service in ["/shop", "/pay"] {
            assert_eq!(get(shadowed.address, service).0, 200);
        }
    }
    shadowed.decided(3);
    let shown = text(&run(&["shadow", &shadowed.url()]).stdout);
    assert!(shown.contains("shop\n\n") && shown.contains("pay\n\n"), "{shown}");
    let json: Value = serde_json::from_slice(&run(&["shadow", &shadowed.url(), "-o", "json"]).stdout).unwrap();
    let names: Vec<_> = json["services"].as_array().unwrap().iter().map(|one| one["service"].as_str()).collect();
    assert_eq!(names, [Some("pay"), Some("shop")], "{json:#}");
}

#[test]
fn without_a_shadow_or_a_token_it_says_what_to_do() {
    let (folder, upstream) = (folder(), Upstream::start());
    let shadowed = Shadowed::start(folder.path(), &upstream, &[]);
    for command in [&["shadow", &shadowed.url()][..], &["shadow", "promote", &shadowed.url()]] {
        let output = run(command);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("there is no shadow; start the gateway with `--shadow FILE`, or set `shadow`"), "{said}");
    }
    drop(shadowed);

    let token = folder.path().join("token");
    fs::write(&token, "secret-of-sixteen-letters").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(
        folder.path().join("evenkeel.yaml"),
        format!(
            "upstreams: [{{url: '{}'}}]\nadmin: {{tokenFile: token}}\nshadow: {{concurrency: 5}}\n",
            upstream.url()
        ),
    )
    .unwrap();
    let shadowed = Shadowed::start(folder.path(), &upstream, &["--config", "evenkeel.yaml"]);
    let said = text(&run(&["shadow", &shadowed.url()]).stderr);
    assert!(
        said.contains("needs a token or rejects this one (401); set --token-file or the variable EVENKEEL_ADMIN_TOKEN"),
        "{said}"
    );
    let output = in_folder(folder.path(), &["shadow", &shadowed.url(), "--token-file", "token"]);
    assert!(text(&output.stdout).contains(", 5 seats in the shadow"), "{}", text(&output.stderr));
    // A shadow without objects of its own has nothing that could take the place of others.
    let output = in_folder(folder.path(), &["shadow", "promote", &shadowed.url(), "--token-file", "token"]);
    assert!(text(&output.stderr).contains("the shadow has the objects in effect"), "{}", text(&output.stderr));
}

#[test]
fn sh_5_the_objects_of_the_shadow_take_the_place_of_those_in_effect_without_losing_a_request() {
    let (folder, upstream) = (folder(), Upstream::start());
    let mut shadowed = Shadowed::start(folder.path(), &upstream, &["--objects", "old.yaml", "--shadow", "new.yaml"]);
    let output = run(&["shadow", "promote", &shadowed.url()]);
    let commands = text(&output.stdout);
    assert_eq!(
        commands.lines().skip(1).collect::<Vec<_>>(),
        ["cp old.yaml old.yaml.before", "cp new.yaml old.yaml.promoted && mv old.yaml.promoted old.yaml"],
        "{commands}{}",
        text(&output.stderr)
    );
    assert!(commands.starts_with("# No request has been decided about yet."), "{commands}");
    assert_eq!(fs::read_to_string(folder.path().join("old.yaml")).unwrap(), OLD, "nothing was written");

    // While clients go on asking, all are served.
    let (address, until) = (shadowed.address, Instant::now() + PATIENCE);
    let clients = std::thread::spawn(move || {
        let mut served = 0;
        while served < 300 && Instant::now() < until {
            assert_eq!(get(address, "/orders").0, 200);
            served += 1;
        }
        served
    });
    let output = in_folder(folder.path(), &["shadow", "promote", &shadowed.url(), "--write"]);
    assert!(text(&output.stdout).ends_with("old.yaml has the objects of the shadow now\n"), "{}", text(&output.stderr));
    shadowed.gateway.line_with("the objects changed and are in effect");
    assert_eq!(get(shadowed.address, "/reports/1").0, 429);
    assert_eq!(clients.join().unwrap(), 300);
    assert_eq!(fs::read_to_string(folder.path().join("old.yaml.before")).unwrap(), OLD);
}

/// A level for everything, and a shadow of the mode `audit`: the level has other shares, and reports get nothing.
const OF_API: &str = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: everything}
spec: {type: Limited, limited: {nominalConcurrencyShares: 10, limitResponse: {type: Queue, queuing: {}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: everything-next
  annotations: {evenkeel.dev/mode: audit, evenkeel.dev/replaces: everything, evenkeel.dev/wait-limit: 7s}
spec: {type: Limited, limited: {nominalConcurrencyShares: 30, limitResponse: {type: Queue, queuing: {}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: reports, annotations: {evenkeel.dev/mode: audit}}
spec: {type: Limited, limited: {nominalConcurrencyShares: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: everybody}
spec:
  priorityLevelConfiguration: {name: everything}
  matchingPrecedence: 20
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: reports, annotations: {evenkeel.dev/mode: audit}}
spec:
  priorityLevelConfiguration: {name: reports}
  matchingPrecedence: 10
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: [/reports/*]}]
";

#[test]
fn sh_5_objects_of_an_api_are_promoted_in_one_step_without_losing_a_request() {
    let (folder, upstream) = (folder(), Upstream::start());
    fs::write(folder.path().join("objects.yaml"), OF_API).unwrap();
    let flags = ["--api-listen", "127.0.0.1:0", "--data-dir", "data", "--objects", "objects.yaml"];
    let shadowed = Shadowed::start(folder.path(), &upstream, &flags);
    let until = Instant::now() + PATIENCE;
    while get(shadowed.admin, "/debug/shadow").0 != 200 {
        assert!(Instant::now() < until, "the objects of the API have a shadow");
    }
    assert_eq!(get(shadowed.address, "/reports/1").0, 200);
    shadowed.decided(1);

    // Without the API it says what is missing.
    let output = in_folder(folder.path(), &["shadow", "promote", &shadowed.url()]);
    assert!(text(&output.stderr).contains("name it with --kubeconfig"), "{}", text(&output.stderr));
    let promote = ["shadow", "promote", &shadowed.url(), "--kubeconfig", "data/kubeconfig"];
    let output = in_folder(folder.path(), &promote);
    let printed = text(&output.stdout);
    assert!(printed.starts_with("# "), "{printed}{}", text(&output.stderr));
    assert!(
        printed.ends_with(
            "\nkubectl annotate --overwrite prioritylevelconfigurations everything-next evenkeel.dev/mode=promote\n"
        ),
        "{printed}"
    );

    // While clients go on asking: all orders are served, and reports until some moment, and never again after it.
    let (address, until) = (shadowed.address, Instant::now() + PATIENCE);
    let clients = std::thread::spawn(move || {
        let (mut before, mut after) = (0, 0);
        while after < 50 && Instant::now() < until {
            assert_eq!(get(address, "/orders").0, 200);
            match get(address, "/reports/1").0 {
                200 if after == 0 => before += 1,
                429 => after += 1,
                other => panic!("a report got {other}, {before} before and {after} after the promotion"),
            }
        }
        (before, after)
    });
    let output = in_folder(folder.path(), &[&promote[..], &["--write"]].concat());
    assert!(
        text(&output.stdout).ends_with("\n3 objects of the shadow govern now\n"),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let (_, after) = clients.join().unwrap();
    assert_eq!(after, 50);
    let output = in_folder(folder.path(), &promote);
    assert!(text(&output.stderr).contains("there is nothing to promote"), "{}", text(&output.stderr));
    assert_eq!(get(shadowed.admin, "/debug/shadow").0, 404, "there is no shadow any more");
    let listed = in_folder(folder.path(), &["check", "-o", "json", "--kubeconfig", "data/kubeconfig"]);
    assert!(!text(&listed.stdout).contains("everything-next"), "{}", text(&listed.stdout));
}

/// After its first write, a promotion can be finished by anybody, and decides the same until then.
#[test]
fn sh_5_a_promotion_that_was_interrupted_is_finished_by_running_it_again() {
    let (folder, upstream) = (folder(), Upstream::start());
    let begun = OF_API.replacen("evenkeel.dev/mode: audit", "evenkeel.dev/mode: promote", 1);
    fs::write(folder.path().join("objects.yaml"), begun).unwrap();
    let flags = ["--api-listen", "127.0.0.1:0", "--data-dir", "data", "--objects", "objects.yaml"];
    let shadowed = Shadowed::start(folder.path(), &upstream, &flags);
    let until = Instant::now() + PATIENCE;
    while get(shadowed.address, "/reports/1").0 != 429 {
        assert!(Instant::now() < until, "the objects of the shadow do not govern");
    }
    assert_eq!(get(shadowed.address, "/orders").0, 200);
    let promote = ["shadow", "promote", &shadowed.url(), "--kubeconfig", "data/kubeconfig"];
    let output = in_folder(folder.path(), &promote);
    assert_eq!(
        text(&output.stdout),
        "# The objects of the shadow govern already; --write writes them into the places that they have.\n",
        "{}",
        text(&output.stderr)
    );
    let output = in_folder(folder.path(), &[&promote[..], &["--write"]].concat());
    assert_eq!(text(&output.stdout), "3 objects of the shadow govern now\n", "{}", text(&output.stderr));
    assert_eq!(get(shadowed.address, "/reports/1").0, 429);
    let output = in_folder(folder.path(), &promote);
    assert!(text(&output.stderr).contains("there is nothing to promote"), "{}", text(&output.stderr));
    let listed = in_folder(folder.path(), &["check", "-o", "json", "--kubeconfig", "data/kubeconfig"]);
    assert!(!text(&listed.stdout).contains("everything-next"), "{}", text(&listed.stdout));
}
