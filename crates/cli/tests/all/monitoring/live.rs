//! Every rule and every query of the dashboard finds data: in a gateway under load, and where they are said to work for a
//! kube-apiserver, in the metrics that a real one has shown.

use super::OF_FLEET;
use super::grafana;
use super::rules;
use super::scrape::Scrape;
use super::station::{Gateway, Prometheus, recorded};

/// What a Prometheus makes itself.
const MADE: [(&str, &[&str]); 2] = [("up", &[]), ("ALERTS", &["alertname", "alertstate"])];

/// What only a gateway in front of language models shows, as the catalogue of metrics has it.
const OF_MODELS: [(&str, &[&str]); 5] = [
    ("evenkeel_llm_time_to_first_token_seconds_bucket", &["le", "model"]),
    ("evenkeel_llm_tokens_total", &["kind", "model", "user"]),
    ("evenkeel_request_cost_total", &["flow_schema", "priority_level", "unit"]),
    ("evenkeel_request_cost_expected_total", &["flow_schema", "priority_level", "unit"]),
    ("evenkeel_revoked_requests_total", &["priority_level"]),
];

/// What a limit shows that has tried another one and has seen the throughput fall.
const OF_LIMIT: (&str, &[&str]) = ("evenkeel_limit_ceiling_seats", &[]);

/// A query as Grafana sends it.
fn sent(query: &grafana::Query, job: &str, level: &str) -> String {
    let level = if query.is_for_each_level { level } else { ".+" };
    let expression = query.expression.replace("$job", job).replace("$instance", ".+").replace("$level", level);
    expression.replace("$__rate_interval", "30s")
}

fn assert_known(scrape: &Scrape, place: &str, what: &str, expression: &str) {
    let missing = scrape.missing_for(expression);
    assert!(missing.is_empty(), "{what} uses what {place} does not show: {missing:?}");
}

#[test]
fn rules_and_queries_find_data_in_a_gateway_and_in_a_kube_apiserver() {
    let gateway = Gateway::under_load();
    let prometheus = Prometheus::start(&gateway);
    for job in ["evenkeel", "evenkeel-api", "kube-apiserver"] {
        prometheus.wait_for("it is scraped", &format!("up{{job=\"{job}\"}} == 1"));
    }

    for query in grafana::queries().into_iter().filter(|query| !query.is_of_some) {
        let (own, kube) = (sent(&query, "evenkeel.*", "web"), sent(&query, "kube-apiserver", "batch"));
        prometheus.wait_for(&query.panel, &own);
        if !query.is_own {
            prometheus.wait_for(&query.panel, &kube);
        }
    }
    for rule in rules::rules().iter().filter(|rule| rule.group == "flow-control-recording") {
        for job in ["evenkeel", "kube-apiserver"] {
            prometheus.wait_for("the rule records", &format!("{}{{job=\"{job}\"}}", rule.name));
        }
    }
    // They would fire if this went on.
    for alert in [
        "EvenkeelDanglingFlowSchema",
        "EvenkeelTooManyLongRunning",
        "FlowControlCatchAllInUse",
        "FlowControlConcurrencyLimit",
        "FlowControlQueueFull",
    ] {
        prometheus.wait_for("the alert is pending", &format!("ALERTS{{job=\"evenkeel\", alertname=\"{alert}\"}}"));
    }
    // What was recorded: its level `batch` may not borrow, and has twelve requests waiting beside idle seats of others.
    let idle =
        "ALERTS{alertname=\"FlowControlSeatsIdleWhileRequestsWait\", job=\"kube-apiserver\", priority_level=\"batch\"}";
    prometheus.wait_for("the alert is pending", idle);
    let groups = prometheus.ask("/api/v1/rules")["groups"].as_array().cloned().unwrap();
    for rule in groups.iter().flat_map(|group| group["rules"].as_array().unwrap()) {
        assert_eq!(rule["health"], "ok", "{rule}");
    }

    let (mut own, mut kube) = (Scrape::default(), Scrape::default());
    own.add(&gateway.page());
    own.add(&gateway.api_page());
    kube.add(&recorded());
    for (name, labels) in MADE {
        own.add_made(name, labels);
        kube.add_made(name, labels);
    }
    for (name, labels) in OF_MODELS.into_iter().chain(OF_FLEET).chain([OF_LIMIT]) {
        own.add_made(name, labels);
    }
    for query in grafana::queries() {
        assert_known(&own, "the gateway", &query.panel, &query.expression);
        if !query.is_own {
            assert_known(&kube, "a kube-apiserver", &query.panel, &query.expression);
        }
    }
    for rule in rules::rules() {
        // What is recorded has these labels at most.
        for scrape in [&mut own, &mut kube] {
            if rule.group == "flow-control-recording" {
                scrape.add_made(&rule.name, &["priority_level", "reason"]);
            }
        }
        assert_known(&own, "the gateway", &rule.name, &rule.expression);
        if rule.group != "evenkeel" {
            assert_known(&kube, "a kube-apiserver", &rule.name, &rule.expression);
        }
    }
}

#[test]
fn the_variables_of_the_dashboard_ask_for_labels_that_there_are() {
    let mut kube = Scrape::default();
    kube.add(&recorded());
    for query in grafana::variable_queries() {
        let inner = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).unwrap();
        let (expression, label) = inner.rsplit_once(", ").unwrap();
        // The label is asked for as by a grouping.
        assert_known(&kube, "a kube-apiserver", &query, &format!("sum by ({label}) ({expression})"));
    }
}
