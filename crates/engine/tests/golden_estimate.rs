//! Every recorded work estimate (WE-3 to WE-22).

use evenkeel_engine::digest::{Kubernetes, Query};
use evenkeel_engine::time::Instant;
use evenkeel_engine::work::{Circumstances, Estimator, EstimatorConfig, ListCosting, ObjectCounts, WatchCounts};
use evenkeel_engine::work::{WatchInterest, WatchRegistration};
use evenkeel_engine::{RequestInfo, WorkEstimate};
use evenkeel_recorded::{golden, rows};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    method: String,
    url: String,
    request_info: Option<Info>,
    stats: Vec<Stat>,
    watches: Vec<Watch>,
    watch_count: u64,
    max_seats: u32,
    consistent_read_from_cache: bool,
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    is_resource_request: bool,
    path: String,
    verb: String,
    api_prefix: String,
    api_group: String,
    api_version: String,
    namespace: String,
    resource: String,
    subresource: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stat {
    resource: String,
    object_count: i64,
    estimated_average_object_size_bytes: i64,
    age_ns: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Watch {
    url: String,
    count: usize,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Outcome {
    initial_seats: u32,
    final_seats: u32,
    additional_latency_ns: i64,
}

impl From<WorkEstimate> for Outcome {
    fn from(estimate: WorkEstimate) -> Self {
        Self {
            initial_seats: estimate.initial_seats,
            final_seats: estimate.final_seats,
            additional_latency_ns: estimate.additional_latency,
        }
    }
}

impl<'a> From<&'a Info> for RequestInfo<'a> {
    fn from(info: &'a Info) -> Self {
        Self {
            is_resource_request: info.is_resource_request,
            path: info.path.as_str().into(),
            verb: info.verb.as_str().into(),
            api_prefix: info.api_prefix.as_str().into(),
            api_group: info.api_group.as_str().into(),
            api_version: info.api_version.as_str().into(),
            namespace: info.namespace.as_str().into(),
            resource: info.resource.as_str().into(),
            subresource: info.subresource.as_str().into(),
            name: info.name.as_str().into(),
        }
    }
}

/// Some time long after the beginning, so that there is room for what happened before.
const NOW: Instant = Instant::from_nanos(1_000_000_000_000_000);

#[test]
fn every_recorded_estimate_is_made_in_the_same_way() {
    let Some(folder) = golden() else { return };
    let file = folder.join("engine/estimate.jsonl");
    let kubernetes = Kubernetes::default();
    let estimator = Estimator::default();
    let mut mismatches = Vec::new();
    let rows: Vec<Row> = rows(&file);
    for (index, row) in rows.iter().enumerate() {
        let mut objects = ObjectCounts::default();
        for stat in &row.stats {
            let then = NOW + -stat.age_ns;
            objects.set(&stat.resource, stat.object_count, stat.estimated_average_object_size_bytes, then);
        }
        let mut watches = WatchCounts::default();
        let mut registrations: Vec<WatchRegistration> = Vec::new();
        for watch in &row.watches {
            let request = kubernetes.digest("GET", &watch.url).unwrap();
            let query = Query::of_target(&watch.url);
            registrations.extend((0..watch.count).filter_map(|_| watches.register(&request, query)));
        }

        let recorded = row.request_info.as_ref().map(RequestInfo::from);
        let digested = kubernetes.digest(&row.method, &row.url).unwrap();
        let circumstances = Circumstances {
            now: NOW,
            level_cap: (row.max_seats != 0).then_some(row.max_seats),
            objects: &objects,
            watches: &watches,
            consistent_reads_from_cache: row.consistent_read_from_cache,
        };
        let estimate = estimator.estimate(recorded.as_ref(), Query::of_target(&row.url), &circumstances);
        let watch_count = recorded.as_ref().map_or(0, |request| watches.interested(request));
        let actual = (watch_count, Outcome::from(estimate), recorded.as_ref().unwrap_or(&digested) == &digested);
        if (actual.0, &actual.1, actual.2) != (row.watch_count, &row.result, true) {
            mismatches.push(format!(
                "{}:{}: {} {}\n  recorded watches={} {:?} same request=true\n  actual   watches={} {:?} same request={}",
                file.display(),
                index + 1,
                row.method,
                row.url,
                row.watch_count,
                row.result,
                actual.0,
                actual.1,
                actual.2,
            ));
        }
        for registration in registrations {
            watches.forget(registration);
        }
        assert!(watches.is_empty(), "all watches of row {} are forgotten", index + 1);
    }
    assert!(mismatches.is_empty(), "{} of {} rows:\n{}", mismatches.len(), rows.len(), mismatches.join("\n"));
    println!("{} rows compared", rows.len());
}

#[test]
fn the_recorded_parameters_are_our_defaults() {
    let Some(folder) = golden() else { return };
    let recorded: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("engine/estimate_config.json")).unwrap()).unwrap();
    let config = EstimatorConfig::default();
    let ListCosting::BySize { bytes_per_seat, cache_bytes_max, object_bytes_assumed } = config.list_costing else {
        panic!("lists are not costed by size")
    };
    let ListCosting::ByCount { objects_per_seat } = EstimatorConfig::by_count().list_costing else {
        panic!("lists are not costed by count")
    };
    for (pointer, value) in [
        ("/featureGateSizeBasedListEstimate", json!(true)),
        ("/featureGateWatchList", json!(config.watch_costs_like_list)),
        ("/list/cacheMaxMemoryBytes", json!(cache_bytes_max)),
        ("/list/maxObjectSizeBytes", json!(object_bytes_assumed)),
        ("/list/staleObjectCount", json!(config.objects_assumed)),
        ("/maximumListSeatsLimit", json!(config.list_seats_max)),
        ("/maximumMutatingSeatsLimit", json!(config.mutating_seats_max)),
        ("/minimumSeats", json!(config.seats_min)),
        ("/mutating/enabled", json!(config.mutating_costs_by_watches)),
        ("/mutating/eventAdditionalDurationNs", json!(config.event_duration)),
    ] {
        assert_eq!(recorded.pointer(pointer), Some(&value), "{pointer}");
    }
    for (pointer, value) in [
        ("/list/bytesPerSeat", bytes_per_seat),
        ("/list/objectsPerSeat", objects_per_seat),
        ("/mutating/watchesPerSeat", config.watches_per_seat),
    ] {
        assert_eq!(recorded.pointer(pointer).and_then(Value::as_f64), Some(value), "{pointer}");
    }
}
