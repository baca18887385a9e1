//! The services behind the gateway: which one gets a request, and the connections to it.
//!
//! Every worker has its own connections. Workers share the load of each upstream, which only matters if there is more than
//! one, and its health.

mod balance;
mod check;
mod connect;
mod error;
mod health;
mod http1;
mod http2;
mod http2_connection;
mod latency;
mod liveness;
mod names;
mod pool;
mod source;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use http::HeaderValue;

use crate::config::{Config, Protocol, UpstreamAddress, UpstreamConfig};
use crate::dns::LookupName;
use crate::http1::BufferPool;
use crate::observe::dashboard::UpstreamReading;
use crate::observe::log::Throttle;
use crate::observe::metrics::{UpstreamFailure, UpstreamLabels, UpstreamMetrics};
use crate::timeouts::CoarseTimer;
use crate::tls::ClientTls;

pub(crate) use balance::{InFlight, Picked, Upstreams};
pub(crate) use check::check_upstreams;
pub(crate) use connect::ConnectError;
pub(crate) use error::GrpcStatus;
pub(crate) use health::{Unanswered, compare_upstreams};
pub(crate) use http1::{CallError, Http1Body, Http1Call, Http1Response};
pub(crate) use http2::Negotiated;
pub(crate) use http2_connection::Http2Stream;
pub(crate) use names::{follow_names, look_up_all};
pub(crate) use source::UpstreamSource;

use health::{Change, Health, UpstreamCounts};
use latency::{Latencies, Stopwatch};
use pool::Pool;

/// An upstream, or one address of it, as all workers share it.
#[derive(Debug)]
pub(crate) struct UpstreamTarget {
    /// Where connections to the target go.
    location: UpstreamLocation,
    /// The host of the upstream without the brackets of IPv6, or the path of its socket; and its port.
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// The name of the target for people: host and port as they are in URLs, or its socket. The address of a name includes the name.
    pub(crate) name: String,
    /// The host of requests that have none of their own.
    pub(crate) authority: String,
    /// The prefix of every path, without a slash at the end.
    pub(crate) prefix: String,
    pub(crate) protocol: Protocol,
    pub(crate) tls: Option<ClientTls>,
    pub(crate) metrics: UpstreamMetrics,
    /// The share of the requests that the upstream gets, beside the other upstreams.
    weight: u32,
    health: Health,
    load: AtomicUsize,
    latencies: Latencies,
}

/// Where connections to an upstream go.
#[derive(Debug, Clone, PartialEq, Eq)]
enum UpstreamLocation {
    Address(SocketAddr),
    /// A name of this machine, `localhost`: it has an address of each kind, and a service listens on one of them. It is looked up for each
    /// connection.
    ThisMachine(String, u16),
    /// No address of the name is known.
    Unknown,
    Unix(PathBuf),
}

/// The place of a target among those of its upstream.
struct TargetPlace<'a> {
    labels: &'a UpstreamLabels,
    location: UpstreamLocation,
    weight: u32,
}

/// An upstream, with the connections of one worker.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) target: Arc<UpstreamTarget>,
    pub(crate) pool: Pool,
    /// Which worker's connections they are.
    worker: usize,
    timer: Rc<CoarseTimer>,
    buffer_pool: Rc<BufferPool>,
    config: Arc<Config>,
    stopwatch: Stopwatch,
    /// The credit of the upstream, for taking turns with others that have equally much to do.
    credit: Cell<i64>,
    /// Limits how often each kind of failure gets a line.
    warnings: RefCell<[Throttle; UpstreamFailure::ALL.len()]>,
}

// === impl UpstreamTarget ===

impl UpstreamTarget {
    /// The upstream with this place. So many workers send requests to it.
    fn new(
        config: &UpstreamConfig,
        place: TargetPlace<'_>,
        tls: Option<ClientTls>,
        gateway: &Config,
        workers: usize,
    ) -> Self {
        let (TargetPlace { labels, location, weight }, url) = (place, &config.url);
        let address = match &location {
            UpstreamLocation::Address(address) if LookupName::of(url).is_some() => Some(*address),
            _ => None,
        };
        let port = match &location {
            UpstreamLocation::Address(address) => Some(address.port()),
            _ => url.port(),
        };
        let authority = url.authority();
        let name = match (url, address) {
            (UpstreamAddress::Unix(_), _) => url.to_string(),
            (_, None) => authority.clone(),
            (_, Some(address)) => format!("{address} ({})", url.named_host()),
        };
        let metrics = UpstreamMetrics::with_labels(labels.at(address), workers);
        Self {
            location,
            host: url.host(),
            port,
            name,
            authority,
            prefix: url.path_prefix().to_owned(),
            protocol: config.protocol,
            tls,
            weight,
            health: Health::new(gateway.health.clone(), metrics.clone()),
            metrics,
            load: AtomicUsize::new(0),
            latencies: Latencies::default(),
        }
    }

    /// The counters of the upstream, for the dashboard.
    pub(crate) fn reading(&self) -> UpstreamReading {
        let [responses, timed, latency_sum_ns] = self.latencies.sums();
        let failures = |kind| self.metrics.failures(kind);
        UpstreamReading {
            name: self
                .metrics
                .service()
                .map_or_else(|| self.name.clone(), |service| format!("{service}/{}", self.name)),
            out: self.health.out(),
            in_flight: self.metrics.in_flight(),
            responses,
            timed,
            latency_sum_ns,
            errors: self.metrics.errors(),
            timeouts: failures(UpstreamFailure::TimeOut),
            unreachable: failures(UpstreamFailure::Resolve) + failures(UpstreamFailure::Connect),
            cut: failures(UpstreamFailure::Cut) + failures(UpstreamFailure::Malformed),
        }
    }

    /// The counts for the comparison with others.
    fn counts(&self) -> UpstreamCounts {
        let (asked, waiting) = self.metrics.asked_and_waiting();
        let errors = self.metrics.errors();
        let served = self.metrics.responses_of_all_classes().saturating_sub(errors);
        UpstreamCounts { asked, waiting, served, failed: errors + self.metrics.attempts_unanswered() }
    }

    /// Logs and counts a change of the health of the upstream, beside other upstreams. A worker has noticed it.
    fn announce(&self, change: Option<Change>, worker: usize) {
        let upstream = &self.name;
        match change {
            Some(Change::Ejected(cause, pause)) => {
                let cause = cause.words();
                tracing::warn!(upstream, cause, ?pause, "the upstream is failing and is taken out of the rotation");
                self.metrics.ejected(worker);
            }
            Some(Change::StillEjected(pause)) => {
                tracing::debug!(upstream, ?pause, "the upstream is still failing");
                self.metrics.ejected(worker);
            }
            Some(Change::Back) => tracing::info!(upstream, "the upstream serves again"),
            Some(Change::CheckFails | Change::CheckPasses) | None => {}
        }
    }

    /// Whether HTTP/2 is only assumed: neither the settings nor ALPN have chosen it.
    pub(crate) fn is_http2_a_guess(&self) -> bool {
        self.protocol == Protocol::Auto && self.tls.is_none()
    }
}

// === impl UpstreamLocation ===

impl UpstreamLocation {
    /// Where an upstream is as long as no name has been looked up.
    fn of(address: &UpstreamAddress) -> Self {
        let host = address.host();
        match (address, address.port()) {
            (UpstreamAddress::Unix(path), _) => Self::Unix(path.clone()),
            (_, Some(port)) if is_this_machine(&host) => Self::ThisMachine(host, port),
            (_, Some(port)) => {
                host.parse().map_or(Self::Unknown, |address: IpAddr| Self::Address((address, port).into()))
            }
            (_, None) => Self::Unknown,
        }
    }
}

/// Whether a name is one of this machine, whatever a name server says (RFC 6761, 6.3).
fn is_this_machine(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

// === impl LookupName ===

impl LookupName {
    /// The name to look up for an upstream, if it is given by a name.
    fn of(address: &UpstreamAddress) -> Option<Self> {
        if let Some(service) = address.service() {
            return Some(Self::Service(service.to_owned()));
        }
        let (host, port) = (address.host(), address.port()?);
        let is_name = host.parse::<IpAddr>().is_err() && !is_this_machine(&host);
        is_name.then_some(Self::Host(host, port))
    }
}

// === impl Upstream ===

impl Upstream {
    fn new(
        target: Arc<UpstreamTarget>,
        worker: usize,
        config: &Arc<Config>,
        timer: &Rc<CoarseTimer>,
        buffer_pool: &Rc<BufferPool>,
    ) -> Self {
        let pool = Pool::new(config.limits.idle_upstream_connections, config.timeouts.idle, Rc::clone(timer));
        let (timer, buffer_pool) = (Rc::clone(timer), Rc::clone(buffer_pool));
        let stopwatch = target.latencies.stopwatch();
        Self {
            target,
            pool,
            worker,
            timer,
            buffer_pool,
            config: Arc::clone(config),
            stopwatch,
            credit: Cell::new(0),
            warnings: RefCell::default(),
        }
    }

    /// The request with this id has failed because of the upstream, in this way.
    pub(crate) fn note_failed(&self, failure: UpstreamFailure, id: &HeaderValue, error: &dyn fmt::Display) {
        self.target.metrics.failed(self.worker, failure);
        self.warn(failure, id, error);
    }

    /// Logs that the upstream has failed, unless there was such a line a moment ago.
    pub(crate) fn warn(&self, failure: UpstreamFailure, id: &HeaderValue, error: &dyn fmt::Display) {
        if self.warnings.borrow_mut()[failure as usize].may_log() {
            let (upstream, kind) = (&self.target.name, failure.as_str());
            let request_id = id.to_str().unwrap_or_default();
            tracing::warn!(upstream, kind, request_id, %error, "an upstream failed");
        }
    }

    /// Whether these settings are the same for connections to the upstream.
    fn is_as_in(&self, config: &Config) -> bool {
        let of = |config: &Config| {
            let timeouts = &config.timeouts;
            (timeouts.connect, timeouts.response, timeouts.idle, config.limits.idle_upstream_connections)
        };
        of(config) == of(&self.config)
    }
}
