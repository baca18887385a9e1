//! Workers: threads that serve connections, each with a runtime, listeners and upstream connections of its own.

mod accept;
mod clients;
mod counts;
mod listener;
mod thread;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::{Digest, FlowControl, Occupancy};
use http::request::Parts;

use crate::abandoned::{Abandoned, AbandonedWork};
use crate::buffers::{BufferedBytes, Buffers};
use crate::config::Config;
use crate::forward::RequestIds;
use crate::identity::Identification;
use crate::log::RejectionLog;
use crate::metrics::{GatewayMetrics, WorkerMetrics};
use crate::requests::Requests as Routes;
use crate::service_times::ServiceTimes;
use crate::ticks::Ticks;
use crate::upstream::{Known, Upstreams};

pub(crate) use clients::{Client, Clients, OpenStream};
pub(crate) use counts::{Connections, Requests, RunningRequest};
pub(crate) use listener::{Listening, bind};
pub(crate) use thread::{Stage, WorkerThread};

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    pub(crate) flow: FlowControl,
    pub(crate) identification: Arc<Identification>,
    pub(crate) routes: Routes,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) rejections: Arc<RejectionLog>,
    pub(crate) upstreams: Vec<Arc<Known>>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) clients: Arc<Clients>,
    /// What the buffers of all workers have.
    pub(crate) buffered: BufferedBytes,
}

/// What a worker's connections and requests need of it.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) config: Arc<Config>,
    pub(crate) flow: FlowControl,
    pub(crate) identification: Arc<Identification>,
    pub(crate) routes: Routes,
    pub(crate) metrics: WorkerMetrics,
    pub(crate) rejections: Arc<RejectionLog>,
    pub(crate) ticks: Rc<Ticks>,
    pub(crate) upstreams: Upstreams,
    pub(crate) request_ids: RequestIds,
    pub(crate) connections: Arc<Connections>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) buffers: Rc<Buffers>,
    pub(crate) abandoned: Abandoned,
    pub(crate) service_times: Rc<ServiceTimes>,
    is_draining: Cell<bool>,
    /// When a worker that is in trouble may say so again.
    quiet_until: Cell<u64>,
}

/// So many requests whose clients have left are kept in any case. Beyond twice the number of seats, only requests that are
/// exempt from limits can have been left behind.
const ABANDONED_MIN: usize = 64;

// === impl Worker ===

impl Worker {
    /// A worker, and what clients will have left to it.
    fn new(index: usize, shared: &Shared, requests: Arc<Requests>) -> (Rc<Self>, AbandonedWork) {
        let (ticks, service_times) = (Ticks::new(), Rc::<ServiceTimes>::default());
        let (config, metrics) = (&shared.config, shared.metrics.worker(index));
        let abandoned_max = ABANDONED_MIN.max(2 * config.concurrency as usize);
        let (abandoned, abandoned_work) =
            Abandoned::new(abandoned_max, &service_times, &ticks, config.timeouts.answer, metrics.clone());
        let bytes_max = config.limits.buffer_bytes;
        let worker = Rc::new(Self {
            config: Arc::clone(&shared.config),
            flow: shared.flow.clone(),
            identification: Arc::clone(&shared.identification),
            routes: shared.routes.clone(),
            buffers: Buffers::new(&shared.buffered, bytes_max, bytes_max / 4, metrics.clone()),
            abandoned,
            service_times,
            clients: Arc::clone(&shared.clients),
            metrics,
            rejections: Arc::clone(&shared.rejections),
            upstreams: Upstreams::new(&shared.upstreams, &shared.config, &ticks),
            request_ids: RequestIds::new(),
            connections: Arc::clone(&shared.connections),
            requests,
            is_draining: Cell::new(false),
            quiet_until: Cell::new(0),
            ticks,
        });
        (worker, abandoned_work)
    }

    /// Whether connections are to be closed as soon as their requests have been answered.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.get()
    }

    /// How long a connection may be without a request. There always is such a time, since those who wait for it are also
    /// woken when the gateway drains.
    pub(crate) fn idle_after(&self) -> Duration {
        const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
        let idle = self.config.timeouts.idle;
        if idle.is_zero() { NEVER } else { idle.min(NEVER) }
    }

    /// How long this request may take in all. Zero means that there is no limit, as for what is long by nature.
    pub(crate) fn total_after(&self, parts: &Parts) -> Duration {
        let total = self.config.timeouts.total;
        let is_long = || {
            let request = Digest::digest(&self.routes, parts);
            request.is_ok_and(|request| self.routes.occupancy(parts, &request) != Occupancy::ToTheEnd)
        };
        if total.is_zero() || is_long() { Duration::ZERO } else { total }
    }

    /// How long a client that has connected may take until it says something.
    pub(crate) fn first_byte_after(&self) -> Duration {
        self.idle_after().min(self.config.timeouts.head)
    }

    /// Whether to warn of something that may happen with every request: once a second, so that the log is not flooded by
    /// what clients do.
    pub(crate) fn may_warn(&self) -> bool {
        let now = self.ticks.now();
        let may_warn = now >= self.quiet_until.get();
        if may_warn {
            self.quiet_until.set(now + Ticks::count(Duration::from_secs(1)));
        }
        may_warn
    }

    /// From now on they are.
    fn start_draining(&self) {
        self.is_draining.set(true);
        self.ticks.wake_all();
    }
}
