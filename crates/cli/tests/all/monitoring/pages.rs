//! docs/metrics.md is what the declarations make, and promtool finds nothing wrong with any page of metrics.

use std::fmt::Write;
use std::fs;

use evenkeel::metrics::{Metric, MetricKind, MetricsPage, register_process};
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
use http::{HeaderMap, HeaderValue};
use prometheus_client::registry::Registry;
use tempfile::TempDir;

use super::promtool::promtool;
use super::station::{Gateway, scrape_api};
use super::{file, read};
use crate::child::{Running, address_after};

const PAGE: &str = "docs/metrics.md";

/// Each section with the beginnings of its metrics' names. A metric is in the first section that it fits in.
const SECTIONS: [(&str, &[&str]); 5] = [
    (
        "Flow control, beyond Kubernetes",
        &["evenkeel_fleet_", "evenkeel_flow_", "evenkeel_limit_", "evenkeel_long_running_", "evenkeel_priority_level_"],
    ),
    ("API", &["evenkeel_api_", "evenkeel_store_"]),
    ("Gateway", &["evenkeel_"]),
    ("Flow control", &["apiserver_"]),
    ("Process", &["process_"]),
];
/// The order in which the page has them.
const ORDER: [&str; 5] = ["Gateway", "API", "Flow control", "Flow control, beyond Kubernetes", "Process"];

/// What the section with Kubernetes' metrics begins with.
const OF_KUBERNETES: &str = "These metrics have Kubernetes' names and descriptions. Start with the ones in [What to \
                             watch](operations.md#what-to-watch).\n\n";

/// The name as Prometheus shows it.
fn shown(metric: &Metric) -> String {
    let end = if metric.kind == MetricKind::Counter { "_total" } else { "" };
    format!("{}{end}", metric.name)
}

/// The section that a metric belongs to.
fn section(metric: &Metric) -> &'static str {
    let fits = |(_, starts): &&(&str, &[&str])| starts.iter().any(|start| metric.name.starts_with(start));
    SECTIONS.iter().find(fits).unwrap_or_else(|| panic!("{} is in no section", metric.name)).0
}

/// The page about all metrics.
fn reference() -> String {
    let mut page = "# Metrics\n\n\
        The gateway has these metrics at `/metrics` of its [admin endpoint](gateway.md#admin-endpoint). The format is the text format of \
        Prometheus\nunless the `Accept` header asks for OpenMetrics. With `--data-dir`, the page also has the section \
        *API*.\n\nThe API has metrics at `/metrics` of its own listener, also with `--api-only`, for authorized users: its own, those of its \
        flow control,\n`evenkeel_build_info`, `evenkeel_authentication_failures_total` and those of the process. In one process with a \
        gateway, this is the only\nplace with the figures of its own flow control and authentication: the gateway has metrics of the same \
        names.\n\n[Observing Evenkeel](observe.md) explains how to use the metrics, and [Alerts](alerts.md) describes alerts.\n\n\
        This page is generated from the declarations of the metrics.\n"
        .to_owned();
    let own = evenkeel_gateway::observe::metrics::declared().chain(evenkeel_apiserver::declared_metrics());
    let mut metrics: Vec<Metric> = own.chain(evenkeel::metrics::declared()).collect();
    metrics.sort_by_key(shown);
    for title in ORDER {
        let opening = if title == "Flow control" { OF_KUBERNETES } else { "" };
        write!(page, "\n## {title}\n\n{opening}| metric | type | labels | meaning |\n|---|---|---|---|\n").unwrap();
        for metric in metrics.iter().filter(|metric| section(metric) == title) {
            let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let help = metric.help.replace('|', "\\|");
            writeln!(page, "| `{}` | {} | {} | {help} |", shown(metric), metric.kind.as_str(), labels.join(", "))
                .unwrap();
        }
    }
    page
}

#[test]
fn the_committed_page_is_up_to_date() {
    let generated = reference();
    if std::env::var_os("EVENKEEL_UPDATE").is_some() {
        fs::write(file(PAGE), &generated).unwrap();
    }
    assert!(
        read(PAGE) == generated,
        "{PAGE} is not what the declarations make; to update it, run\n\
         EVENKEEL_UPDATE=1 cargo test -p evenkeel-cli --test all monitoring"
    );
}

/// The metrics of a service that uses the library.
fn library_page() -> String {
    let flow = FlowControl::builder().attribute_flows().drive_by_hand().build();
    let (user, request) = (User::new("alice", ["system:authenticated"]), RequestInfo::default());
    drop(flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT));
    let mut registry = Registry::default();
    flow.register_metrics(&mut registry).unwrap();
    register_process(&mut registry);
    let headers: HeaderMap = [(http::header::ACCEPT, HeaderValue::from_static("text/plain"))].into_iter().collect();
    MetricsPage::new(&registry, &headers).unwrap().text
}

/// The metrics of an API without a gateway.
fn api_only_page() -> String {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let arguments = ["serve", "--api-only", "--api-listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let mut process = Running::start(&arguments);
    scrape_api(address_after(&process.output_until("API ready on"), "API ready on https://"), &data)
}

#[test]
fn promtool_finds_nothing_wrong_with_any_page() {
    let gateway = Gateway::under_load();
    for (whose, page) in [
        ("the gateway", gateway.page()),
        ("its API", gateway.api_page()),
        ("an API without a gateway", api_only_page()),
        ("a service that uses the library", library_page()),
    ] {
        assert!(page.contains("\napiserver_flowcontrol_") && page.contains("\nprocess_"), "{whose}: {page}");
        let (_, said) = promtool(&["check", "metrics"], &page);
        // Kubernetes has chosen its own names, and some of them are not what promtool likes.
        let complaints: Vec<&str> = said.lines().filter(|line| !line.starts_with("apiserver_")).collect();
        assert!(complaints.is_empty(), "{whose}: {complaints:#?}");
    }
    // It does find what is wrong.
    let (succeeded, said) =
        promtool(&["check", "metrics"], "# TYPE evenkeel_wrong_total gauge\nevenkeel_wrong_total 1\n");
    assert!(!succeeded && said.contains("evenkeel_wrong_total"), "{said}");
}
