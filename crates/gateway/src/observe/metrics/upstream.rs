//! `UpstreamMetrics`: the counters of each upstream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::StatusCode;
use serde::Serialize;

use super::{CLASSES, UpstreamFailure, class_of};
use crate::config::UpstreamConfig;
use crate::llm::LlmService;

/// The counters of one upstream. Clones share them. Every worker has its own, as everywhere in the gateway.
#[derive(Debug, Clone)]
pub struct UpstreamMetrics(Arc<UpstreamCounters>);

/// The status of an upstream, for tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// The URL of the upstream.
    pub url: String,
    /// The address, if the upstream is given by a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The service that it belongs to, if there are services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Whether it is up: neither ejected, nor does its health check fail.
    pub is_up: bool,
    /// How many requests it works on.
    pub in_flight: u64,
    /// How many responses there were, of every status.
    pub responses: u64,
    /// How many requests have failed because of it.
    pub failures: u64,
}

/// Which upstream is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpstreamLabels {
    /// The URL of the upstream, without a slash at the end.
    upstream: String,
    /// Which of the addresses of a name.
    address: Option<String>,
    /// The service that it belongs to, if there are services.
    service: Option<Arc<str>>,
}

/// The counts of lookups of one upstream's name. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct LookupMetrics(Arc<LookupCounters>);

/// The counters of all upstreams.
#[derive(Debug, Default)]
pub(crate) struct MetricsOfUpstreams {
    /// The language models of each service.
    pub(crate) llm: Vec<(Option<Arc<str>>, Arc<LlmService>)>,
    pub(crate) targets: Vec<UpstreamMetrics>,
    pub(crate) lookups: Vec<LookupMetrics>,
}

#[derive(Debug)]
struct LookupCounters {
    labels: UpstreamLabels,
    found: AtomicU64,
    failed: AtomicU64,
    addresses: AtomicU64,
}

#[derive(Debug)]
struct UpstreamCounters {
    labels: UpstreamLabels,
    workers: Box<[Counters]>,
    is_down: AtomicBool,
    checks_passed: AtomicU64,
    checks_failed: AtomicU64,
}

/// Two cache lines, since processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    responses: [AtomicU64; CLASSES.len()],
    begun: AtomicU64,
    ended: AtomicU64,
    failures: [AtomicU64; UpstreamFailure::ALL.len()],
    ejections: AtomicU64,
    errors: AtomicU64,
    /// Requests to which it has responded, or that wait no more.
    settled: AtomicU64,
    /// Attempts that got no response because of it, whatever became of their requests.
    unanswered: AtomicU64,
}

// === impl UpstreamMetrics ===

impl UpstreamMetrics {
    /// Counters of the upstream of that name, for so many workers.
    pub fn new(name: impl Into<String>, workers: usize) -> Self {
        Self::with_labels(UpstreamLabels { upstream: name.into(), address: None, service: None }, workers)
    }

    pub(crate) fn with_labels(labels: UpstreamLabels, workers: usize) -> Self {
        let workers = std::iter::repeat_with(Counters::default).take(workers.max(1)).collect();
        Self(Arc::new(UpstreamCounters {
            labels,
            workers,
            is_down: AtomicBool::new(false),
            checks_passed: AtomicU64::new(0),
            checks_failed: AtomicU64::new(0),
        }))
    }

    fn of(&self, worker: usize) -> &Counters {
        let workers = &self.0.workers;
        &workers[worker % workers.len()]
    }

    /// A request is sent to it.
    #[inline]
    pub fn begun(&self, worker: usize) {
        self.of(worker).begun.fetch_add(1, Ordering::Relaxed);
    }

    /// The upstream is done with a request, or the request was given up.
    #[inline]
    pub fn ended(&self, worker: usize) {
        self.of(worker).ended.fetch_add(1, Ordering::Relaxed);
    }

    /// The upstream has responded.
    #[inline]
    pub fn responded(&self, worker: usize, status: StatusCode) {
        self.of(worker).responses[class_of(status)].fetch_add(1, Ordering::Relaxed);
    }

    /// The upstream has responded to a request, or the request waits no more.
    #[inline]
    pub fn settled(&self, worker: usize) {
        self.of(worker).settled.fetch_add(1, Ordering::Relaxed);
    }

    /// An attempt got no response because of it. Its request may still be sent elsewhere.
    pub fn unanswered(&self, worker: usize) {
        self.of(worker).unanswered.fetch_add(1, Ordering::Relaxed);
    }

    /// A health check of the upstream has passed or failed.
    pub fn checked(&self, has_passed: bool) {
        let counter = if has_passed { &self.0.checks_passed } else { &self.0.checks_failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A response says that it failed.
    pub fn errored(&self, worker: usize) {
        self.of(worker).errors.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has failed because of it.
    pub fn failed(&self, worker: usize, failure: UpstreamFailure) {
        self.of(worker).failures[failure as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The upstream is down: ejected, or its health check fails.
    pub fn went_down(&self) {
        self.0.is_down.store(true, Ordering::Relaxed);
    }

    /// The upstream is up again.
    pub fn came_up(&self) {
        self.0.is_down.store(false, Ordering::Relaxed);
    }

    /// The upstream was taken out of the rotation.
    pub fn ejected(&self, worker: usize) {
        self.of(worker).ejections.fetch_add(1, Ordering::Relaxed);
    }

    /// The service that it belongs to, if there are services.
    pub(crate) fn service(&self) -> Option<&str> {
        self.0.labels.service.as_deref()
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.labels.iter()
    }

    pub(super) fn is_up(&self) -> bool {
        !self.0.is_down.load(Ordering::Relaxed)
    }

    pub(crate) fn in_flight(&self) -> u64 {
        // Ended first: one that begins and ends in between must not count as ended only.
        let ended = self.sum(|worker| &worker.ended);
        self.sum(|worker| &worker.begun).saturating_sub(ended)
    }

    pub(super) fn responses(&self, class: usize) -> u64 {
        self.sum(|worker| &worker.responses[class])
    }

    /// Responses that say that it failed.
    pub(crate) fn errors(&self) -> u64 {
        self.sum(|worker| &worker.errors)
    }

    pub(crate) fn failures(&self, failure: UpstreamFailure) -> u64 {
        self.sum(|worker| &worker.failures[failure as usize])
    }

    /// How many requests were sent to it, and how many of them wait for its response.
    pub(crate) fn asked_and_waiting(&self) -> (u64, u64) {
        // Settled first, see `in_flight`.
        let settled = self.sum(|worker| &worker.settled);
        let asked = self.sum(|worker| &worker.begun);
        (asked, asked.saturating_sub(settled))
    }

    /// How many attempts got no response because of it.
    pub(crate) fn attempts_unanswered(&self) -> u64 {
        self.sum(|worker| &worker.unanswered)
    }

    /// How many responses there were, of every status.
    pub(crate) fn responses_of_all_classes(&self) -> u64 {
        (0..CLASSES.len()).map(|class| self.responses(class)).sum()
    }

    /// How many health checks passed and failed.
    pub(super) fn checks(&self) -> [(&'static str, u64); 2] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [("passed", count(&self.0.checks_passed)), ("failed", count(&self.0.checks_failed))]
    }

    pub(super) fn ejections(&self) -> u64 {
        self.sum(|worker| &worker.ejections)
    }

    /// The status of the upstream.
    pub fn status(&self) -> UpstreamStatus {
        UpstreamStatus {
            url: self.0.labels.upstream.clone(),
            address: self.0.labels.address.clone(),
            service: self.service().map(ToOwned::to_owned),
            is_up: self.is_up(),
            in_flight: self.in_flight(),
            responses: self.responses_of_all_classes(),
            failures: UpstreamFailure::ALL.into_iter().map(|failure| self.failures(failure)).sum(),
        }
    }

    fn sum(&self, counter: impl Fn(&Counters) -> &AtomicU64) -> u64 {
        self.0.workers.iter().map(|worker| counter(worker).load(Ordering::Relaxed)).sum()
    }
}

// === impl UpstreamLabels ===

impl UpstreamLabels {
    /// The labels of an upstream of the settings.
    pub(crate) fn of(config: &UpstreamConfig, service: Option<Arc<str>>) -> Self {
        let upstream = config.url.to_string().trim_end_matches('/').to_owned();
        Self { upstream, address: None, service }
    }

    /// The labels of one address of the upstream.
    pub(crate) fn at(&self, address: Option<SocketAddr>) -> Self {
        Self { address: address.map(|address| address.to_string()), ..self.clone() }
    }

    fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let address = self.address.as_deref().map(|address| ("address", address));
        let service = self.service.as_deref().map(|service| ("service", service));
        [("upstream", &*self.upstream)].into_iter().chain(address).chain(service)
    }
}

// === impl LookupMetrics ===

impl LookupMetrics {
    pub(crate) fn new(labels: UpstreamLabels) -> Self {
        let count = AtomicU64::default;
        Self(Arc::new(LookupCounters { labels, found: count(), failed: count(), addresses: count() }))
    }

    /// The name was looked up, and addresses were found or not.
    pub(crate) fn looked_up(&self, was_found: bool) {
        let counter = if was_found { &self.0.found } else { &self.0.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The name has so many addresses.
    pub(crate) fn set_addresses(&self, count: usize) {
        self.0.addresses.store(count as u64, Ordering::Relaxed);
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.labels.iter()
    }

    /// How many lookups found addresses, and how many did not.
    pub(super) fn outcomes(&self) -> [(&'static str, u64); 2] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [("found", count(&self.0.found)), ("failed", count(&self.0.failed))]
    }

    pub(super) fn addresses(&self) -> u64 {
        self.0.addresses.load(Ordering::Relaxed)
    }
}
