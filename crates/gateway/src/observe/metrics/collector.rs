//! Writes the gateway's counters at a scrape.

use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::{CLASSES, GatewayMetrics, UpstreamFailure};

#[derive(Debug)]
pub(super) struct GatewayCollector(pub(super) GatewayMetrics);

/// A family of counters: its name without `_total`, what it counts, and its series.
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    label: &'a str,
    series: Vec<(&'a str, u64)>,
}

// === impl GatewayCollector ===

impl Collector for GatewayCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let connections = i64::try_from(self.0.connections()).unwrap_or(i64::MAX);
        gauge(&mut encoder, "evenkeel_connections", "Connections of clients")?.encode_gauge(&connections)?;
        for (name, help, value) in [
            (
                "evenkeel_abandoned_requests",
                "Requests that upstreams still work on after their clients disconnected",
                self.0.abandoned_requests(),
            ),
            (
                "evenkeel_buffered_bytes",
                "Bytes of requests and responses that are buffered because they arrive or leave slowly",
                self.0.buffered_bytes(),
            ),
        ] {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            gauge(&mut encoder, name, help)?.encode_gauge(&value)?;
        }
        let stale = i64::from(self.0.0.objects_stale.load(Ordering::Relaxed));
        let help = "Whether the objects come from the last copy, because the store cannot be opened";
        gauge(&mut encoder, "evenkeel_objects_stale", help)?.encode_gauge(&stale)?;
        gauge(&mut encoder, "evenkeel_build_info", "The version that runs")?
            .encode_family(&[("version", env!("CARGO_PKG_VERSION"))])?
            .encode_gauge(&1)?;
        self.counters().iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl GatewayCollector {
    fn counters(&self) -> [Family<'_>; 14] {
        let metrics = &self.0;
        let requests = CLASSES.iter().enumerate();
        let requests = requests.map(|(class, name)| (*name, metrics.sum(|worker| &worker.requests[class])));
        let failures = UpstreamFailure::ALL.into_iter();
        let failures = failures.map(|kind| (kind.as_str(), metrics.sum(|worker| &worker.failures[kind as usize])));
        let applied = metrics.0.objects_applied.load(Ordering::Relaxed);
        let refused = metrics.0.objects_refused.load(Ordering::Relaxed);
        let of = |name, help, label, series| Family { name, help, label, series };
        let lone = |name, help, count| of(name, help, "", vec![("", count)]);
        [
            of("evenkeel_requests", "Responses, by status class", "code", requests.collect()),
            lone("evenkeel_connections_opened", "Connections that were accepted", metrics.sum(|worker| &worker.opened)),
            lone(
                "evenkeel_connections_refused",
                "Connections that were closed because there are too many",
                metrics.sum(|worker| &worker.refused),
            ),
            lone(
                "evenkeel_clients_refused",
                "Connections and streams that were refused because their client has too many",
                metrics.sum(|worker| &worker.clients_refused),
            ),
            lone(
                "evenkeel_clients_too_slow",
                "Requests that were ended because their client sent or read too slowly",
                metrics.sum(|worker| &worker.slow_clients),
            ),
            lone(
                "evenkeel_requests_abandoned",
                "Requests whose client disconnected while an upstream worked on them",
                metrics.sum(|worker| &worker.abandoned),
            ),
            of("evenkeel_upstream_failures", "Failures of upstreams, by kind", "kind", failures.collect()),
            lone(
                "evenkeel_upstream_ejections",
                "Upstreams that were taken out of the rotation",
                metrics.sum(|worker| &worker.ejections),
            ),
            lone("evenkeel_upstream_retries", "Requests that were retried", metrics.sum(|worker| &worker.retries)),
            of(
                "evenkeel_objects_changes",
                "Changes of the objects, and what came of them",
                "outcome",
                vec![("applied", applied), ("refused", refused)],
            ),
            of(
                "evenkeel_jwt_key_fetches",
                "Fetches of the keys of signed tokens, and what came of them",
                "outcome",
                metrics.identity().key_fetches().counts(),
            ),
            of(
                "evenkeel_authentication_failures",
                "Requests that were not authenticated, by reason",
                "reason",
                metrics.identity().denials(),
            ),
            of(
                "evenkeel_access_log_lines",
                "Lines of the access log, and whether they were written or lost",
                "outcome",
                vec![("written", metrics.access_log().lines_written()), ("lost", metrics.access_log().lines_lost())],
            ),
            of(
                "evenkeel_settings_changes",
                "Changes of the settings while the gateway runs, and what came of them",
                "outcome",
                vec![
                    ("applied", metrics.0.settings_applied.load(Ordering::Relaxed)),
                    ("refused", metrics.0.settings_refused.load(Ordering::Relaxed)),
                ],
            ),
        ]
    }
}

fn gauge<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)
}

// === impl Family ===

impl Family<'_> {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Counter)?;
        for (value, count) in &self.series {
            if self.label.is_empty() {
                family.encode_counter::<NoLabelSet, _, u64>(count, None)?;
            } else {
                let labels = [(self.label, *value)];
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
            }
        }
        Ok(())
    }
}
