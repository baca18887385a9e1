//! A page of metrics, as far as expressions depend on it: names and labels.

use std::collections::{BTreeMap, BTreeSet};

use super::promql::Used;

/// The labels of each metric.
#[derive(Debug, Default, Clone)]
pub(super) struct Scrape(BTreeMap<String, BTreeSet<String>>);

// === impl Scrape ===

impl Scrape {
    /// Adds what a page shows. The values of its labels contain no `="`.
    pub(super) fn add(&mut self, page: &str) {
        for line in page.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (name, rest) = line.split_once(['{', ' ']).unwrap_or_else(|| panic!("no series: {line}"));
            let labels = self.0.entry(name.to_owned()).or_default();
            if line.as_bytes()[name.len()] == b'{' {
                let mut pieces: Vec<&str> = rest.split("=\"").collect();
                pieces.pop();
                labels.extend(pieces.iter().filter_map(|piece| piece.rsplit([',', '{']).next()).map(str::to_owned));
            }
        }
    }

    /// Adds a series that Prometheus makes itself, or a recording rule.
    pub(super) fn add_made(&mut self, name: &str, labels: &[&str]) {
        self.0.entry(name.to_owned()).or_default().extend(labels.iter().map(ToString::to_string));
    }

    /// What an expression needs and is not there.
    pub(super) fn missing_for(&self, expression: &str) -> Vec<String> {
        // What Prometheus adds to all series.
        let common = ["job", "instance"];
        let used = Used::of(expression);
        let mut missing = Vec::new();
        let mut known: BTreeSet<&str> = common.into_iter().collect();
        for (name, labels) in &used.selectors {
            let Some(found) = self.0.get(name) else {
                missing.push(name.clone());
                continue;
            };
            known.extend(found.iter().map(String::as_str));
            let lacks = |label: &&String| !found.contains(*label) && !common.contains(&label.as_str());
            missing.extend(labels.iter().filter(lacks).map(|label| format!("{name}{{{label}}}")));
        }
        missing.extend(used.groupings.iter().filter(|label| !known.contains(label.as_str())).cloned());
        missing
    }
}

#[test]
fn what_a_page_does_not_show_is_missing() {
    let mut scrape = Scrape::default();
    scrape.add("# TYPE a gauge\na{x=\"1\",y=\"{2}, 3\"} 4\nb 5\n");
    assert_eq!(scrape.missing_for("sum by (job, x) (rate(a{y=~\"$y\", instance=\"c\"}[5m])) / on (y) b"), [""; 0]);
    assert_eq!(scrape.missing_for("sum by (x) (b) or a{z=\"1\"} or c"), ["a{z}", "c"]);
    assert_eq!(scrape.missing_for("sum by (x) (b)"), ["x"]);
}
