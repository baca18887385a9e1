//! kubectl as people ask with it who they are, what they may do, and how the server is.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::folder::folder;
use super::served::{Served, no_kubectl};

const VIEWER: [&str; 4] = ["--as", "vera", "--as-group", "evenkeel:viewers"];

#[test]
fn auth_can_i_tells_what_the_user_may_do() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let can = |arguments: &[&str], user: &[&str]| {
        let ended = server.kubectl_ends("", &[&["auth", "can-i"], arguments, user].concat());
        assert!(matches!((ended.code, ended.output.trim()), (Some(0), "yes") | (Some(1), "no")), "{ended:?}");
        ended.code == Some(0)
    };
    for (question, viewer) in [
        (&["list", "flowschemas"][..], true),
        (&["get", "prioritylevelconfigurations", "--subresource=status"], true),
        (&["delete", "flowschemas"], false),
        (&["get", "/metrics"], false),
        (&["get", "/version"], true),
        (&["*", "*"], false),
    ] {
        assert!(can(question, &[]), "{question:?} as the administrator");
        assert_eq!(can(question, &VIEWER), viewer, "{question:?} as a viewer");
    }
    let list = server.kubectl_does(&[&["auth", "can-i", "--list"][..], &VIEWER].concat());
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "flowschemas.flowcontrol.apiserver.k8s.io [] [] [get list watch]";
    assert!(list.lines().any(|line| words(line) == expected), "{list}");
}

#[test]
fn auth_whoami_tells_who_is_asking() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let user = server.kubectl_does(&[&["auth", "whoami", "-o", "jsonpath={.status.userInfo}"][..], &VIEWER].concat());
    assert_eq!(user, r#"{"groups":["evenkeel:viewers","system:authenticated"],"username":"vera"}"#);
}

#[test]
fn get_raw_shows_paths_metrics_and_dumps_to_those_who_may() {
    if no_kubectl() {
        return;
    }
    let folder = folder();
    let tokens = folder.path().join("tokens.csv");
    fs::write(&tokens, "scrape,prometheus,1,\"system:monitoring\"\n").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let server = Served::api(&folder.path().join("data"), &["--token-file", tokens.to_str().unwrap()]);
    let raw = |path: &str| server.kubectl_does(&["get", "--raw", path]);
    let paths: serde_json::Value = serde_json::from_str(&raw("/")).unwrap();
    for path in paths["paths"].as_array().unwrap() {
        assert!(!raw(path.as_str().unwrap()).is_empty(), "{path}");
    }
    let metrics = raw("/metrics");
    for series in [
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"exempt\"}",
        "evenkeel_authentication_failures_total{reason=\"unknown-token\"}",
        "evenkeel_build_info{version=",
        "process_cpu_seconds_total ",
    ] {
        assert!(metrics.contains(&format!("\n{series}")), "{series}: {metrics}");
    }
    let dumps = "/debug/api_priority_and_fairness";
    assert!(raw(&format!("{dumps}/dump_priority_levels")).starts_with("PriorityLevelName,"));
    let requests = raw(&format!("{dumps}/dump_requests?includeRequestDetails=1"));
    assert!(requests.contains("UserName"), "{requests}");
    let refused = server.kubectl_ends("", &[&["get", "--raw", "/metrics"][..], &VIEWER].concat());
    assert!(refused.errors.contains("User \"vera\" cannot get path \"/metrics\""), "{refused:?}");
    let scraped = server.kubectl_ends("", &["--token", "scrape", "get", "--raw", "/metrics"]);
    assert_eq!(scraped.code, Some(0), "{scraped:?}");
}
