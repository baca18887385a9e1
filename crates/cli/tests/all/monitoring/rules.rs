//! The rules: promtool accepts them, every alert fires in a test and stays silent in another one, and every alert is explained.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use evenkeel_api::decode::{Node, Value, parse_yaml};

use super::promtool::promtool;
use super::{file, read};

pub(super) const RULES: &str = "deploy/prometheus/evenkeel.rules.yaml";
const TESTS: &str = "deploy/prometheus/tests";
const PAGE: &str = "docs/alerts.md";
/// The page on the site, where pages keep their places; `cargo xtask site` checks that it has these headings.
const PAGE_ON_SITE: &str = "https://evenkeel.dev/docs/alerts.html";

/// A rule that records or alerts.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) group: String,
    pub(super) name: String,
    pub(super) expression: String,
    is_alert: bool,
    annotations: BTreeMap<String, String>,
}

fn items<'a>(node: &'a Node, name: &str) -> &'a [Node] {
    match node.get(name).map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

fn text(node: &Node, name: &str) -> Option<String> {
    node.get(name)?.as_str().map(str::to_owned)
}

fn document(path: &str) -> Node {
    parse_yaml(read(path).as_bytes()).unwrap_or_else(|error| panic!("{path}: {error:?}")).remove(0).root
}

pub(super) fn rules() -> Vec<Rule> {
    let root = document(RULES);
    let groups = items(&root, "groups").iter();
    let rules = groups.flat_map(|group| items(group, "rules").iter().map(|rule| (text(group, "name").unwrap(), rule)));
    let read = |(group, rule): (String, &Node)| Rule {
        group,
        is_alert: rule.get("alert").is_some(),
        name: text(rule, "alert").or_else(|| text(rule, "record")).unwrap(),
        expression: text(rule, "expr").unwrap(),
        annotations: match rule.get("annotations").map(|node| &node.value) {
            Some(Value::Map(members)) => {
                members.iter().map(|member| (member.key.clone(), member.value.as_str().unwrap().to_owned())).collect()
            }
            _ => BTreeMap::new(),
        },
    };
    rules.map(read).collect()
}

fn alerts() -> Vec<Rule> {
    rules().into_iter().filter(|rule| rule.is_alert).collect()
}

fn tests() -> Vec<String> {
    let files = fs::read_dir(file(TESTS)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.map(|name| format!("{TESTS}/{name}")).collect()
}

#[test]
fn promtool_accepts_the_rules_and_runs_their_tests() {
    let path = |name: &str| file(name).to_str().unwrap().to_owned();
    let (succeeded, said) = promtool(&["check", "rules", "--lint-fatal", &path(RULES)], "");
    assert!(succeeded, "{said}");
    let tests: Vec<String> = tests().iter().map(|name| path(name)).collect();
    let arguments: Vec<&str> = ["test", "rules"].into_iter().chain(tests.iter().map(String::as_str)).collect();
    let (succeeded, said) = promtool(&arguments, "");
    assert!(succeeded && said.matches("SUCCESS").count() == tests.len(), "{said}");
}

#[test]
fn every_alert_fires_in_a_test_and_stays_silent_in_a_healthy_one() {
    let (mut fires, mut is_silent) = (BTreeSet::new(), BTreeSet::new());
    for path in tests() {
        for test in items(&document(&path), "tests") {
            for check in items(test, "alert_rule_test") {
                let alert = text(check, "alertname").unwrap();
                // Only in a test with series of its own is silence worth anything.
                match (items(check, "exp_alerts").len(), path.ends_with("/healthy.yaml")) {
                    (0, true) => is_silent.insert(alert),
                    (0, false) => false,
                    (_, is_healthy) => {
                        assert!(!is_healthy, "{alert} fires in {path}");
                        fires.insert(alert)
                    }
                };
            }
        }
    }
    let all: BTreeSet<String> = alerts().into_iter().map(|alert| alert.name).collect();
    assert!(all.len() > 10);
    assert_eq!(fires, all, "each of these fires in a test of {TESTS}");
    assert_eq!(is_silent, all, "each of these stays silent in {TESTS}/healthy.yaml");
}

#[test]
fn every_alert_says_what_to_do_and_the_page_explains_it() {
    let page = read(PAGE);
    let headings: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alerts = alerts();
    for alert in &alerts {
        let said: Vec<&str> = alert.annotations.keys().map(String::as_str).collect();
        assert_eq!(said, ["action", "description", "runbook_url", "summary", "works_on"], "{}", alert.name);
        let heading = format!("{PAGE_ON_SITE}#{}", alert.name.to_lowercase());
        assert_eq!(alert.annotations["runbook_url"], heading);
        let is_shared = alert.annotations["works_on"] == "Evenkeel and kube-apiserver";
        assert_eq!(is_shared, alert.group == "flow-control", "{}", alert.name);
    }
    let names: BTreeSet<&str> = alerts.iter().map(|alert| &*alert.name).collect();
    assert_eq!(headings, names, "the headings of {PAGE}");
}
