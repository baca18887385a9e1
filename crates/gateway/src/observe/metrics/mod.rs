//! The gateway's own metrics, beside those of the flow control.
//!
//! Every worker has counters of its own, on cache lines of their own, and adds to them without a lock and without waiting for
//! anybody. They are added up at a scrape.

mod access_log;
mod catalogue;
mod collector;
mod object_change;
mod spans;
mod upstream;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use evenkeel::metrics::Metric;
use http::StatusCode;
use prometheus_client::registry::Registry;

pub use access_log::AccessLogMetrics;
pub use object_change::{Edit, ObjectChange};
pub use spans::SpanMetrics;
pub(crate) use upstream::{LookupMetrics, MetricsOfUpstreams, UpstreamLabels};
pub use upstream::{UpstreamMetrics, UpstreamStatus};

use crate::identity::IdentityCounts;
use crate::observe::Readiness;

/// How many changes of objects are kept until the dashboard takes them.
const CHANGES_MAX: usize = 1000;

/// The gateway's own metrics, as they are declared.
pub fn declared() -> impl Iterator<Item = Metric> {
    catalogue::ALL.iter().copied()
}

/// Registers the metrics of the source of objects.
pub(crate) fn register_source(readiness: &Readiness, registry: &mut Registry) {
    registry.register_collector(Box::new(collector::SourceCollector(readiness.clone())));
}

/// Shows in a registry why requests were not authenticated, with the version that runs: for a process that has no gateway.
pub fn register_identity(counts: &IdentityCounts, registry: &mut Registry) {
    registry.register_collector(Box::new(collector::IdentityCollector(counts.clone())));
}

/// All counters of a gateway. Clones share them.
#[derive(Debug, Clone)]
pub struct GatewayMetrics(Arc<GatewayCounters>);

/// The counters of one worker. Clones share them.
#[derive(Debug, Clone)]
pub struct WorkerMetrics {
    shared: Arc<GatewayCounters>,
    index: usize,
}

/// The way in which an upstream failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
#[non_exhaustive]
pub enum UpstreamFailure {
    /// The name of the upstream has no address.
    Resolve,
    /// The upstream could not be connected to.
    Connect,
    /// The upstream took too long.
    TimeOut,
    /// The upstream ended the connection before or in the middle of its response.
    Cut,
    /// The response was not valid HTTP.
    Malformed,
}

#[derive(Debug)]
struct GatewayCounters {
    workers: Box<[Counters]>,
    objects_applied: AtomicU64,
    /// Changes of objects, until the dashboard takes them.
    object_changes: Mutex<BTreeSet<ObjectChange>>,
    objects_refused: AtomicU64,
    /// Whether the latest objects were refused.
    objects_are_refused: AtomicBool,
    settings_applied: AtomicU64,
    settings_refused: AtomicU64,
    /// Whether the latest settings were refused.
    settings_are_refused: AtomicBool,
    identity: IdentityCounts,
    admin_without_token: AtomicU64,
    admin_wrong_token: AtomicU64,
    access_log: AccessLogMetrics,
    spans: SpanMetrics,
    /// The counters of the present upstreams.
    upstreams: ArcSwap<MetricsOfUpstreams>,
}

/// Two cache lines, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    requests: [AtomicU64; CLASSES.len()],
    opened: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    retries: AtomicU64,
    abandoned: AtomicU64,
    abandoned_ended: AtomicU64,
    buffered_bytes: AtomicU64,
    slow_clients: AtomicU64,
    clients_refused: AtomicU64,
    proxy_headers_refused: AtomicU64,
    ext_proc: [AtomicU64; ExtProcOutcome::ALL.len()],
}

/// The outcome of a request that Envoy reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtProcOutcome {
    /// The request got its seat, and Envoy forwarded it.
    Started,
    /// Envoy was told to respond itself.
    Rejected,
    /// Envoy ended its stream while it waited.
    Left,
    /// Envoy forwarded it without asking, and only the shadow decided about it.
    Observed,
}

/// The classes of status codes; the last is for what is in none of them.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// The place of the class of a status.
fn class_of(status: StatusCode) -> usize {
    usize::from(status.as_u16() / 100).wrapping_sub(1).min(CLASSES.len() - 1)
}

// === impl ExtProcOutcome ===

impl ExtProcOutcome {
    const ALL: [Self; 4] = [Self::Started, Self::Rejected, Self::Left, Self::Observed];

    fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Rejected => "rejected",
            Self::Left => "left",
            Self::Observed => "observed",
        }
    }
}

// === impl GatewayMetrics ===

impl GatewayMetrics {
    /// Counters for so many workers.
    pub fn new(workers: usize) -> Self {
        let workers = std::iter::repeat_with(Counters::default).take(workers.max(1)).collect();
        Self(Arc::new(GatewayCounters {
            workers,
            objects_applied: AtomicU64::new(0),
            object_changes: Mutex::default(),
            objects_refused: AtomicU64::new(0),
            objects_are_refused: AtomicBool::new(false),
            settings_applied: AtomicU64::new(0),
            settings_refused: AtomicU64::new(0),
            settings_are_refused: AtomicBool::new(false),
            identity: IdentityCounts::default(),
            admin_without_token: AtomicU64::new(0),
            admin_wrong_token: AtomicU64::new(0),
            access_log: AccessLogMetrics::default(),
            spans: SpanMetrics::default(),
            upstreams: ArcSwap::default(),
        }))
    }

    /// The counters of a worker. More workers than were said share them.
    pub fn worker(&self, index: usize) -> WorkerMetrics {
        WorkerMetrics { shared: Arc::clone(&self.0), index: index % self.0.workers.len() }
    }

    /// New objects govern, with these differences.
    pub fn objects_applied(&self, changes: impl IntoIterator<Item = ObjectChange>) {
        let mut kept = self.0.object_changes.lock().unwrap_or_else(PoisonError::into_inner);
        let room = CHANGES_MAX.saturating_sub(kept.len());
        kept.extend(changes.into_iter().take(room));
        self.0.objects_applied.fetch_add(1, Ordering::Relaxed);
        self.0.objects_are_refused.store(false, Ordering::Relaxed);
    }

    /// Takes the changes of objects since the last call.
    pub(crate) fn take_object_changes(&self) -> BTreeSet<ObjectChange> {
        std::mem::take(&mut *self.0.object_changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Objects were changed and could not be used. Older ones are in effect until others are applied.
    pub fn objects_refused(&self) {
        self.0.objects_refused.fetch_add(1, Ordering::Relaxed);
        self.0.objects_are_refused.store(true, Ordering::Relaxed);
    }

    /// The counts of authentication.
    pub fn identity(&self) -> &IdentityCounts {
        &self.0.identity
    }

    /// The admin endpoint rejected a request that sent no credential.
    pub fn admin_without_token(&self) {
        self.0.admin_without_token.fetch_add(1, Ordering::Relaxed);
    }

    /// The admin endpoint rejected a request with another credential than its token.
    pub fn admin_wrong_token(&self) {
        self.0.admin_wrong_token.fetch_add(1, Ordering::Relaxed);
    }

    /// Each reason for which the admin endpoint rejects requests, and how often it did.
    fn admin_denials(&self) -> [(&'static str, u64); 2] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [("no-token", count(&self.0.admin_without_token)), ("wrong-token", count(&self.0.admin_wrong_token))]
    }

    /// How many workers count.
    pub fn workers(&self) -> usize {
        self.0.workers.len()
    }

    /// Replaces the upstreams whose counters are shown.
    pub(crate) fn set_upstreams(&self, upstreams: MetricsOfUpstreams) {
        self.0.upstreams.store(Arc::new(upstreams));
    }

    /// The status of every upstream.
    pub fn upstream_status(&self) -> Vec<UpstreamStatus> {
        self.upstreams().targets.iter().map(UpstreamMetrics::status).collect()
    }

    fn upstreams(&self) -> Arc<MetricsOfUpstreams> {
        self.0.upstreams.load_full()
    }

    /// How many lines of the access log were written or lost.
    pub fn access_log(&self) -> &AccessLogMetrics {
        &self.0.access_log
    }

    /// How many spans of requests were exported or lost.
    pub fn spans(&self) -> &SpanMetrics {
        &self.0.spans
    }

    /// New settings are in effect.
    pub fn settings_applied(&self) {
        self.0.settings_applied.fetch_add(1, Ordering::Relaxed);
        self.settings_are_in_effect();
    }

    /// Settings were changed and could not be used. Older ones are in effect until others are accepted.
    pub fn settings_refused(&self) {
        self.0.settings_refused.fetch_add(1, Ordering::Relaxed);
        self.0.settings_are_refused.store(true, Ordering::Relaxed);
    }

    /// The settings on disk are those in effect, as after a mistake was undone. Not a change.
    pub fn settings_are_in_effect(&self) {
        self.0.settings_are_refused.store(false, Ordering::Relaxed);
    }

    /// How often upstreams failed, in whatever way.
    pub(crate) fn upstream_failures(&self) -> u64 {
        self.upstream_status().iter().map(|upstream| upstream.failures).sum()
    }

    /// Whether the latest objects were refused.
    pub(crate) fn objects_are_refused(&self) -> bool {
        self.0.objects_are_refused.load(Ordering::Relaxed)
    }

    /// How often objects were refused, and settings applied.
    pub(crate) fn changes(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.0.objects_refused), count(&self.0.settings_applied))
    }

    /// Shows all counters in a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(collector::GatewayCollector(self.clone())));
    }

    /// How many connections of clients there are.
    pub fn connections(&self) -> u64 {
        // Closed first: one that is opened and closed in between must not count as closed only.
        let closed = self.sum(|worker| &worker.closed);
        self.sum(|worker| &worker.opened).saturating_sub(closed)
    }

    /// How many requests without a client upstreams work on.
    pub fn abandoned_requests(&self) -> u64 {
        let ended = self.sum(|worker| &worker.abandoned_ended);
        self.sum(|worker| &worker.abandoned).saturating_sub(ended)
    }

    /// How many bytes are buffered of messages that arrive or leave slowly.
    pub fn buffered_bytes(&self) -> u64 {
        self.sum(|worker| &worker.buffered_bytes)
    }

    fn sum(&self, counter: impl Fn(&Counters) -> &AtomicU64) -> u64 {
        self.0.workers.iter().map(|worker| counter(worker).load(Ordering::Relaxed)).sum()
    }
}

// === impl WorkerMetrics ===

impl WorkerMetrics {
    /// A client has connected.
    pub fn connection_opened(&self) {
        self.add(|worker| &worker.opened);
    }

    /// A connection of a client has ended.
    pub fn connection_closed(&self) {
        self.add(|worker| &worker.closed);
    }

    /// A client was sent away because there are too many connections.
    pub fn connection_refused(&self) {
        self.add(|worker| &worker.refused);
    }

    /// A response with this status was sent, from an upstream or from the gateway.
    pub fn request_ended(&self, status: StatusCode) {
        let class = class_of(status);
        self.add(|worker| &worker.requests[class]);
    }

    /// Which worker it is.
    pub fn index(&self) -> usize {
        self.index
    }

    /// A request is sent once more, to another upstream or on another connection.
    pub fn request_retried(&self) {
        self.add(|worker| &worker.retries);
    }

    /// A client has left while an upstream worked on its request.
    pub fn request_abandoned(&self) {
        self.add(|worker| &worker.abandoned);
    }

    /// The upstream is done with a request whose client has left, or the request has been given up.
    pub fn abandoned_request_ended(&self) {
        self.add(|worker| &worker.abandoned_ended);
    }

    /// A request was ended because its client sends or reads too slowly.
    pub fn client_too_slow(&self) {
        self.add(|worker| &worker.slow_clients);
    }

    /// A connection or a stream was refused because its client has too many.
    pub fn client_refused(&self) {
        self.add(|worker| &worker.clients_refused);
    }

    /// A connection was closed because its header of the PROXY protocol is missing or invalid.
    pub fn proxy_header_refused(&self) {
        self.add(|worker| &worker.proxy_headers_refused);
    }

    /// The outcome of a request that Envoy reported.
    pub(crate) fn ext_proc_request(&self, outcome: ExtProcOutcome) {
        self.add(|worker| &worker.ext_proc[outcome as usize]);
    }

    /// Sets how many bytes are in the buffers of this worker.
    pub fn set_buffered(&self, bytes: usize) {
        if let Some(worker) = self.shared.workers.get(self.index) {
            worker.buffered_bytes.store(bytes as u64, Ordering::Relaxed);
        }
    }

    #[inline]
    fn add(&self, counter: impl Fn(&Counters) -> &AtomicU64) {
        if let Some(worker) = self.shared.workers.get(self.index) {
            counter(worker).fetch_add(1, Ordering::Relaxed);
        }
    }
}

// === impl UpstreamFailure ===

impl UpstreamFailure {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Resolve, Self::Connect, Self::TimeOut, Self::Cut, Self::Malformed];

    /// The value of the label `kind`, and of `error` in the access log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::TimeOut => "timeout",
            Self::Cut => "cut",
            Self::Malformed => "malformed",
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    fn page(metrics: &GatewayMetrics) -> String {
        let (mut registry, mut page) = (Registry::default(), String::new());
        metrics.register(&mut registry);
        text::encode(&mut page, &registry).unwrap();
        page
    }

    #[test]
    fn what_all_workers_count_is_added_up() {
        let metrics = GatewayMetrics::new(2);
        let upstream = UpstreamMetrics::new("http://a", 2);
        metrics.set_upstreams(MetricsOfUpstreams { targets: vec![upstream.clone()], ..MetricsOfUpstreams::default() });
        for index in 0..3 {
            let worker = metrics.worker(index);
            worker.connection_opened();
            worker.request_ended(StatusCode::OK);
            worker.request_ended(StatusCode::TOO_MANY_REQUESTS);
            upstream.failed(index, UpstreamFailure::Cut);
            upstream.responded(index, StatusCode::OK);
            upstream.begun(index);
        }
        metrics.worker(1).connection_closed();
        upstream.ended(0);
        upstream.went_down();
        upstream.ejected(1);
        upstream.errored(1);
        metrics.worker(0).request_ended(StatusCode::from_u16(999).unwrap());
        metrics.objects_refused();
        assert_eq!(metrics.connections(), 2);
        let page = page(&metrics);
        for line in [
            "evenkeel_connections 2",
            "evenkeel_connections_opened_total 3",
            "evenkeel_requests_total{code=\"2xx\"} 3",
            "evenkeel_requests_total{code=\"4xx\"} 3",
            "evenkeel_requests_total{code=\"5xx\"} 0",
            "evenkeel_requests_total{code=\"other\"} 1",
            "evenkeel_upstream_requests_total{code=\"2xx\",upstream=\"http://a\"} 3",
            "evenkeel_upstream_errors_total{upstream=\"http://a\"} 1",
            "evenkeel_upstream_in_flight_requests{upstream=\"http://a\"} 2",
            "evenkeel_upstream_up{upstream=\"http://a\"} 0",
            "evenkeel_upstream_failures_total{kind=\"cut\",upstream=\"http://a\"} 3",
            "evenkeel_upstream_ejections_total{upstream=\"http://a\"} 1",
            "evenkeel_objects_refused 1",
            "evenkeel_settings_refused 0",
            "evenkeel_objects_changes_total{outcome=\"refused\"} 1",
            concat!("evenkeel_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }

    #[test]
    fn workers_do_not_share_cache_lines() {
        assert_eq!(align_of::<Counters>(), 128);
        assert_eq!(size_of::<Counters>() % 128, 0);
    }
}
