//! Workers: threads that serve connections, each with a runtime, listeners and upstream connections of its own.

mod accept;
mod clients;
mod counts;
mod listener;
mod thread;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use evenkeel::FlowControl;

use crate::config::Config;
use crate::gateway::live::Live;
use crate::http1::BufferPool;
use crate::identity::Identification;
use crate::observe::access_log::AccessLog;
use crate::observe::log::RejectionLog;
use crate::observe::metrics::{GatewayMetrics, WorkerMetrics};
use crate::observe::spans::Tracer;
use crate::proxy::abandoned::{Abandoned, AbandonedWork};
use crate::proxy::buffers::{BufferedBytes, Buffers};
use crate::proxy::forward::{RequestIds, WorkerFlow};
use crate::proxy::request_rules::RequestRules;
use crate::proxy::service_times::ServiceTimes;
use crate::proxy::upstream::Upstreams;
use crate::timeouts::CoarseTimer;

pub(crate) use clients::{Client, Clients, HostedConnection, OpenStream, SilentCall};
pub(crate) use counts::{Connections, RunningRequest, RunningRequests};
pub(crate) use listener::{Listening, bind};
pub(crate) use thread::{Stage, WorkerThread};

/// What all workers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) flow: FlowControl,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) rejections: Arc<RejectionLog>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) clients: Arc<Clients>,
    /// What the buffers of all workers have.
    pub(crate) buffered: BufferedBytes,
}

/// What a worker's connections and requests need of it, under the settings of one time. When the settings change, a
/// successor takes over. Requests that have begun stay with the worker that they began with.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) config: Arc<Config>,
    pub(crate) flow_control: FlowControl,
    /// The flow control under these settings, for all connections.
    pub(crate) flow: WorkerFlow,
    pub(crate) identification: Arc<Identification>,
    pub(crate) rules: RequestRules,
    pub(crate) metrics: WorkerMetrics,
    pub(crate) rejections: Arc<RejectionLog>,
    /// The access log, if there is one.
    pub(crate) access_log: Option<Rc<AccessLog>>,
    /// Takes the spans of requests, if there is tracing.
    pub(crate) tracer: Option<Rc<Tracer>>,
    pub(crate) timer: Rc<CoarseTimer>,
    pub(crate) buffer_pool: Rc<BufferPool>,
    pub(crate) upstreams: Upstreams,
    pub(crate) request_ids: Rc<RequestIds>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) requests: Arc<RunningRequests>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) buffers: Rc<Buffers>,
    pub(crate) abandoned: Rc<Abandoned>,
    pub(crate) service_times: Rc<ServiceTimes>,
    is_draining: Rc<Cell<bool>>,
    /// Whether it has ended, and cuts off the requests that it still has.
    pub(crate) is_stopped: Rc<Cell<bool>>,
    /// When the worker may log a warning again.
    quiet_until: Rc<Cell<u64>>,
    /// How often the settings had changed when it took over.
    generation: u64,
    succession: Rc<Succession>,
}

/// The workers of a thread, each of which took over from the one before. The thread keeps the latest alive; requests and
/// connections keep those that they began with.
#[derive(Debug, Default)]
struct Succession {
    generation: Cell<u64>,
    /// The latest is the last.
    workers: RefCell<Vec<Weak<Worker>>>,
}

/// So many requests whose clients have left are kept in any case. Beyond twice the number of seats, only requests that are
/// exempt from limits can have been left behind.
const ABANDONED_MIN: usize = 64;

fn abandoned_max(config: &Config) -> usize {
    ABANDONED_MIN.max(2 * config.concurrency as usize)
}

// === impl Worker ===

impl Worker {
    /// A worker, and what clients will have left to it.
    fn new(index: usize, shared: &Shared, live: &Live, requests: Arc<RunningRequests>) -> (Rc<Self>, AbandonedWork) {
        let (timer, service_times) = (CoarseTimer::new(), Rc::<ServiceTimes>::default());
        let (config, metrics) = (&live.config, shared.metrics.worker(index));
        let (abandoned, abandoned_work) =
            Abandoned::new(abandoned_max(config), &service_times, &timer, metrics.clone());
        let (limits, buffer_pool) = (&config.limits, BufferPool::new());
        let worker = Rc::new(Self {
            config: Arc::clone(config),
            flow_control: shared.flow.clone(),
            flow: WorkerFlow::new(&shared.flow, &live.rules),
            identification: Arc::clone(&live.identification),
            rules: live.rules.clone(),
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
            access_log: AccessLog::new(&config.log, live.access_log.as_ref()).map(Rc::new),
            tracer: Tracer::new(&config.tracing, live.spans.as_ref()).map(Rc::new),
            upstreams: Upstreams::new(&live.upstreams, index, config, &timer, &buffer_pool),
            buffer_pool,
            request_ids: Rc::new(RequestIds::new()),
            connections: Arc::clone(&shared.connections),
            requests,
            is_draining: Rc::default(),
            is_stopped: Rc::default(),
            quiet_until: Rc::default(),
            generation: 0,
            succession: Rc::default(),
            timer,
        });
        worker.succession.take_over(&worker);
        (worker, abandoned_work)
    }

    /// Lets a successor take over, under these settings. Connections find it when their next request arrives, as long as the
    /// caller keeps it.
    fn hand_over(&self, live: &Live) -> Rc<Self> {
        let config = &live.config;
        self.abandoned.set_limit(abandoned_max(config));
        self.buffers.set_limits(config.limits.buffer_bytes, config.limits.buffer_bytes_per_client());
        let upstreams = self.upstreams.renewed(&live.upstreams, config, &self.timer, &self.buffer_pool);
        self.upstreams.retire(&upstreams);
        let successor = Rc::new(Self {
            config: Arc::clone(config),
            flow_control: self.flow_control.clone(),
            flow: WorkerFlow::new(&self.flow_control, &live.rules),
            identification: Arc::clone(&live.identification),
            rules: live.rules.clone(),
            metrics: self.metrics.clone(),
            rejections: Arc::clone(&self.rejections),
            access_log: AccessLog::new(&config.log, live.access_log.as_ref()).map(Rc::new),
            tracer: Tracer::new(&config.tracing, live.spans.as_ref()).map(Rc::new),
            timer: Rc::clone(&self.timer),
            buffer_pool: Rc::clone(&self.buffer_pool),
            upstreams,
            request_ids: Rc::clone(&self.request_ids),
            connections: Arc::clone(&self.connections),
            requests: Arc::clone(&self.requests),
            clients: Arc::clone(&self.clients),
            buffers: Rc::clone(&self.buffers),
            abandoned: Rc::clone(&self.abandoned),
            service_times: Rc::clone(&self.service_times),
            is_draining: Rc::clone(&self.is_draining),
            is_stopped: Rc::clone(&self.is_stopped),
            quiet_until: Rc::clone(&self.quiet_until),
            generation: self.generation + 1,
            succession: Rc::clone(&self.succession),
        });
        self.succession.take_over(&successor);
        successor
    }

    /// Whether the settings have changed since.
    #[inline]
    pub(crate) fn is_succeeded(&self) -> bool {
        self.generation != self.succession.generation.get()
    }

    /// The worker under the settings in effect.
    #[inline]
    pub(crate) fn latest(self: &Rc<Self>) -> Rc<Self> {
        let latest = if self.is_succeeded() { self.succession.latest() } else { None };
        latest.unwrap_or_else(|| Rc::clone(self))
    }

    /// Whether connections are to be closed as soon as their responses have been sent.
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

    /// Does what is to be done from time to time.
    fn tidy(&self) {
        self.succession.flush();
        self.upstreams.prune();
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

    /// From now on they are.
    fn start_draining(&self) {
        self.is_draining.set(true);
        self.timer.wake_all();
    }
}

// === impl Succession ===

impl Succession {
    fn take_over(&self, worker: &Rc<Worker>) {
        self.generation.set(worker.generation);
        self.workers.borrow_mut().push(Rc::downgrade(worker));
    }

    fn latest(&self) -> Option<Rc<Worker>> {
        self.workers.borrow().last()?.upgrade()
    }

    /// Hands over the log lines and spans of all workers: requests that began under earlier settings still end.
    fn flush(&self) {
        self.workers.borrow_mut().retain(|worker| {
            let worker = worker.upgrade();
            worker.inspect(|worker| worker.flush()).is_some()
        });
    }
}
