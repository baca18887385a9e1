//! Writes the gateway's counters at a scrape.

use std::fmt;
use std::iter::once;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use evenkeel::metrics::{Metric, MetricKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::catalogue as names;
use super::{CLASSES, ExtProcOutcome, GatewayMetrics, UpstreamFailure};
use crate::identity::IdentityCounts;
use crate::llm::{FirstTokenSeries, TokenSeries, whole};
use crate::observe::Readiness;

#[derive(Debug)]
pub(super) struct GatewayCollector(pub(super) GatewayMetrics);

/// Writes only what is counted where requests are authenticated.
#[derive(Debug)]
pub(super) struct IdentityCollector(pub(super) IdentityCounts);

/// Writes the metrics of the source of objects.
#[derive(Debug)]
pub(super) struct SourceCollector(pub(super) Readiness);

/// Writes metrics one after the other.
struct Writer<'a>(DescriptorEncoder<'a>);

/// A metric whose series are written one after the other.
struct Family<'a> {
    encoder: MetricEncoder<'a>,
    metric: Metric,
}

// === impl GatewayCollector ===

impl Collector for GatewayCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let (metrics, mut out) = (&self.0, Writer(encoder));
        out.build_info()?;
        out.lone(names::CONNECTIONS, metrics.connections())?;
        out.lone(names::CONNECTIONS_OPENED, metrics.sum(|worker| &worker.opened))?;
        out.lone(names::CONNECTIONS_REFUSED, metrics.sum(|worker| &worker.refused))?;
        out.lone(names::CLIENTS_REFUSED, metrics.sum(|worker| &worker.clients_refused))?;
        out.lone(names::PROXY_HEADERS_REFUSED, metrics.sum(|worker| &worker.proxy_headers_refused))?;
        out.lone(names::CLIENTS_TOO_SLOW, metrics.sum(|worker| &worker.slow_clients))?;
        let classes = CLASSES.iter().enumerate();
        out.each(names::REQUESTS, classes.map(|(class, name)| (*name, metrics.sum(|worker| &worker.requests[class]))))?;
        let ext_proc = ExtProcOutcome::ALL.iter().enumerate();
        let ext_proc = ext_proc.map(|(at, outcome)| (outcome.as_str(), metrics.sum(|worker| &worker.ext_proc[at])));
        out.each(names::EXT_PROC_REQUESTS, ext_proc)?;
        out.each(names::AUTHENTICATION_FAILURES, metrics.identity().denials())?;
        out.each(names::ADMIN_AUTHENTICATION_FAILURES, metrics.admin_denials())?;
        out.lone(names::REQUESTS_ABANDONED, metrics.sum(|worker| &worker.abandoned))?;
        out.lone(names::ABANDONED_REQUESTS, metrics.abandoned_requests())?;
        out.lone(names::BUFFERED_BYTES, metrics.buffered_bytes())?;
        self.upstreams(&mut out)?;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shared = &metrics.0;
        let objects = [("applied", count(&shared.objects_applied)), ("refused", count(&shared.objects_refused))];
        out.each(names::OBJECTS_CHANGES, objects)?;
        let is_set = |flag: &AtomicBool| u64::from(flag.load(Ordering::Relaxed));
        out.lone(names::OBJECTS_REFUSED, is_set(&shared.objects_are_refused))?;
        let settings = [("applied", count(&shared.settings_applied)), ("refused", count(&shared.settings_refused))];
        out.each(names::SETTINGS_CHANGES, settings)?;
        out.lone(names::SETTINGS_REFUSED, is_set(&shared.settings_are_refused))?;
        out.each(names::JWT_KEY_FETCHES, metrics.identity().key_fetches())?;
        let lines = metrics.access_log();
        out.each(names::ACCESS_LOG_LINES, [("written", lines.lines_written()), ("lost", lines.lines_lost())])?;
        out.each(names::TRACE_SPANS, metrics.spans().counts())
    }
}

impl GatewayCollector {
    fn upstreams(&self, out: &mut Writer<'_>) -> fmt::Result {
        let of_upstreams = self.0.upstreams();
        let upstreams = &of_upstreams.targets;
        let mut family = out.family(names::UPSTREAM_REQUESTS)?;
        for upstream in upstreams {
            for (class, name) in CLASSES.iter().enumerate() {
                family.put_of([("code", *name)], upstream.labels(), upstream.responses(class))?;
            }
        }
        let mut family = out.family(names::UPSTREAM_ERRORS)?;
        upstreams.iter().try_for_each(|upstream| family.put_of([], upstream.labels(), upstream.errors()))?;
        let mut family = out.family(names::UPSTREAM_IN_FLIGHT)?;
        upstreams.iter().try_for_each(|upstream| family.put_of([], upstream.labels(), upstream.in_flight()))?;
        let mut family = out.family(names::UPSTREAM_UP)?;
        upstreams.iter().try_for_each(|upstream| family.put_of([], upstream.labels(), u64::from(upstream.is_up())))?;
        let mut family = out.family(names::UPSTREAM_FAILURES)?;
        for upstream in upstreams {
            for kind in UpstreamFailure::ALL {
                family.put_of([("kind", kind.as_str())], upstream.labels(), upstream.failures(kind))?;
            }
        }
        let mut family = out.family(names::UPSTREAM_EJECTIONS)?;
        upstreams.iter().try_for_each(|upstream| family.put_of([], upstream.labels(), upstream.ejections()))?;
        let mut family = out.family(names::UPSTREAM_CHECKS)?;
        for upstream in upstreams {
            for (outcome, count) in upstream.checks() {
                family.put_of([("outcome", outcome)], upstream.labels(), count)?;
            }
        }
        let mut family = out.family(names::UPSTREAM_LOOKUPS)?;
        for lookups in &of_upstreams.lookups {
            for (outcome, count) in lookups.outcomes() {
                family.put_of([("outcome", outcome)], lookups.labels(), count)?;
            }
        }
        let mut family = out.family(names::UPSTREAM_ADDRESSES)?;
        let mut lookups = of_upstreams.lookups.iter();
        lookups.try_for_each(|one| family.put_of([], one.labels(), one.addresses()))?;
        out.lone(names::UPSTREAM_RETRIES, self.0.sum(|worker| &worker.retries))?;
        let mut family = out.family(names::LLM_TOKENS)?;
        for (service, llm) in &of_upstreams.llm {
            for TokenSeries { model, user, tokens } in llm.totals.rows() {
                let kinds = [("prompt", tokens.prompt), ("cached", tokens.cached), ("output", tokens.output)];
                for (kind, count) in kinds {
                    let service = service.as_deref().map(|service| ("service", service));
                    let labels = [("kind", kind), ("model", &*model), ("user", &*user)];
                    family.put_of(labels, service.into_iter(), whole(count))?;
                }
            }
        }
        let mut family = out.family(names::LLM_FIRST_TOKEN)?;
        for (service, llm) in &of_upstreams.llm {
            for series in llm.models.first_tokens() {
                family.put_first_tokens(service.as_deref(), &series)?;
            }
        }
        Ok(())
    }
}

// === impl IdentityCollector ===

impl Collector for IdentityCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut out = Writer(encoder);
        out.build_info()?;
        out.each(names::AUTHENTICATION_FAILURES, self.0.denials())
    }
}

// === impl SourceCollector ===

impl Collector for SourceCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut out = Writer(encoder);
        out.lone(names::OBJECTS_STALE, u64::from(self.0.objects_stale().is_some()))?;
        self.0.source().map_or(Ok(()), |source| source.encode_metrics(out.0))
    }
}

// === impl Writer ===

impl Writer<'_> {
    fn family(&mut self, metric: Metric) -> Result<Family<'_>, fmt::Error> {
        let kind = match metric.kind {
            MetricKind::Counter => MetricType::Counter,
            MetricKind::Gauge => MetricType::Gauge,
            MetricKind::Histogram => MetricType::Histogram,
        };
        Ok(Family { encoder: self.0.encode_descriptor(metric.name, metric.help, None, kind)?, metric })
    }

    fn build_info(&mut self) -> fmt::Result {
        self.family(names::BUILD_INFO)?.put([env!("CARGO_PKG_VERSION")], 1)
    }

    /// A metric of one series without labels.
    fn lone(&mut self, metric: Metric, value: u64) -> fmt::Result {
        self.family(metric)?.put([], value)
    }

    /// A metric with one label, and a series for each value of it.
    fn each<'b>(&mut self, metric: Metric, series: impl IntoIterator<Item = (&'b str, u64)>) -> fmt::Result {
        let mut family = self.family(metric)?;
        series.into_iter().try_for_each(|(label, value)| family.put([label], value))
    }
}

// === impl Family ===

impl Family<'_> {
    /// A series with these values of the labels that are declared.
    fn put<const N: usize>(&mut self, values: [&str; N], value: u64) -> fmt::Result {
        let labels: Vec<(&str, &str)> = self.metric.labels.iter().copied().zip(values).collect();
        self.put_labelled(&labels, value)
    }

    /// A series of an upstream, whose labels are those that it has.
    fn put_of<'b, const N: usize>(
        &mut self,
        labels: [(&'static str, &'b str); N],
        upstream: impl Iterator<Item = (&'static str, &'b str)>,
        value: u64,
    ) -> fmt::Result {
        let mut labels: Vec<_> = labels.into_iter().chain(upstream).collect();
        labels.sort_unstable();
        self.put_labelled(&labels, value)
    }

    /// A histogram of the model of a service, if there are services.
    fn put_first_tokens(&mut self, service: Option<&str>, series: &FirstTokenSeries) -> fmt::Result {
        let FirstTokenSeries { model, sum_seconds, count, buckets } = series;
        let labels: Vec<_> = once(("model", &**model)).chain(service.map(|service| ("service", service))).collect();
        let mut encoder = self.encoder.encode_family(&labels)?;
        encoder.encode_histogram::<NoLabelSet>(*sum_seconds, *count, buckets, None)
    }

    fn put_labelled(&mut self, labels: &[(&str, &str)], value: u64) -> fmt::Result {
        if labels.is_empty() {
            put_value(&mut self.encoder, self.metric.kind, value)
        } else {
            put_value(&mut self.encoder.encode_family(&labels)?, self.metric.kind, value)
        }
    }
}

fn put_value(encoder: &mut MetricEncoder<'_>, kind: MetricKind, value: u64) -> fmt::Result {
    match kind {
        MetricKind::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        MetricKind::Gauge | MetricKind::Histogram => encoder.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX)),
    }
}
