//! Every metric of the specification is there, with its name, type, labels, buckets and help (OB-1 to OB-8).
use crate::observed;

use std::collections::{BTreeMap, BTreeSet};

use evenkeel::division::Borrowing;
use evenkeel::metrics::{RegisterError, register_named};
use evenkeel::status::QueuingDiscipline;
use evenkeel::{FlowControl, PriorityLevelConfiguration};
use evenkeel_engine::WorkEstimate;
use observed::{Observed, poll, queuing_level, schema, started};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

const DURATIONS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const QUEUE_LENGTHS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const SEATS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
const WATCHES: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0];
const SEAT_UTILIZATION: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const REQUEST_UTILIZATION: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const READ_VS_WRITE: &[f64] = &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const DEMAND: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];

const SERIES: &[&str] = &["flow_schema", "priority_level"];
const LEVEL: &[&str] = &["priority_level"];

/// A metric as the specification has it. Counters go without their ending, as the exposition names their families.
type Row = (&'static str, &'static str, &'static [&'static str], &'static str, &'static [f64]);

const TABLE: &[Row] = &[
    ("rejected_requests", "counter", &["flow_schema", "priority_level", "reason"], "[BETA] ", &[]),
    ("dispatched_requests", "counter", SERIES, "[BETA] ", &[]),
    ("request_dispatch_no_accommodation", "counter", SERIES, "[ALPHA] ", &[]),
    ("current_inqueue_requests", "gauge", SERIES, "[BETA] ", &[]),
    ("current_inqueue_seats", "gauge", SERIES, "[ALPHA] ", &[]),
    ("current_executing_requests", "gauge", SERIES, "[BETA] ", &[]),
    ("current_executing_seats", "gauge", SERIES, "[BETA] ", &[]),
    ("current_r", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("dispatch_r", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("latest_s", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("next_s_bounds", "gauge", &["bound", "priority_level"], "[ALPHA] ", &[]),
    ("next_discounted_s_bounds", "gauge", &["bound", "priority_level"], "[ALPHA] ", &[]),
    ("nominal_limit_seats", "gauge", LEVEL, "[BETA] ", &[]),
    ("lower_limit_seats", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("upper_limit_seats", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("current_limit_seats", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("demand_seats_high_watermark", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("demand_seats_average", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("demand_seats_stdev", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("demand_seats_smoothed", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("target_seats", "gauge", LEVEL, "[ALPHA] ", &[]),
    ("seat_fair_frac", "gauge", &[], "[ALPHA] ", &[]),
    ("request_wait_duration_seconds", "histogram", &["execute", "flow_schema", "priority_level"], "[BETA] ", DURATIONS),
    ("request_execution_seconds", "histogram", &["flow_schema", "priority_level", "type"], "[ALPHA] ", DURATIONS),
    ("request_queue_length_after_enqueue", "histogram", SERIES, "[ALPHA] ", QUEUE_LENGTHS),
    ("work_estimated_seats", "histogram", SERIES, "[ALPHA] ", SEATS),
    ("watch_count_samples", "histogram", SERIES, "[ALPHA] ", WATCHES),
    (
        "priority_level_seat_utilization",
        "histogram",
        &["phase", "priority_level"],
        "[ALPHA] EXPERIMENTAL: ",
        SEAT_UTILIZATION,
    ),
    (
        "priority_level_request_utilization",
        "histogram",
        &["phase", "priority_level"],
        "[ALPHA] EXPERIMENTAL: ",
        REQUEST_UTILIZATION,
    ),
    (
        "read_vs_write_current_requests",
        "histogram",
        &["phase", "request_kind"],
        "[ALPHA] EXPERIMENTAL: ",
        READ_VS_WRITE,
    ),
    ("demand_seats", "histogram", LEVEL, "[ALPHA] EXPERIMENTAL: ", DEMAND),
];

/// A family of the exposition.
#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<Vec<String>>,
    buckets: BTreeSet<Vec<String>>,
}

/// Reads the text format: families, each with the sets of labels that its series have.
fn families(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut name, mut bounds) = (String::new(), Vec::new());
    for line in page.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (family, help) = rest.split_once(' ').unwrap();
            family.clone_into(&mut name);
            assert!(families.insert(name.clone(), Family { help: help.to_owned(), ..Family::default() }).is_none());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            rest.rsplit_once(' ').unwrap().1.clone_into(&mut families.get_mut(&name).unwrap().kind);
        } else {
            let series = line.rsplit_once(' ').unwrap().0;
            assert!(series.starts_with(&name), "{line} is not of {name}");
            let labels = series.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
            let pairs: Vec<_> = labels.split(',').filter_map(|label| label.split_once('=')).collect();
            let family = families.get_mut(&name).unwrap();
            match pairs.iter().find(|(key, _)| *key == "le") {
                Some((_, bound)) => {
                    bounds.push(bound.trim_matches('"').to_owned());
                    if bounds.last().is_some_and(|bound| bound == "+Inf") {
                        family.buckets.insert(std::mem::take(&mut bounds));
                    }
                }
                None => {
                    family.labels.insert(pairs.iter().map(|(key, _)| (*key).to_owned()).collect());
                }
            }
        }
    }
    families
}

#[test]
fn ob_1_to_ob_5_every_metric_of_the_specification() {
    let observed = Observed::new(4, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo")]);
    // Two seats: one runs, a wide one is blocked, another waits behind it, the next is turned away, one gives up.
    let first = started(observed.arrive("a", WorkEstimate::ONE_SEAT));
    let mut wide = observed.arrive_as("a", "POST", "/x", WorkEstimate::seats(2), |r| r.interested_watches(3));
    assert!(poll(&mut wide).is_pending());
    observed.millis(20_000);
    assert!(poll(&mut wide).is_ready());
    drop(first);
    let families = families(&observed.page());
    for (name, kind, labels, help, bounds) in TABLE {
        let full = format!("apiserver_flowcontrol_{name}");
        let family = families.get(&full).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(family.kind, *kind, "{name}");
        assert!(family.help.starts_with(help), "{name}: {}", family.help);
        assert!(family.help.contains("EXPERIMENTAL") == help.contains("EXPERIMENTAL"), "{name}");
        let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
        assert_eq!(family.labels.iter().collect::<Vec<_>>(), [&labels], "{name}");
        for found in &family.buckets {
            assert_eq!(found.last().map(String::as_str), Some("+Inf"));
            let found: Vec<f64> = found[..found.len() - 1].iter().map(|bound| bound.parse().unwrap()).collect();
            assert_eq!(found, *bounds, "{name}");
        }
        assert_eq!(family.buckets.len(), usize::from(*kind == "histogram"), "{name}");
    }
    // The one that needs years to happen is announced, and the two of OB-8 have no prefix.
    let mut names: BTreeSet<String> = TABLE.iter().map(|row| format!("apiserver_flowcontrol_{}", row.0)).collect();
    names.insert("apiserver_flowcontrol_epoch_advance".to_owned());
    // What Kubernetes does not have begins with another name (BM-4).
    let ours = ["evenkeel_priority_level_mode", "evenkeel_newcomer_seats", "evenkeel_flow_schema_dangling"];
    names.extend(ours.map(str::to_owned));
    let without_series = |name: &str| {
        let always = ["evenkeel_limit_", "evenkeel_shadow_", "evenkeel_canary_", "evenkeel_revoked_"];
        always.iter().any(|start| name.starts_with(start))
            || cfg!(feature = "fleet") && name.starts_with("evenkeel_fleet_")
    };
    let announced = evenkeel::metrics::declared().filter(|metric| without_series(metric.name));
    names.extend(announced.map(|metric| metric.name.to_owned()));
    names.extend(["inflight", "inqueue"].map(|which| format!("apiserver_current_{which}_requests")));
    assert_eq!(families.keys().cloned().collect::<BTreeSet<_>>(), names);
    assert_eq!(families["apiserver_flowcontrol_epoch_advance"].kind, "counter");
    assert!(families["apiserver_flowcontrol_epoch_advance"].help.starts_with("[ALPHA] "));
}

#[test]
fn ob_2_counters_end_in_total_and_label_values_are_those_of_the_specification() {
    let observed = Observed::new(4, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo")]);
    drop(started(observed.arrive("a", WorkEstimate::ONE_SEAT)));
    let page = observed.page();
    for line in [
        r#"apiserver_flowcontrol_dispatched_requests_total{flow_schema="fs",priority_level="demo"} 1"#,
        r#"apiserver_flowcontrol_next_s_bounds{bound="min",priority_level="demo"} 0.0"#,
        r#"apiserver_flowcontrol_next_s_bounds{bound="max",priority_level="demo"} 0.0"#,
        r#"apiserver_flowcontrol_priority_level_seat_utilization_count{phase="executing",priority_level="demo"} 0"#,
        r#"apiserver_flowcontrol_priority_level_request_utilization_count{phase="waiting",priority_level="demo"} 0"#,
        r#"apiserver_flowcontrol_read_vs_write_current_requests_count{phase="executing",request_kind="mutating"} 0"#,
        r#"apiserver_current_inqueue_requests{request_kind="readOnly"} 0"#,
        r#"apiserver_flowcontrol_request_execution_seconds_count{flow_schema="fs",priority_level="demo",type="regular"} 1"#,
    ] {
        assert!(page.lines().any(|found| found == line), "no line {line} in\n{page}");
    }
}

#[test]
fn bm_4_a_metric_and_the_status_name_the_modes_of_each_level() {
    let level = || PriorityLevelConfiguration::builder("tenants").limited(|l| l.queue(|q| q.queues(8).hand_size(2)));
    let per_flow = level().annotation("evenkeel.dev/queuing", "per-flow").build();
    let flow = FlowControl::builder().objects(per_flow).drive_by_hand().build();
    let modes = || {
        let mut registry = Registry::default();
        flow.register_metrics(&mut registry).unwrap();
        let mut page = String::new();
        text::encode(&mut page, &registry).unwrap();
        let lines = page.lines().filter_map(|line| line.strip_prefix("evenkeel_priority_level_mode"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let line = |borrowing: &str, level: &str, queuing: &str| {
        format!("{{borrowing=\"{borrowing}\",priority_level=\"{level}\",queuing=\"{queuing}\"}} 1")
    };
    let tenants = || flow.status().into_iter().find(|level| level.name == "tenants").unwrap();
    assert!(modes().contains(&line("immediate", "tenants", "per-flow")), "{:?}", modes());
    assert!(modes().contains(&line("immediate", "exempt", "none")), "{:?}", modes());
    let status = serde_json::to_value(tenants()).unwrap();
    assert_eq!((&status["queuing"], &status["borrowing"]), (&"per-flow".into(), &"immediate".into()));

    // Both change, and so does what is shown. Each level is shown once.
    flow.apply(level().build()).unwrap();
    flow.set_borrowing(Borrowing::Periodic);
    assert!(modes().contains(&line("periodic", "tenants", "shuffle-sharded")), "{:?}", modes());
    assert_eq!(modes().len(), flow.status().len());
    let status = tenants();
    assert_eq!((status.queuing, status.borrowing), (Some(QueuingDiscipline::ShuffleSharded), Borrowing::Periodic));
}

#[test]
fn cc_9_a_metric_names_each_flow_schema_whose_level_is_missing() {
    let observed =
        Observed::new(4, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo"), schema("lost", "gone")]);
    let lines = || {
        let page = observed.page();
        let lines = page.lines().filter_map(|line| line.strip_prefix("evenkeel_flow_schema_dangling"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(), ["{flow_schema=\"lost\",priority_level=\"gone\"} 1"]);
    observed.apply(vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo"), schema("lost", "demo")]);
    assert_eq!(lines(), [""; 0]);
}

#[test]
fn several_flow_controls_in_one_registry_have_names() {
    let flow = || FlowControl::builder().attribute_flows().drive_by_hand().build();
    let [shop, admin, third] = [flow(), flow(), flow()];
    let user = evenkeel::User::new("alice", ["staff"]);
    let request = evenkeel::RequestInfo { verb: "get".into(), path: "/".into(), ..Default::default() };
    for flow in [&shop, &shop, &admin] {
        let attributes = evenkeel::Attributes { user: &user, request: &request };
        drop(started(Box::pin(flow.arrive(attributes, WorkEstimate::ONE_SEAT))));
    }
    let mut registry = Registry::default();
    register_named(&mut registry, [("shop", &shop), ("admin", &admin)]).unwrap();
    let mut page = String::new();
    text::encode(&mut page, &registry).unwrap();
    for line in [
        r#"apiserver_flowcontrol_dispatched_requests_total{flow_control="shop",flow_schema="everyone",priority_level="everyone"} 2"#,
        r#"apiserver_flowcontrol_dispatched_requests_total{flow_control="admin",flow_schema="everyone",priority_level="everyone"} 1"#,
        r#"apiserver_flowcontrol_seat_fair_frac{flow_control="admin"} 0.0"#,
        r#"apiserver_current_inqueue_requests{flow_control="shop",request_kind="readOnly"} 0"#,
    ] {
        assert!(page.lines().any(|found| found == line), "no line {line} in\n{page}");
    }
    let mut seen = BTreeSet::new();
    for line in page.lines() {
        // A line of a series without its value, or the head of a metric: no two are the same.
        let name = if line.starts_with('#') { line } else { line.rsplit_once(' ').unwrap().0 };
        assert!(seen.insert(name), "{name} is there twice");
    }
    // What has a name in one registry has none where it is alone.
    let mut alone = Registry::default();
    shop.register_metrics(&mut alone).unwrap();
    let mut page = String::new();
    text::encode(&mut page, &alone).unwrap();
    assert!(!page.contains("flow_control=") && page.contains("\napiserver_flowcontrol_seat_fair_frac 0.0\n"), "{page}");

    // The same series twice would make the page invalid.
    assert_eq!(third.register_metrics(&mut alone), Err(RegisterError::AlreadyRegistered));
    assert_eq!(register_named(&mut registry, [("third", &third)]), Err(RegisterError::AlreadyRegistered));
    let twice = register_named(&mut Registry::default(), [("shop", &shop), ("shop", &admin)]);
    assert_eq!(twice, Err(RegisterError::DuplicateName("shop".into())));
    let mut prefixed = Registry::with_prefix("app");
    shop.register_metrics(&mut prefixed).unwrap();
    assert_eq!(third.register_metrics(&mut prefixed), Err(RegisterError::AlreadyRegistered));
    // Names that differ are no problem, nor is a flow control that is gone.
    third.register_metrics(alone.sub_registry_with_prefix("third")).unwrap();
    let mut reused = Registry::default();
    flow().register_metrics(&mut reused).unwrap();
    third.register_metrics(&mut reused).unwrap();
}
