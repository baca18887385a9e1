//! `Generation`: everything that the gateway makes of its settings. When they change, the next generation replaces it as a whole.

use std::sync::Arc;

use evenkeel::FlowControl;
use evenkeel_identity::RequestRules;

use crate::config::{AccessLogFormat, Config, DEFAULT_SERVICE, UpstreamConfig};
use crate::gateway::StartError;
use crate::gateway::flow_controls::FlowControls;
use crate::identity::{self, Identification};
use crate::llm::LlmService;
use crate::observe::Ended;
use crate::observe::access_log::AccessLogWriter;
use crate::observe::metrics::{GatewayMetrics, MetricsOfUpstreams, UpstreamLabels};
use crate::observe::spans::SpanExporter;
use crate::proxy::service_table::ServiceTable;
use crate::proxy::upstream::{UpstreamSource, UpstreamTarget, look_up_all};
use crate::tls::{ClientTls, Refresh, TlsError};

/// Everything that the gateway makes of its settings at one time. Requests keep the generation that they began with.
#[derive(Debug, Clone)]
pub(crate) struct Generation {
    pub(crate) config: Arc<Config>,
    pub(crate) identification: Arc<Identification>,
    pub(crate) rules: RequestRules,
    /// The services in the order of the settings, and the pool of `upstreams`, if there are any, behind them.
    pub(crate) pools: Vec<ServicePool>,
    /// Which service a request belongs to, if there are services.
    pub(crate) services: Option<Arc<ServiceTable>>,
    /// Writes the access log, if there is one.
    pub(crate) access_log: Option<AccessLogWriter>,
    /// Exports the spans of requests, if there is tracing.
    pub(crate) spans: Option<SpanExporter>,
}

/// Upstreams that serve the same requests, with seats of their own.
#[derive(Debug, Clone)]
pub(crate) struct ServicePool {
    /// The name of the service. Without services there is none.
    pub(crate) service: Option<Arc<str>>,
    pub(crate) flow: FlowControl,
    /// The state of its language models, if it has any.
    pub(crate) llm: Arc<LlmService>,
    /// The path that replaces that of the service.
    pub(crate) replace_path: Option<Box<str>>,
    /// The upstreams of the pool as the settings name them, in their order.
    pub(crate) sources: Vec<Arc<UpstreamSource>>,
    /// All addresses of the upstreams, in the same order.
    pub(crate) upstreams: Vec<Arc<UpstreamTarget>>,
}

/// A pool in the settings.
struct PoolConfig<'a> {
    service: Option<Arc<str>>,
    flow: FlowControl,
    replace_path: Option<&'a str>,
    upstreams: &'a [UpstreamConfig],
}

// === impl Generation ===

impl Generation {
    /// Sets everything up. Parts whose settings are the same as before are taken over: identities with their caches, and
    /// upstreams with their connections and their health.
    pub(crate) async fn open(
        config: Config,
        before: Option<&Self>,
        metrics: &GatewayMetrics,
        flows: &FlowControls,
    ) -> Result<Self, StartError> {
        if !config.has_upstreams() && config.ext_proc.is_none() {
            return Err(StartError::NoUpstream);
        }
        let is_same =
            |before: &&Self| before.config.requests == config.requests && before.config.preset == config.preset;
        let rules = match before.filter(is_same) {
            Some(before) => before.rules.clone(),
            None => RequestRules::new(&config.requests, config.preset)?,
        };
        let config = Arc::new(config);
        let pools = Self::pools(&config, before, metrics, flows).await?;
        let services = (!config.services.is_empty()).then(|| Arc::new(ServiceTable::new(&config.services)));
        let identification = match before.filter(|before| before.config.identity == config.identity) {
            Some(before) => Arc::clone(&before.identification),
            None => Self::identification(&config, metrics).await?,
        };
        let access_log = Self::access_log(&config, before, metrics)?;
        let spans_before = before.and_then(|before| before.spans.as_ref());
        let spans = SpanExporter::open(&config.tracing, spans_before, metrics.spans())?;
        Ok(Self { config, identification, rules, pools, services, access_log, spans })
    }

    /// The pools. Names that are new are looked up.
    async fn pools(
        config: &Arc<Config>,
        before: Option<&Self>,
        metrics: &GatewayMetrics,
        flows: &FlowControls,
    ) -> Result<Vec<ServicePool>, TlsError> {
        let (mut new, mut pools) = (Vec::new(), Vec::new());
        for pool in pools_of_settings(config, flows) {
            let before = before.and_then(|before| before.pools.iter().find(|known| known.service == pool.service));
            let mut sources = Vec::with_capacity(pool.upstreams.len());
            for (index, upstream) in pool.upstreams.iter().enumerate() {
                let mut known = before.into_iter().flat_map(|before| &before.sources);
                if let Some(known) = known.find(|known| known.is_as_in(upstream, config)) {
                    sources.push(Arc::clone(known));
                    continue;
                }
                let group = match pool.service.as_deref().filter(|service| *service != DEFAULT_SERVICE) {
                    Some(service) => format!("services.{service}.upstream[{index}]"),
                    None => format!("upstreams[{index}]"),
                };
                let labels = UpstreamLabels::of(upstream, pool.service.clone());
                let opened = UpstreamSource::open(&group, labels, upstream, config, metrics.workers())?;
                sources.push(Arc::new(opened));
                new.extend(sources.last().filter(|source| source.has_name()).cloned());
            }
            pools.push(ServicePool {
                service: pool.service,
                flow: pool.flow,
                llm: before.map(|before| Arc::clone(&before.llm)).unwrap_or_default(),
                replace_path: pool.replace_path.map(Into::into),
                sources,
                upstreams: Vec::new(),
            });
        }
        look_up_all(new).await;
        Ok(pools.into_iter().map(ServicePool::with_current_addresses).collect())
    }

    /// The same settings with the addresses that upstreams have now.
    pub(crate) fn with_current_addresses(&self) -> Self {
        Self { pools: self.pools.iter().cloned().map(ServicePool::with_current_addresses).collect(), ..self.clone() }
    }

    /// All addresses of all upstreams.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Arc<UpstreamTarget>> {
        self.pools.iter().flat_map(|pool| &pool.upstreams)
    }

    /// All upstreams of the settings.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<UpstreamSource>> {
        self.pools.iter().flat_map(|pool| &pool.sources)
    }

    /// The writer of the access log. Its thread is kept as long as its file is the same.
    fn access_log(
        config: &Config,
        before: Option<&Self>,
        metrics: &GatewayMetrics,
    ) -> Result<Option<AccessLogWriter>, StartError> {
        let file = config.log.access_file.as_deref();
        if config.log.access == AccessLogFormat::Off {
            return Ok(None);
        }
        let before = before.and_then(|before| before.access_log.as_ref()).filter(|writer| writer.file() == file);
        if let Some(writer) = before {
            return Ok(Some(writer.clone()));
        }
        let writer = AccessLogWriter::start(file, metrics.access_log());
        writer.map(Some).map_err(|error| StartError::AccessLog { file: file.map(ToOwned::to_owned), error })
    }

    /// Opens the sources on a thread that may block: they read files, and wait for keys.
    async fn identification(config: &Config, metrics: &GatewayMetrics) -> Result<Arc<Identification>, StartError> {
        let (config, counts) = (config.identity.clone(), metrics.identity().clone());
        match tokio::task::spawn_blocking(move || identity::open(&config, &counts)).await {
            Ok(opened) => Ok(opened?),
            Err(error) => Err(StartError::Thread(std::io::Error::other(error))),
        }
    }

    /// The ends of the thread that writes the access log and of the task that exports spans.
    pub(crate) fn recorders(&self) -> impl Iterator<Item = Ended> {
        let access_log = self.access_log.as_ref().map(AccessLogWriter::ended);
        access_log.into_iter().chain(self.spans.as_ref().map(SpanExporter::ended))
    }

    /// The counters of the upstreams.
    pub(crate) fn upstream_metrics(&self) -> MetricsOfUpstreams {
        MetricsOfUpstreams {
            llm: self.pools.iter().map(|pool| (pool.service.clone(), Arc::clone(&pool.llm))).collect(),
            targets: self.upstreams().map(|known| known.metrics.clone()).collect(),
            lookups: self.sources().filter_map(|source| source.lookup_metrics()).collect(),
        }
    }

    /// The certificates that are shown to upstreams, and the authorities that are trusted for upstreams.
    pub(crate) fn files(&self) -> impl Iterator<Item = Arc<dyn Refresh>> {
        self.sources().filter_map(|source| source.tls().map(ClientTls::files))
    }
}

/// The pools of the settings: the services, and that of `upstreams`.
fn pools_of_settings<'a>(config: &'a Config, flows: &FlowControls) -> Vec<PoolConfig<'a>> {
    let mut pools: Vec<_> = (config.services.iter())
        .map(|(name, service)| PoolConfig {
            service: Some((&**name).into()),
            flow: flows.of(name, config),
            replace_path: service.replace_path.as_deref(),
            upstreams: &service.upstream,
        })
        .collect();
    if config.has_default_pool() {
        pools.push(PoolConfig {
            service: (!config.services.is_empty()).then(|| DEFAULT_SERVICE.into()),
            flow: flows.default().clone(),
            replace_path: None,
            upstreams: &config.upstreams,
        });
    }
    pools
}

// === impl ServicePool ===

impl ServicePool {
    /// Whether it is for requests that belong to no service.
    pub(crate) fn is_default(&self) -> bool {
        self.service.as_deref().is_none_or(|service| service == DEFAULT_SERVICE)
    }

    /// The same pool with the addresses that its upstreams have now.
    fn with_current_addresses(self) -> Self {
        let upstreams = self.sources.iter().flat_map(|source| source.targets().to_vec()).collect();
        Self { upstreams, ..self }
    }
}
