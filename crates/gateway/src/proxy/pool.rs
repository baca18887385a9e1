//! `WorkerPools`: the services behind the gateway, as one worker has them: flow control and upstreams of each.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use evenkeel::digest::Digested;
use evenkeel_engine::User;
use evenkeel_engine::digest::DigestError;
use evenkeel_identity::{RequestRules, RouteMatch, Target};
use http::HeaderValue;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

use crate::gateway::generation::{Generation, ServicePool};
use crate::identity::Denied;
use crate::llm::LlmService;
use crate::proxy::connection::Forwarder;
use crate::proxy::error_response::{ErrorResponses, Failure};
use crate::proxy::ext_proc::HeldFlow;
use crate::proxy::forward::{PoolRequest, RequestFuture, WorkerFlow};
use crate::proxy::service_table::{NoService, ServiceMatch, ServiceTable, replaced};
use crate::proxy::upstream::Upstreams;
use crate::proxy::worker::Lasting;

/// The pools of one worker, under the settings of one generation.
#[derive(Debug)]
pub(crate) struct WorkerPools {
    /// Which service a request belongs to; none if there are no services.
    table: Option<Arc<ServiceTable>>,
    /// The pools of services, in the order of the settings.
    services: Vec<Rc<WorkerPool>>,
    /// The pool of requests that belong to no service. It has no upstreams if only Envoy forwards such requests.
    default: Option<Rc<WorkerPool>>,
}

/// A pool of upstreams with seats of their own, as one worker has it.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    /// The name of the service. Without services there is none.
    pub(crate) service: Option<Arc<str>>,
    flow: WorkerFlow,
    /// The state of its language models, if it has any.
    pub(crate) llm: Arc<LlmService>,
    /// The flow control of requests that Envoy forwards, if Envoy asks this gateway.
    pub(crate) held_flow: Option<HeldFlow>,
    pub(crate) upstreams: Upstreams,
    /// Whether it has upstreams in the settings.
    has_upstreams: bool,
    replace_path: Option<Box<str>>,
}

/// The pool that a request belongs to, and how much of its path it was found by.
#[derive(Debug, Clone)]
pub(crate) struct FoundPool {
    pub(crate) pool: Rc<WorkerPool>,
    path_len: usize,
}

// === impl WorkerPools ===

impl WorkerPools {
    /// The pools of a generation. Upstreams for which nothing changes keep their connections.
    pub(crate) fn new(
        lasting: &Lasting,
        generation: &Generation,
        errors: &Arc<ErrorResponses>,
        before: Option<&Self>,
    ) -> Self {
        let rules = &generation.rules;
        let pool = |pool: &ServicePool| Rc::new(WorkerPool::new(lasting, generation, pool, (rules, errors), before));
        Self {
            table: generation.services.clone(),
            services: generation.pools.iter().filter(|pool| !pool.is_default()).map(pool).collect(),
            default: generation.pools.iter().find(|pool| pool.is_default()).map(pool),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Rc<WorkerPool>> {
        self.services.iter().chain(&self.default)
    }

    fn named(&self, service: Option<&str>) -> Option<&Rc<WorkerPool>> {
        self.all().find(|pool| pool.service.as_deref() == service)
    }

    /// The pool of a request that has arrived.
    #[inline]
    pub(crate) fn find(&self, parts: &Parts, target: &Target, forwarder: Forwarder) -> Result<FoundPool, Failure> {
        match (&self.table, &self.default) {
            (None, Some(only)) => Ok(FoundPool { pool: Rc::clone(only), path_len: 0 }),
            (Some(table), _) => self.find_in(table, parts, target, forwarder),
            (None, None) => Err(Failure::UnknownHost),
        }
    }

    fn find_in(
        &self,
        table: &ServiceTable,
        parts: &Parts,
        target: &Target,
        forwarder: Forwarder,
    ) -> Result<FoundPool, Failure> {
        let in_target = || parts.uri.authority().map(Authority::as_str);
        let host = parts.headers.get(HOST).map(HeaderValue::to_str).and_then(Result::ok).or_else(in_target);
        // A malformed path is rejected by any pool.
        let path = target.normal_path().unwrap_or("/");
        let found = table.find(host, path).map(|ServiceMatch { index, path_len }| (self.services.get(index), path_len));
        let serves = |pool: &&Rc<WorkerPool>| pool.has_upstreams || forwarder == Forwarder::Envoy;
        match (found, self.default.as_ref().filter(serves)) {
            (Ok((Some(pool), path_len)), _) if serves(&pool) => Ok(FoundPool { pool: Rc::clone(pool), path_len }),
            // Requests of a service without upstreams come through Envoy only.
            (Ok((Some(_), _)), _) | (Err(NoService::Host), None) => Err(Failure::UnknownHost),
            (_, Some(default)) => Ok(FoundPool { pool: Rc::clone(default), path_len: 0 }),
            (Ok((None, _)) | Err(NoService::Path), None) => Err(Failure::UnknownPath),
        }
    }

    /// The same service under these settings, or as it was if it is gone.
    pub(crate) fn latest(&self, pool: Rc<WorkerPool>) -> Rc<WorkerPool> {
        self.named(pool.service.as_deref()).map_or(pool, Rc::clone)
    }

    /// Closes idle connections to upstreams that are not among these any more.
    pub(crate) fn close_missing_from(&self, successors: &Self) {
        for pool in self.all() {
            let successor = successors.named(pool.service.as_deref());
            pool.upstreams.close_missing_from(successor.map(|successor| &successor.upstreams));
        }
    }

    /// Closes connections that have been idle for too long.
    pub(crate) fn prune(&self) {
        self.all().for_each(|pool| pool.upstreams.prune());
    }
}

// === impl WorkerPool ===

impl WorkerPool {
    fn new(
        lasting: &Lasting,
        generation: &Generation,
        pool: &ServicePool,
        (rules, errors): (&RequestRules, &Arc<ErrorResponses>),
        before: Option<&WorkerPools>,
    ) -> Self {
        let (targets, config) = (&pool.upstreams, &generation.config);
        let (timer, buffer_pool) = (&lasting.timer, &lasting.buffer_pool);
        let upstreams = match before.and_then(|before| before.named(pool.service.as_deref())) {
            Some(before) => before.upstreams.next_generation(targets, config, timer, buffer_pool),
            None => Upstreams::new(targets, lasting.index, config, timer, buffer_pool),
        };
        Self {
            service: pool.service.clone(),
            flow: WorkerFlow::new(&pool.flow, rules, errors),
            llm: Arc::clone(&pool.llm),
            held_flow: config.ext_proc.as_ref().map(|_| HeldFlow::new(&pool.flow, rules, errors)),
            has_upstreams: !pool.sources.is_empty(),
            upstreams,
            replace_path: pool.replace_path.clone(),
        }
    }
}

impl WorkerPool {
    /// A request that has been interpreted and authenticated reaches the flow control.
    pub(crate) fn call(
        &self,
        digested: Result<Digested<'_, RouteMatch>, DigestError>,
        user: &Result<Arc<User>, Denied>,
        parts: Parts,
        request: PoolRequest,
    ) -> RequestFuture {
        self.flow.call(digested, user, parts, request)
    }

    /// When the clock began that its flow control decides by.
    pub(crate) fn clock_start(&self) -> Option<Instant> {
        self.flow.clock_start()
    }
}

// === impl FoundPool ===

impl FoundPool {
    /// The path for the upstream, if the service replaces the beginning of the path by which it was found.
    pub(crate) fn new_path(&self, parts: &Parts, target: &Target) -> Result<Option<String>, Failure> {
        let Some(replacement) = &self.pool.replace_path else { return Ok(None) };
        let prefix = target.normal_path().and_then(|normal| normal.get(..self.path_len)).unwrap_or_default();
        replaced(parts.uri.path(), prefix, replacement).map(Some).ok_or(Failure::PathSpelling)
    }
}
