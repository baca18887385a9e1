//! kubectl as people read with it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::folder::folder;
use super::manifest::schema;
use super::served::{Served, end, no_kubectl};

#[test]
fn get_prints_the_columns_of_both_kinds() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let schemas = server.kubectl_does(&["get", "flowschemas"]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut lines = schemas.lines();
    let columns = "NAME PRIORITYLEVEL MATCHINGPRECEDENCE DISTINGUISHERMETHOD AGE MISSINGPL";
    assert_eq!(words(lines.next().unwrap()).join(" "), columns);
    let row = lines.map(words).find(|row| row[0] == "catch-all").unwrap();
    assert_eq!([&row[1], &row[2], &row[3]], ["catch-all", "10000", "ByUser"]);
    let levels = server.kubectl_does(&["get", "prioritylevelconfigurations"]);
    let columns = "NAME TYPE NOMINALCONCURRENCYSHARES QUEUES HANDSIZE QUEUELENGTHLIMIT AGE";
    assert_eq!(words(levels.lines().next().unwrap()).join(" "), columns);
    assert_eq!(levels.lines().count(), 9, "{levels}");
}

#[test]
fn get_prints_one_object_in_every_form() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let yaml = server.kubectl_does(&["get", "flowschema", "global-default", "-o", "yaml"]);
    assert!(yaml.starts_with("apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"), "{yaml}");
    assert!(yaml.contains("  matchingPrecedence: 9900\n"), "{yaml}");
    let path = "jsonpath={.items[*].metadata.name}";
    let selected = ["get", "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "-o", path];
    let names = server.kubectl_does(&[&selected[..], &["--field-selector", "metadata.name=exempt"]].concat());
    assert_eq!(names, "exempt");
    let ended = server.kubectl_ends("", &["get", "flowschema", "nobody-has-it"]);
    let expected =
        "Error from server (NotFound): flowschemas.flowcontrol.apiserver.k8s.io \"nobody-has-it\" not found\n";
    assert_eq!((ended.code, ended.errors.as_str()), (Some(1), expected));
}

#[test]
fn describe_explain_and_api_resources_know_the_kinds() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let described = server.kubectl_does(&["describe", "flowschema", "global-default"]);
    assert!(described.contains("  Matching Precedence:  9900\n"), "{described}");
    let described = server.kubectl_does(&["describe", "prioritylevelconfiguration", "workload-low"]);
    assert!(described.contains("Nominal Concurrency Shares:  100\n"), "{described}");
    let explained = server.kubectl_does(&["explain", "flowschema.spec.matchingPrecedence"]);
    assert!(explained.contains("FIELD: matchingPrecedence <integer>"), "{explained}");
    let explained = server.kubectl_does(&["explain", "prioritylevelconfigurations.spec", "--recursive"]);
    assert!(explained.contains("nominalConcurrencyShares"), "{explained}");
    let group = "--api-group=flowcontrol.apiserver.k8s.io";
    let kinds = server.kubectl_does(&["api-resources", group, "-o", "name", "--sort-by", "name"]);
    let expected =
        "flowschemas.flowcontrol.apiserver.k8s.io\nprioritylevelconfigurations.flowcontrol.apiserver.k8s.io\n";
    assert_eq!(kinds, expected);
    let versions = server.kubectl_does(&["api-versions"]);
    for version in ["v1", "v1beta1", "v1beta2", "v1beta3"] {
        assert!(versions.lines().any(|line| line == format!("flowcontrol.apiserver.k8s.io/{version}")), "{versions}");
    }
    let version = server.kubectl_does(&["version"]);
    assert!(version.contains("Server Version: v1."), "{version}");
}

#[test]
fn get_with_a_watch_prints_what_happens() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    server.kubectl_reads(&schema("watched", "workload-low", 700), &["create", "-f", "-"]);
    let watch = ["get", "flowschema", "watched", "-w", "--output-watch-events", "--no-headers"];
    let mut child = server.kubectl().args(watch).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut event = || lines.next().unwrap().split_whitespace().next().unwrap().to_owned();
    assert_eq!(event(), "ADDED");
    server.kubectl_does(&["delete", "flowschema", "watched"]);
    // The server may have written the status in between.
    let last = std::iter::repeat_with(event).find(|event| event != "MODIFIED");
    assert_eq!(last.as_deref(), Some("DELETED"));
    child.kill().unwrap();
    end(child);
}

#[test]
fn wait_sees_conditions_and_deletions() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    server.kubectl_reads(&schema("sound", "workload-low", 700), &["create", "-f", "-"]);
    server.kubectl_reads(&schema("dangling", "not-there", 701), &["create", "-f", "-"]);
    server.kubectl_does(&["wait", "--for=condition=Dangling=False", "flowschema/sound", "--timeout=60s"]);
    server.kubectl_does(&["wait", "--for=condition=Dangling", "flowschema/dangling", "--timeout=60s"]);
    let finalizers = |list: &str| format!("{{\"metadata\":{{\"finalizers\":{list}}}}}");
    let patch = |list: &str| {
        server.kubectl_does(&["patch", "flowschema", "sound", "--type=merge", "-p", &finalizers(list)]);
    };
    patch("[\"example.com/hold\"]");
    server.kubectl_does(&["delete", "flowschema", "sound", "--wait=false"]);
    let left = server.kubectl_does(&["get", "flowschema", "sound", "-o", "jsonpath={.metadata.deletionTimestamp}"]);
    assert!(left.ends_with('Z'), "{left}");
    let wait = ["wait", "--for=delete", "flowschema/sound", "--timeout=60s"];
    let waiting = server.kubectl().args(wait).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    patch("null");
    let ended = end(waiting);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
