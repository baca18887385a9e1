//! Every recorded work estimate (WE-3 to WE-22).

use evenkeel_engine::digest::{Kubernetes, Query};
use evenkeel_engine::time::Instant;
use evenkeel_engine::work::{Circumstances, Estimator, EstimatorConfig, ListCosting, ObjectCounts, WatchCounts};
use evenkeel_engine::work::{ObjectStatistics, Statistics, WatchInterest, WatchRegistration, level_cap};
use evenkeel_engine::{RequestInfo, WorkEstimate};
use evenkeel_recorded::{Golden, SideBySide, compared, golden_documents, golden_rows};
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
            ..Self::default()
        }
    }
}

/// Some time long after the beginning, so that there is room for what happened before.
const NOW: Instant = Instant::from_nanos(1_000_000_000_000_000);

#[test]
fn every_recorded_estimate_is_made_in_the_same_way() {
    let recorded = golden_rows::<Row>(Golden::Estimate);
    let (kubernetes, estimator) = (Kubernetes::default(), Estimator::default());
    let mut mismatches = Vec::new();
    for (file, rows) in &recorded {
        for (index, row) in rows.iter().enumerate() {
            let comparison = row.compare(&kubernetes, &estimator);
            if !comparison.agrees() {
                let place = format!("{}, row {}: {} {}", file.display(), index + 1, row.method, row.url);
                mismatches.push(format!("{place}\n{comparison}"));
            }
        }
    }
    assert!(mismatches.is_empty(), "{} rows differ:\n{}", mismatches.len(), mismatches.join("\n"));
    compared("work estimates", recorded.iter().map(|(_, rows)| rows.len()).sum());
}

impl Row {
    fn compare(&self, kubernetes: &Kubernetes, estimator: &Estimator) -> SideBySide {
        let mut objects = ObjectCounts::default();
        for stat in &self.stats {
            let then = NOW + -stat.age_ns;
            objects.set(&stat.resource, stat.object_count, stat.estimated_average_object_size_bytes, then);
        }
        let mut watches = WatchCounts::default();
        let mut registrations: Vec<WatchRegistration> = Vec::new();
        for watch in &self.watches {
            let request = kubernetes.digest("GET", &watch.url).expect("a watch");
            let query = Query::of_target(&watch.url);
            registrations.extend((0..watch.count).filter_map(|_| watches.register(&request, query)));
        }
        let recorded = self.request_info.as_ref().map(RequestInfo::from);
        let circumstances = Circumstances {
            now: NOW,
            level_cap: (self.max_seats != 0).then_some(self.max_seats),
            objects: &objects,
            watches: &watches,
            consistent_reads_from_cache: self.consistent_read_from_cache,
        };
        let estimate = estimator.estimate(recorded.as_ref(), Query::of_target(&self.url), &circumstances);

        let mut comparison = SideBySide::default();
        let interested = recorded.as_ref().map_or(0, |request| watches.interested(request));
        comparison.same("watches of the object", &self.watch_count, &interested);
        comparison.same("estimate", &self.result, &Outcome::from(estimate));
        if let Some(recorded) = recorded {
            comparison.same("request", &Ok(recorded), &kubernetes.digest(&self.method, &self.url));
        }
        for registration in registrations {
            watches.forget(registration);
        }
        comparison.same("no watch is left when all have ended", &true, &watches.is_empty());
        comparison
    }
}

#[test]
fn the_recorded_parameters_are_our_defaults() {
    let recorded = golden_documents::<Value>(Golden::EstimateConfig);
    for (file, recorded) in &recorded {
        compare_parameters(recorded).assert(file.display());
    }
}

fn compare_parameters(recorded: &Value) -> SideBySide {
    let mut comparison = SideBySide::default();
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
        comparison.same(pointer, &recorded.pointer(pointer), &Some(&value));
    }
    for (pointer, value) in [
        ("/list/bytesPerSeat", bytes_per_seat),
        ("/list/objectsPerSeat", objects_per_seat),
        ("/mutating/watchesPerSeat", config.watches_per_seat),
    ] {
        comparison.same(pointer, &recorded.pointer(pointer).and_then(Value::as_f64), &Some(value));
    }
    let part_of_level = recorded["priorityLevelMaxSeatsPercent"].as_f64().expect("a part of the level");
    comparison.close("/priorityLevelMaxSeatsPercent", part_of_level * 1e6, level_cap(1_000_000, 1).into(), 1e-6);
    let stale_after = recorded["staleAfterNs"].as_i64().expect("a time");
    let mut objects = ObjectCounts::default();
    objects.set("pods", 1, 1, NOW);
    let is_stale = |age| objects.statistics("pods", "", NOW + age) == Statistics::Stale;
    let around = (is_stale(stale_after), is_stale(stale_after + 1));
    comparison.same("stale at /staleAfterNs and right after", &(false, true), &around);
    comparison
}
