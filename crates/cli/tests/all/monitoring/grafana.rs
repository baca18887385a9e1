//! The Grafana dashboard: its shape, and its queries.

use std::collections::BTreeSet;

use serde_json::Value;

use super::read;

/// A query of the dashboard.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) panel: String,
    pub(super) expression: String,
    /// Whether only Evenkeel has what it asks for.
    pub(super) is_own: bool,
    /// Whether only some gateways show it: those in front of language models, and those of a fleet.
    pub(super) is_of_some: bool,
    /// Whether there is a panel for each level.
    pub(super) is_for_each_level: bool,
}

/// The height and width of a panel, and where it is.
#[derive(Debug, Clone, Copy)]
struct PanelPlace {
    x: u64,
    y: u64,
    width: u64,
    height: u64,
}

const COLUMNS: u64 = 24;

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/grafana/evenkeel.json")).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// Each row with its panels. The panels of a collapsed row are in it; those of an open row come after it.
fn rows(dashboard: &Value) -> Vec<(&Value, Vec<&Value>)> {
    let mut rows: Vec<(&Value, Vec<&Value>)> = Vec::new();
    for panel in list(dashboard, "panels") {
        if panel["type"] == "row" {
            rows.push((panel, list(panel, "panels").iter().collect()));
        } else {
            rows.last_mut().expect("a row comes first").1.push(panel);
        }
    }
    rows
}

pub(super) fn queries() -> Vec<Query> {
    let dashboard = dashboard();
    let mut queries = Vec::new();
    for (row, panels) in rows(&dashboard) {
        for panel in panels {
            for target in list(panel, "targets") {
                queries.push(Query {
                    panel: text(panel, "title").to_owned(),
                    expression: text(target, "expr").to_owned(),
                    is_own: text(row, "title").ends_with("(Evenkeel only)"),
                    is_of_some: ["Language models", "Fleet"].iter().any(|title| text(row, "title").starts_with(title)),
                    is_for_each_level: panel["repeat"] == "level",
                });
            }
        }
    }
    queries
}

/// The queries of the variables.
pub(super) fn variable_queries() -> Vec<String> {
    let dashboard = dashboard();
    let variables = list(&dashboard["templating"], "list").iter().filter(|variable| variable["type"] == "query");
    variables.map(|variable| text(&variable["query"], "query").to_owned()).collect()
}

// === impl PanelPlace ===

impl PanelPlace {
    fn of(panel: &Value) -> Self {
        let number = |name: &str| panel["gridPos"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {panel}"));
        Self { x: number("x"), y: number("y"), width: number("w"), height: number("h") }
    }

    fn overlaps(self, other: Self) -> bool {
        let is_beside = self.x + self.width <= other.x || other.x + other.width <= self.x;
        let is_above = self.y + self.height <= other.y || other.y + other.height <= self.y;
        !is_beside && !is_above
    }
}

#[test]
fn the_dashboard_is_well_formed() {
    let dashboard = dashboard();
    assert_eq!(text(&dashboard, "uid"), "evenkeel");
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 42);
    // An imported dashboard gets an id of its own.
    assert!(dashboard.get("id").is_none());
    let (mut ids, mut titles) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<PanelPlace> = Vec::new();
    for (row, panels) in rows(&dashboard) {
        assert!(ids.insert(row["id"].as_u64().unwrap()), "{row}");
        let is_own = text(row, "title").ends_with("(Evenkeel only)");
        assert_eq!(row["collapsed"], is_own, "{}: a row that is empty on a kube-apiserver is collapsed", row["title"]);
        let mut places = vec![PanelPlace::of(row)];
        for panel in panels {
            let title = text(panel, "title");
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: another panel has its id");
            assert!(titles.insert(title.to_owned()), "two panels are called {title}");
            assert!(text(panel, "description").ends_with('.'), "{title} has no description");
            assert!(!text(&panel["fieldConfig"]["defaults"], "unit").is_empty(), "{title} has no unit");
            assert!(["stat", "timeseries"].contains(&text(panel, "type")), "{title}");
            assert!(!list(panel, "targets").is_empty(), "{title} has no queries");
            let references: BTreeSet<&str> =
                list(panel, "targets").iter().map(|target| text(target, "refId")).collect();
            assert_eq!(references.len(), list(panel, "targets").len(), "{title}");
            for source in list(panel, "targets").iter().chain([panel]) {
                assert_eq!(text(&source["datasource"], "uid"), "${datasource}", "{title}");
            }
            places.push(PanelPlace::of(panel));
        }
        for (index, place) in places.iter().enumerate() {
            assert!(place.x + place.width <= COLUMNS, "{}: {place:?}", row["title"]);
            let others = places[..index].iter().chain(&open);
            assert!(others.clone().all(|other| !place.overlaps(*other)), "{}: {place:?}", row["title"]);
        }
        // The panels of a collapsed row push the others down when it is opened.
        let shown = if row["collapsed"] == true { 1 } else { places.len() };
        open.extend(&places[..shown]);
    }
}

#[test]
fn every_variable_of_a_query_is_declared() {
    let dashboard = dashboard();
    let declared: BTreeSet<&str> =
        list(&dashboard["templating"], "list").iter().map(|variable| text(variable, "name")).collect();
    assert_eq!(declared, BTreeSet::from(["datasource", "instance", "job", "level"]));
    for expression in queries().into_iter().map(|query| query.expression).chain(variable_queries()) {
        for after in expression.split('$').skip(1) {
            let name: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            assert!(name == "__rate_interval" || declared.contains(&*name), "${name} in {expression}");
        }
    }
}
