//! Workers: threads that serve connections, each with a runtime, listeners and upstream connections of its own.

mod accept;
mod client_quota;
mod counts;
mod listener;
mod on_worker;
mod thread;

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel_identity::RequestRules;

use crate::config::Config;
use crate::gateway::flow_controls::FlowControls;
use crate::gateway::generation::Generation;
use crate::http1::BufferPool;
use crate::identity::Identification;
use crate::observe::access_log::AccessLog;
use crate::observe::log::RejectionLog;
use crate::observe::metrics::{GatewayMetrics, WorkerMetrics};
use crate::observe::spans::Tracer;
use crate::proxy::abandoned::{Abandoned, AbandonedWork};
use crate::proxy::buffers::{BufferedBytes, Buffers};
use crate::proxy::error_response::ErrorResponses;
use crate::proxy::forward::RequestIds;
use crate::proxy::pool::{WorkerPool, WorkerPools};
use crate::proxy::service_times::ServiceTimes;
use crate::timeouts::CoarseTimer;

pub(crate) use client_quota::{ClientQuota, ClientQuotas, HostedConnection, OpenStream, SilentCall};
pub(crate) use counts::{Connections, RunningRequest, RunningRequests};
pub(crate) use listener::{ListenerRules, Listening, Spoken};
pub(crate) use on_worker::OnWorker;
pub(crate) use thread::{WorkerStage, WorkerThread};

/// The state that all workers share.
#[derive(Debug)]
pub(crate) struct SharedByWorkers {
    pub(crate) flows: Arc<FlowControls>,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) rejections: Arc<RejectionLog>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) clients: Arc<ClientQuotas>,
    /// The bytes in the buffers of all workers.
    pub(crate) buffered: BufferedBytes,
}

/// A worker as its connections and requests see it, under the settings of one generation. When the settings change, the next
/// generation of the worker takes its place. Requests that have begun stay with the worker that they began with.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) config: Arc<Config>,
    pub(crate) identification: Arc<Identification>,
    pub(crate) rules: RequestRules,
    /// How the gateway's own error responses are made.
    pub(crate) errors: Arc<ErrorResponses>,
    /// The access log, if there is one.
    pub(crate) access_log: Option<Rc<AccessLog>>,
    /// Takes the spans of requests, if there is tracing.
    pub(crate) tracer: Option<Rc<Tracer>>,
    /// The services behind the gateway.
    pub(crate) pools: WorkerPools,
    /// How often the settings had changed when this generation began.
    generation: u64,
    lasting: Rc<Lasting>,
}

/// The state of a worker for as long as its thread runs, whatever the settings are: all its generations share it.
#[derive(Debug)]
pub(crate) struct Lasting {
    /// Which worker it is.
    pub(crate) index: usize,
    /// The flow control of requests that belong to no service. The objects of all are the same.
    pub(crate) flow_control: FlowControl,
    pub(crate) metrics: WorkerMetrics,
    pub(crate) rejections: Arc<RejectionLog>,
    pub(crate) timer: Rc<CoarseTimer>,
    pub(crate) buffer_pool: Rc<BufferPool>,
    pub(crate) request_ids: RequestIds,
    pub(crate) connections: Arc<Connections>,
    pub(crate) requests: Arc<RunningRequests>,
    pub(crate) clients: Arc<ClientQuotas>,
    pub(crate) buffers: Rc<Buffers>,
    pub(crate) abandoned: Rc<Abandoned>,
    pub(crate) service_times: Rc<ServiceTimes>,
    is_draining: Cell<bool>,
    /// Whether the worker has ended, and cuts off the requests that it still has.
    pub(crate) is_stopped: Rc<Cell<bool>>,
    /// When the worker may log a warning again.
    quiet_until: Cell<u64>,
    generations: WorkerGenerations,
}

/// The generations of a worker. The thread keeps the latest alive; requests and connections keep those that they began with.
#[derive(Debug, Default)]
struct WorkerGenerations {
    latest: Cell<u64>,
    /// The generations in their order: the latest is the last.
    workers: RefCell<Vec<Weak<Worker>>>,
}

/// How many requests whose clients have left are kept in any case. Beyond twice the number of seats, only requests that are
/// exempt from limits can have been left behind.
const ABANDONED_MIN: usize = 64;

fn abandoned_max(config: &Config) -> usize {
    ABANDONED_MIN.max(2 * config.concurrency_of_all() as usize)
}

// === impl Worker ===

impl Worker {
    /// The first generation of a worker, and the requests that clients will abandon to it.
    fn new(
        index: usize,
        shared: &SharedByWorkers,
        generation: &Generation,
        requests: Arc<RunningRequests>,
    ) -> (Rc<Self>, AbandonedWork) {
        let (timer, service_times) = (CoarseTimer::new(), Rc::<ServiceTimes>::default());
        let (config, metrics) = (&generation.config, shared.metrics.worker(index));
        let (abandoned, abandoned_work) =
            Abandoned::new(abandoned_max(config), &service_times, &timer, metrics.clone());
        let limits = &config.limits;
        let lasting = Rc::new(Lasting {
            index,
            flow_control: shared.flows.default().clone(),
            buffers: Buffers::new(
                &shared.buffered,
                limits.buffer_bytes,
                limits.buffer_bytes_per_client(),
                metrics.clone(),
            ),
            abandoned: Rc::new(abandoned),
            service_times,
            clients: Arc::clone(&shared.clients),
            metrics,
            rejections: Arc::clone(&shared.rejections),
            buffer_pool: BufferPool::new(),
            request_ids: RequestIds::new(),
            connections: Arc::clone(&shared.connections),
            requests,
            is_draining: Cell::default(),
            is_stopped: Rc::default(),
            quiet_until: Cell::default(),
            generations: WorkerGenerations::default(),
            timer,
        });
        (Self::begin(lasting, generation, None), abandoned_work)
    }

    /// The next generation of the worker, under these settings. Connections find it when their next request arrives, as long as the
    /// caller keeps it.
    fn next_generation(&self, generation: &Generation) -> Rc<Self> {
        let config = &generation.config;
        self.abandoned.set_limit(abandoned_max(config));
        self.buffers.set_limits(config.limits.buffer_bytes, config.limits.buffer_bytes_per_client());
        let next = Self::begin(Rc::clone(&self.lasting), generation, Some(self));
        self.pools.close_missing_from(&next.pools);
        next
    }

    fn begin(lasting: Rc<Lasting>, settings: &Generation, before: Option<&Self>) -> Rc<Self> {
        let Generation { config, identification, rules, access_log, spans, .. } = settings;
        let errors = Arc::new(ErrorResponses::new(config));
        let worker = Rc::new(Self {
            config: Arc::clone(config),
            pools: WorkerPools::new(&lasting, settings, &errors, before.map(|before| &before.pools)),
            errors,
            identification: Arc::clone(identification),
            rules: rules.clone(),
            access_log: AccessLog::new(&config.log, access_log.as_ref()).map(Rc::new),
            tracer: Tracer::new(&config.tracing, spans.as_ref()).map(Rc::new),
            generation: before.map_or(0, |before| before.generation + 1),
            lasting,
        });
        worker.generations.begin(&worker);
        worker
    }

    /// Whether the settings have changed since this generation began.
    #[inline]
    pub(crate) fn is_outdated(&self) -> bool {
        self.generation != self.generations.latest.get()
    }

    /// The worker under the settings in effect.
    #[inline]
    pub(crate) fn latest(self: &Rc<Self>) -> Rc<Self> {
        let latest = if self.is_outdated() { self.generations.latest() } else { None };
        latest.unwrap_or_else(|| Rc::clone(self))
    }

    /// A service under the settings in effect.
    #[inline]
    pub(crate) fn latest_pool(self: &Rc<Self>, pool: Rc<WorkerPool>) -> Rc<WorkerPool> {
        if self.is_outdated() { self.latest().pools.latest(pool) } else { pool }
    }

    /// Whether connections are to be closed as soon as their responses have been sent.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.get()
    }

    /// How long a connection may be without a request. There always is such a time, since tasks that wait for it are also woken
    /// when the gateway drains.
    pub(crate) fn idle_after(&self) -> Duration {
        const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
        let idle = self.config.timeouts.idle;
        if idle.is_zero() { NEVER } else { idle.min(NEVER) }
    }

    /// How long a client that has connected may take until it says something.
    pub(crate) fn first_byte_after(&self) -> Duration {
        self.idle_after().min(self.config.timeouts.head)
    }

    /// Whether to warn of something that may happen with every request: once a second, so that the log is not flooded by
    /// what clients do.
    pub(crate) fn may_warn(&self) -> bool {
        let now = self.timer.now();
        let may_warn = now >= self.quiet_until.get();
        if may_warn {
            self.quiet_until.set(now + CoarseTimer::count(Duration::from_secs(1)));
        }
        may_warn
    }

    /// Hands over log lines and spans, and closes upstream connections that have been idle for too long.
    fn tidy(&self) {
        self.generations.flush();
        self.pools.prune();
    }

    /// Hands over log lines and spans.
    fn flush(&self) {
        if let Some(log) = &self.access_log {
            log.flush();
        }
        if let Some(tracer) = &self.tracer {
            tracer.flush();
        }
    }

    /// Connections drain from now on.
    fn start_draining(&self) {
        self.is_draining.set(true);
        self.timer.wake_all();
    }
}

impl Deref for Worker {
    type Target = Lasting;

    #[inline]
    fn deref(&self) -> &Lasting {
        &self.lasting
    }
}

// === impl WorkerGenerations ===

impl WorkerGenerations {
    fn begin(&self, worker: &Rc<Worker>) {
        self.latest.set(worker.generation);
        self.workers.borrow_mut().push(Rc::downgrade(worker));
    }

    fn latest(&self) -> Option<Rc<Worker>> {
        self.workers.borrow().last()?.upgrade()
    }

    /// Hands over the log lines and spans of all generations: requests that began under earlier settings still end.
    fn flush(&self) {
        self.workers.borrow_mut().retain(|worker| {
            let worker = worker.upgrade();
            worker.inspect(|worker| worker.flush()).is_some()
        });
    }
}
