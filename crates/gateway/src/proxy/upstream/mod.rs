//! The services behind the gateway: which one gets a request, and the connections to it.
//!
//! Every worker has its own connections. Workers share the load of each upstream, which only matters if there is more than
//! one, and its health.

mod balance;
mod connect;
mod error;
mod health;
mod http1;
mod http2;
mod http2_connection;
mod latency;
mod liveness;
mod pool;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use http::uri::Scheme;
use http::{HeaderValue, StatusCode};

use crate::config::{Config, Protocol, UpstreamConfig};
use crate::http1::BufferPool;
use crate::observe::dashboard::UpstreamReading;
use crate::observe::frame::OutCause;
use crate::observe::log::Throttle;
use crate::observe::metrics::{UpstreamFailure, UpstreamMetrics};
use crate::timeouts::CoarseTimer;
use crate::tls::{ClientTls, TlsError};

pub(crate) use balance::{InFlight, Picked, Upstreams};
pub(crate) use connect::ConnectError;
pub(crate) use error::GrpcStatus;
pub(crate) use http1::{CallError, Http1Body, Http1Call, Http1Response};
pub(crate) use http2::Negotiated;
pub(crate) use http2_connection::Http2Stream;

use health::{Condition, Health};
use latency::{Latencies, Stopwatch};
use pool::Pool;

/// What all workers share about an upstream.
#[derive(Debug)]
pub(crate) struct UpstreamTarget {
    /// Its host: a name or an address, without the brackets of IPv6.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as they are in URLs.
    pub(crate) authority: String,
    /// What is put before every path, without a slash at the end.
    pub(crate) prefix: String,
    pub(crate) protocol: Protocol,
    pub(crate) tls: Option<ClientTls>,
    pub(crate) metrics: UpstreamMetrics,
    health: Health,
    load: AtomicUsize,
    latencies: Latencies,
}

/// An upstream, with the connections of one worker.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) known: Arc<UpstreamTarget>,
    pub(crate) pool: Pool,
    /// Which worker's connections they are.
    worker: usize,
    timer: Rc<CoarseTimer>,
    buffer_pool: Rc<BufferPool>,
    timeouts: Arc<Config>,
    stopwatch: Stopwatch,
    /// How often each kind of failure is worth a line.
    warnings: RefCell<[Throttle; UpstreamFailure::ALL.len()]>,
}

// === impl UpstreamTarget ===

impl UpstreamTarget {
    /// The upstream with this place in the settings. So many workers send requests to it.
    pub(crate) fn new(
        index: usize,
        config: &UpstreamConfig,
        gateway: &Config,
        workers: usize,
    ) -> Result<Self, TlsError> {
        let is_tls = config.url.scheme() == Some(&Scheme::HTTPS);
        let host = config.url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let open = || ClientTls::open(&config.tls, &format!("upstreams[{index}].tls"), &host);
        let tls = is_tls.then(open).transpose()?;
        let authority = config.url.authority().map(ToString::to_string).unwrap_or_default();
        let metrics = UpstreamMetrics::new(config.url.to_string().trim_end_matches('/'), workers);
        Ok(Self {
            host,
            port: config.url.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            authority,
            prefix: config.url.path().trim_end_matches('/').to_owned(),
            protocol: config.protocol,
            tls,
            health: Health::new(gateway.health.clone(), metrics.clone()),
            metrics,
            load: AtomicUsize::new(0),
            latencies: Latencies::default(),
        })
    }

    /// Its counters, for the dashboard.
    pub(crate) fn reading(&self) -> UpstreamReading {
        let [responses, timed, latency_sum_ns] = self.latencies.sums();
        let is_out = self.health.condition(Instant::now()) != Condition::Well;
        let failures = |kind| self.metrics.failures(kind);
        UpstreamReading {
            name: self.authority.clone(),
            out: is_out.then_some(OutCause::Connections),
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

    /// Whether HTTP/2 is only assumed: neither the settings nor ALPN have chosen it.
    pub(crate) fn is_http2_a_guess(&self) -> bool {
        self.protocol == Protocol::Auto && self.tls.is_none()
    }
}

// === impl Upstream ===

impl Upstream {
    fn new(
        known: Arc<UpstreamTarget>,
        worker: usize,
        config: &Arc<Config>,
        timer: &Rc<CoarseTimer>,
        buffer_pool: &Rc<BufferPool>,
    ) -> Self {
        let pool = Pool::new(config.limits.idle_upstream_connections, config.timeouts.idle, Rc::clone(timer));
        let (timer, buffer_pool) = (Rc::clone(timer), Rc::clone(buffer_pool));
        let stopwatch = known.latencies.stopwatch();
        Self {
            known,
            pool,
            worker,
            timer,
            buffer_pool,
            timeouts: Arc::clone(config),
            stopwatch,
            warnings: RefCell::default(),
        }
    }

    /// It has responded to a request, with this head.
    pub(crate) fn note_response(&self, status: StatusCode, grpc: Option<GrpcStatus>) {
        self.known.metrics.responded(self.worker, status);
        if error::is_error(status, grpc) {
            self.known.metrics.errored(self.worker);
        }
    }

    /// The request with this id has failed because of it, in this way.
    pub(crate) fn note_failed(&self, failure: UpstreamFailure, id: &HeaderValue, error: &dyn fmt::Display) {
        self.known.metrics.failed(self.worker, failure);
        self.warn(failure, id, error);
    }

    /// Logs that it has failed, unless there was such a line a moment ago.
    pub(crate) fn warn(&self, failure: UpstreamFailure, id: &HeaderValue, error: &dyn fmt::Display) {
        if self.warnings.borrow_mut()[failure as usize].may_log() {
            let (upstream, kind) = (&self.known.authority, failure.as_str());
            let request_id = id.to_str().unwrap_or_default();
            tracing::warn!(upstream, kind, request_id, %error, "an upstream failed");
        }
    }

    /// Whether these settings are the same for its connections.
    fn is_as_in(&self, config: &Config) -> bool {
        let of = |config: &Config| {
            let timeouts = &config.timeouts;
            (timeouts.connect, timeouts.response, timeouts.idle, config.limits.idle_upstream_connections)
        };
        of(config) == of(&self.timeouts)
    }
}
