//! Audit logs as clouds and tools hand them out: hand-made samples of each form, all about the same three requests.

use std::path::Path;

use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;
use evenkeel_replay::{Format, Input, Replay, Report, Settings};

fn replayed(name: &str) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs").join(name);
    let mut input = Input::open(&path, None).unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(input.format(), Format::Export), "{name}: {}", input.format());
    assert!(input.format().is_kubernetes());
    let preset = Preset::Kubernetes;
    let mut replay = Replay::new(Settings::new(preset, 600), vec![Objects::from(preset)], None);
    replay.read(&mut input, |_, _| {});
    replay.finish()
}

/// TL-31
#[test]
fn every_export_has_the_same_requests() {
    for name in [
        "eks-filter-log-events.json",
        "eks-s3-export.log",
        "eks-insights.json",
        "eks-insights-console.json",
        "eks-firehose.json",
        "aks-storage-account.json",
        "aks-event-hub.json",
        "aks-log-analytics.json",
        "openshift-node-logs.log",
        "gke-logging-read.json",
        "gke-sink.json",
    ] {
        let report = replayed(name);
        let first = report.damaged.first().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!((report.requests, report.damaged.count()), (3, 0), "{name}: {first:?}");
        let mut flows: Vec<_> = report
            .flows
            .iter()
            .map(|flow| {
                (&*flow.names[0].schema, flow.names[0].distinguisher.as_deref().unwrap_or_default(), flow.requests)
            })
            .collect();
        flows.sort_unstable();
        let expected =
            [("service-accounts", "system:serviceaccount:shop:web", 2), ("system-node-high", "system:node:node-1", 1)];
        assert_eq!(flows, expected, "{name}");
        let has_times = !name.starts_with("gke");
        assert_eq!(report.notes.untimed, if has_times { 0 } else { 3 }, "{name}: Google's entries have no durations");
        let seat_seconds: f64 = report.flows.iter().map(|flow| flow.replayed[0].seat_seconds()).sum();
        assert!(!has_times || (seat_seconds - 0.32).abs() < 1e-9, "{name}: {seat_seconds}");
    }
}
