//! One settings file for all tools: what `--config` says takes the place of flags.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use tempfile::TempDir;

use crate::child::{evenkeel, text};

/// The settings of a gateway in the short form, with a route.
const SETTINGS: &str = "\
concurrency: 12
timeouts: {queue: 4s}
identity: {sources: [{apiKey: {header: X-API-Key, file: keys.csv}}]}
requests:
  routes:
  - {path: '/reports/{*}', seats: 3, timeouts: {queue: 1s}}
levels:
  paying: {share: 75}
  free: {share: 25, queue: 20}
match:
- {group: gold, level: paying}
- {level: free}
";

/// A folder with settings, their keys and more files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in [("evenkeel.yaml", SETTINGS), ("keys.csv", "key-of-ann,ann,1,gold\n")].iter().chain(files) {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::set_permissions(folder.path().join("keys.csv"), fs::Permissions::from_mode(0o600)).unwrap();
    folder
}

/// What a command prints: on standard output, and on standard error.
fn printed(folder: &TempDir, arguments: &[&str]) -> (String, String) {
    let output = evenkeel(arguments).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn json(folder: &TempDir, arguments: &[&str]) -> Value {
    let mut all = vec![arguments[0], "-o", "json"];
    all.extend(&arguments[1..]);
    serde_json::from_str(&printed(folder, &all).0).unwrap()
}

/// Without the route, in settings of the same name that count as others.
fn without_route(settings: &str) -> String {
    let (head, rest) = settings.split_once("requests:\n").unwrap();
    format!("{head}{}", rest.split_once("}}\n").unwrap().1)
}

fn workload(details: &str) -> String {
    format!(
        "apiVersion: evenkeel.dev/v1\nkind: Workload\nmetadata: {{name: small}}\nspec:\n  seconds: 20\n  flows:\n  \
         - {{name: ann, groups: [gold], request: {{method: GET, path: /reports/7}}, arrivals: {{closed: {{clients: 40}}}},\n     \
         service: {{fixed: 400ms}}{details}}}\n"
    )
}

#[test]
fn explain_knows_levels_routes_and_who_a_key_is() {
    let folder = folder(&[]);
    let command = ["--", "curl", "-H", "X-API-Key: key-of-ann", "http://shop.example/reports/7"];
    let explained = json(&folder, &[&["explain", "--config", "evenkeel.yaml"], &command[..]].concat());
    let found =
        ["flowSchema", "priorityLevel", "flow"].map(|field| explained[field].as_str().unwrap_or_default().to_owned());
    assert_eq!(found, ["paying-1", "paying", "ann"], "{explained}");
    assert_eq!(explained["seats"]["initial"], 3, "{explained}");
    let (page, notes) = printed(&folder, &[&["explain", "--config", "evenkeel.yaml"], &command[..]].concat());
    assert!(page.contains("those of `levels` and `match` in evenkeel.yaml"), "{page}");
    assert_eq!(notes, "");
}

#[test]
fn simulate_goes_by_seats_levels_routes_and_times_to_wait() {
    let plain = without_route(SETTINGS);
    let told = workload(", seats: 3, patience: 1s");
    let folder = folder(&[("short.yaml", &workload("")), ("told.yaml", &told), ("other.yaml", &plain)]);
    let by_route = json(&folder, &["simulate", "short.yaml", "--config", "evenkeel.yaml"]);
    let by_workload = json(&folder, &["simulate", "told.yaml", "--config", "other.yaml"]);
    assert_eq!(by_route, by_workload);
    assert_ne!(by_route, json(&folder, &["simulate", "short.yaml", "--config", "other.yaml"]));
    let timed_out = |value: &Value| value["flows"][0]["timedOut"].clone();
    assert_ne!(timed_out(&by_route), Value::Null, "{by_route}");
    // The time to wait of the settings is not that of the workload format.
    let patient = json(&folder, &["simulate", "told.yaml", "--config", "evenkeel.yaml"]);
    assert_eq!(patient, by_route);
    let seats = json(&folder, &["simulate", "short.yaml", "--config", "evenkeel.yaml", "--concurrency", "120"]);
    assert_ne!(seats, by_route, "a flag counts more than the file");
}

#[test]
fn replay_goes_by_seats_levels_and_routes() {
    let log = |seats: u32| {
        (0..200).fold(String::new(), |mut log, number| {
            let (second, milli) = (number / 100, number % 100 * 10);
            writeln!(
                log,
                r#"{{"time":"2026-11-16T10:51:0{second}.{milli:03}Z","user":"ann","groups":["gold"],"method":"GET","path":"/reports/{number}","schema":"paying-1","level":"paying","seats":{seats},"waitMs":0,"serviceMs":200}}"#
            )
            .unwrap();
            log
        })
    };
    // In both, requests wait for 1 s at most: the route says so, or the settings.
    let plain = without_route(SETTINGS).replace("queue: 4s", "queue: 1s");
    let folder = folder(&[("one.log", &log(1)), ("three.log", &log(3)), ("other.yaml", &plain)]);
    let flows = |log: &str, settings: &str| {
        let report = json(&folder, &["replay", log, "--config", settings]);
        assert_ne!(report["flows"][0], Value::Null, "{report}");
        report["flows"].clone()
    };
    assert_eq!(flows("one.log", "evenkeel.yaml"), flows("three.log", "other.yaml"));
    assert_ne!(flows("one.log", "evenkeel.yaml"), flows("one.log", "other.yaml"));
}

/// Services have seats of their own: `check` accuses levels that have too few of them, as `serve` does, and tools that know one service say
/// by whose seats they go.
#[test]
fn services_of_the_settings_are_known() {
    let services = |seats: u32| {
        format!("services: {{shop: {{path: /shop, upstream: 'http://127.0.0.1:9', concurrency: {seats}}}}}\n{SETTINGS}")
    };
    let folder = folder(&[("one.yaml", &services(1)), ("many.yaml", &services(40)), ("short.yaml", &workload(""))]);
    let checked = |arguments: &[&str]| {
        let output = evenkeel(&[&["check"], arguments].concat()).current_dir(folder.path()).output().unwrap();
        (output.status.code(), text(&output.stdout))
    };
    let (code, report) = checked(&["--config", "one.yaml"]);
    assert_eq!(code, Some(1), "{report}");
    let advice = "give the service more seats (`services.shop.concurrency`), or the level a larger share";
    assert!(report.contains("service \"shop\": ") && report.contains(advice), "{report}");
    let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let served =
        evenkeel(&[&["serve", "--config", "one.yaml"], &listen[..]].concat()).current_dir(folder.path()).output();
    assert_eq!(served.unwrap().status.code(), Some(2));
    assert_eq!(checked(&["--config", "many.yaml"]).0, Some(0), "{}", checked(&["--config", "many.yaml"]).1);
    assert_eq!(checked(&["--config", "one.yaml", "--seats", "40"]).0, Some(0), "a flag counts more than the file");
    let note = "concurrency 12 (all requests share it; the services of the settings have their own: shop 40; for one of them, add --concurrency N)\n";
    let simulated = ["simulate", "short.yaml", "--config", "many.yaml"];
    assert_eq!(printed(&folder, &simulated).1, note);
    assert_eq!(printed(&folder, &[&simulated[..], &["--concurrency", "40"]].concat()).1, "");
}

#[test]
fn the_default_preset_is_told_and_that_of_a_cluster_is_not_guessed() {
    let folder = folder(&[("short.yaml", &workload(""))]);
    let note = "preset plain (the default; for a Kubernetes API, add --preset kubernetes)\n";
    let seats = |meaning| {
        format!("{note}concurrency auto (the default: {meaning}; for a number of seats, add --concurrency N)\n")
    };
    let notes = |arguments: &[&str]| printed(&folder, arguments).1;
    let explained = ["explain", "GET", "/orders"];
    assert_eq!(notes(&explained), seats("limits are those of the 20 seats that it starts with"));
    assert_eq!(notes(&[&explained[..], &["--concurrency", "40"]].concat()), note);
    let simulated = ["simulate", "short.yaml"];
    assert_eq!(notes(&simulated), seats("the simulated server finds out how many seats are right"));
    assert_eq!(notes(&[&simulated[..], &["--concurrency", "auto"]].concat()), note);
    for known in [
        &["explain", "GET", "/orders", "--preset", "plain"][..],
        &["explain", "list", "pods", "-n", "shop"],
        &["explain", "GET", "/api/v1/pods", "--kubernetes", "1.30"],
        &["explain", "GET", "/orders", "-o", "json"],
        &["simulate", "short.yaml", "--config", "evenkeel.yaml"],
        &["check", "--config", "evenkeel.yaml"],
    ] {
        assert_eq!(notes(known), "", "{known:?}");
    }
    let preset = |arguments: &[&str]| json(&folder, arguments)["request"]["resource"].as_str().map(str::to_owned);
    assert_eq!(preset(&["explain", "list", "pods"]).as_deref(), Some("pods"));
    assert_eq!(preset(&["explain", "GET", "/api/v1/pods", "--kubernetes", "1.30"]).as_deref(), Some("pods"));
    assert_eq!(preset(&["explain", "GET", "/api/v1/pods"]).unwrap_or_default(), "");
}

#[test]
fn settings_that_are_wrong_are_told_with_their_place() {
    let folder = folder(&[
        ("typo.yaml", &SETTINGS.replace("level: paying}", "level: payin}")),
        ("unknown.yaml", &SETTINGS.replace("concurrency", "concurency")),
    ]);
    fs::write(folder.path().join("short.yaml"), workload("")).unwrap();
    for (settings, place) in [("typo.yaml", "typo.yaml:11:"), ("unknown.yaml", "unknown.yaml:1:")] {
        for command in
            [&["check"][..], &["explain", "GET", "/"], &["simulate", "short.yaml"], &["replay", "short.yaml"]]
        {
            let arguments = [command, &["--config", settings]].concat();
            let output = evenkeel(&arguments).current_dir(folder.path()).output().unwrap();
            let complaint = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
            assert!(complaint.contains(place), "{arguments:?}: {complaint}");
        }
    }
}
